"""The benchmark client's decoder of chunked streams, and the delays computed from watch frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson
import pytest

from benchmarks.client import ChunkedLines, ResponseBody
from benchmarks.fanout import delays

STREAM = b'4\r\n{"a"\r\n9;extension\r\n:1}\n{"b":\r\n3\r\n2}\n\r\n8\r\n{"c":3}\n\r\n0\r\n\r\n'
LINES = [b'{"a":1}', b'{"b":2}', b'{"c":3}']


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, len(STREAM)])
def test_lines_are_complete_however_the_stream_is_split(size: int) -> None:
    frames, found = ChunkedLines(), list[bytes]()
    for start in range(0, len(STREAM), size):
        assert not frames.ended
        found += frames.feed(STREAM[start : start + size])
    assert found == LINES
    assert frames.ended


def test_a_line_is_returned_as_soon_as_it_is_complete() -> None:
    frames = ChunkedLines()
    first = STREAM.index(b"{", 10)
    assert frames.feed(STREAM[:first]) == []
    assert frames.feed(STREAM[first : STREAM.index(b"8\r\n")]) == LINES[:2]


def test_an_uncompressed_body_is_returned_as_is() -> None:
    assert ResponseBody(b"plain", gzipped=False).decompressed() == b"plain"


def frame(type_: str, version: int, change: str = "") -> bytes:
    annotations = {"annotations": {"bench": change}} if change else {}
    return orjson.dumps({"type": type_, "object": {"metadata": {"resourceVersion": str(version), **annotations}}})


@pytest.mark.parametrize(
    ("arrived", "expected"),
    [
        pytest.param({frame("MODIFIED", 5, "a"): [1.5, 2.0]}, [0.5, 1.0], id="every watcher's own delay"),
        pytest.param(
            {frame("MODIFIED", 9, "a"): [7.0], frame("MODIFIED", 8, "a"): [1.25]}, [0.25], id="the first frame counts"
        ),
        pytest.param(
            {frame("MODIFIED", 5, "a"): [1.5], frame("MODIFIED", 6, "b"): [5.0]}, [0.5, 3.0], id="two changes"
        ),
        pytest.param(
            {frame("MODIFIED", 5, "before"): [1.5], frame("ADDED", 6): [1.5]}, [], id="changes that were not sent"
        ),
        pytest.param({b'{"type":"ERROR","object":{"code":410}}': [1.5]}, [], id="an ERROR event"),
    ],
)
def test_delays_are_computed_only_for_sent_changes(
    arrived: Mapping[bytes, Sequence[float]], expected: Sequence[float]
) -> None:
    assert delays({"a": 1.0, "b": 2.0}, arrived) == pytest.approx(expected)
