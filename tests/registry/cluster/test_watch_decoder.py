from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.errors import StatusError
from registry.cluster.interface import WatchEvent
from registry.cluster.watch_decoder import MalformedStream, WatchDecoder, parse_watch_event

_EVENTS = [
    WatchEvent("ADDED", {"metadata": {"name": "ä\n"}}),
    WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "7"}}),
    WatchEvent("DELETED", {"metadata": {"name": "b" * 5000}}),
]


def _stream(events: list[WatchEvent]) -> bytes:
    return b"".join(orjson.dumps({"type": event.type, "object": event.object}) + b"\n" for event in events)


def _decode(decoder: WatchDecoder, chunk: bytes) -> list[WatchEvent]:
    return [parse_watch_event(line) for line in decoder.feed(chunk)]


@given(st.lists(st.integers(1, 200), min_size=1))
def test_events_are_complete_for_any_chunks(sizes: list[int]) -> None:
    stream, decoder, position = _stream(_EVENTS), WatchDecoder(), 0
    found: list[WatchEvent] = []
    for size in sizes:
        found += _decode(decoder, stream[position : position + size])
        position += size
    found += _decode(decoder, stream[position:])
    assert found == _EVENTS


def test_an_incomplete_line_yields_no_event() -> None:
    assert _decode(WatchDecoder(), _stream(_EVENTS)[:-1]) == _EVENTS[:-1]


def test_an_event_of_several_megabytes_is_decoded() -> None:
    large = WatchEvent("ADDED", {"metadata": {"annotations": {"a": "x" * 5_000_000}}})
    decoder, stream = WatchDecoder(), _stream([large])
    found: list[WatchEvent] = []
    for position in range(0, len(stream), 65536):
        found += _decode(decoder, stream[position : position + 65536])
    assert found == [large]


def test_a_line_beyond_the_limit_is_rejected() -> None:
    decoder = WatchDecoder(limit=1000)
    assert list(decoder.feed(b"x" * 1000)) == []
    with pytest.raises(MalformedStream):
        list(decoder.feed(b"x"))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"<html>", id="not JSON"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(b'{"type":"ADDED","object":null}', id="no object"),
        pytest.param(b'{"type":"CHANGED","object":{}}', id="an unknown type"),
        pytest.param(b'{"type":[],"object":{}}', id="a type that is not a string"),
    ],
)
def test_a_line_that_is_not_an_event_is_rejected(line: bytes) -> None:
    with pytest.raises(MalformedStream):
        _decode(WatchDecoder(), line + b"\n")


def test_an_error_event_is_raised_as_its_status() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
    with pytest.raises(StatusError) as raised:
        _decode(WatchDecoder(), line)
    assert (raised.value.code, raised.value.reason, raised.value.message) == (410, "Expired", "too old")
