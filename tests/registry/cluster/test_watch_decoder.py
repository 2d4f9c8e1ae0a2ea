from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.errors import StatusError
from registry.cluster.interface import WatchEvent
from registry.cluster.watch_decoder import MalformedStream, WatchDecoder

_EVENTS = [
    WatchEvent("ADDED", {"metadata": {"name": "ä\n"}}),
    WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "7"}}),
    WatchEvent("DELETED", {"metadata": {"name": "b" * 5000}}),
]


def _stream(events: list[WatchEvent]) -> bytes:
    return b"".join(orjson.dumps({"type": event.type, "object": event.object}) + b"\n" for event in events)


@given(st.lists(st.integers(1, 200), min_size=1))
def test_events_arrive_whole_wherever_the_stream_is_cut(sizes: list[int]) -> None:
    stream, frames, position = _stream(_EVENTS), WatchDecoder(), 0
    found: list[WatchEvent] = []
    for size in sizes:
        found += frames.feed(stream[position : position + size])
        position += size
    found += frames.feed(stream[position:])
    assert found == _EVENTS


def test_a_line_without_its_end_is_no_event() -> None:
    assert list(WatchDecoder().feed(_stream(_EVENTS)[:-1])) == _EVENTS[:-1]


def test_a_frame_of_several_megabytes_is_taken() -> None:
    large = WatchEvent("ADDED", {"metadata": {"annotations": {"a": "x" * 5_000_000}}})
    frames, stream = WatchDecoder(), _stream([large])
    found: list[WatchEvent] = []
    for position in range(0, len(stream), 65536):
        found += frames.feed(stream[position : position + 65536])
    assert found == [large]


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    frames = WatchDecoder(limit=1000)
    assert list(frames.feed(b"x" * 1000)) == []
    with pytest.raises(MalformedStream):
        list(frames.feed(b"x"))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="nothing in it"),
        pytest.param(b'{"type":"ADDED","object":null}', id="no object"),
        pytest.param(b'{"type":"CHANGED","object":{}}', id="an unknown type"),
        pytest.param(b'{"type":[],"object":{}}', id="a type that is none"),
    ],
)
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedStream):
        list(WatchDecoder().feed(line + b"\n"))


def test_an_error_event_is_raised_as_what_it_says() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
    with pytest.raises(StatusError) as raised:
        list(WatchDecoder().feed(line))
    assert (raised.value.code, raised.value.reason, raised.value.message) == (410, "Expired", "too old")
