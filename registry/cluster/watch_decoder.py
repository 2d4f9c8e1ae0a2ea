"""Decodes the events of a watch from a byte stream whose chunks may end anywhere. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.json import deep as deepjson
from apiserver.meta import errors
from registry.cluster.interface import ClusterUnreachable, WatchEvent

# etcd limits objects to 1.5 MiB in protobuf; their JSON is somewhat larger.
MAX_OBJECT_SIZE = 16 * 1024 * 1024
_TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")


class MalformedStream(ClusterUnreachable):
    """The stream cannot be decoded, so its position is unknown and it cannot be resumed."""


class WatchDecoder:
    """Collects chunks into lines of JSON of at most `limit` bytes, for `parse_watch_event`."""

    def __init__(self, *, limit: int = MAX_OBJECT_SIZE) -> None:
        self._buffer = bytearray()
        self._limit = limit

    @property
    def buffered(self) -> int:
        """The bytes of a line that is incomplete so far."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the lines that `chunk` completes. Raises MalformedStream."""
        searched = len(self._buffer)
        self._buffer += chunk
        start = 0
        while (end := self._buffer.find(b"\n", max(start, searched))) >= 0:
            line = bytes(self._buffer[start:end])
            start = end + 1
            if line.strip():
                yield line
        del self._buffer[:start]
        if len(self._buffer) > self._limit:
            raise MalformedStream(f"received a watch event of more than {self._limit} bytes")


def parse_watch_event(line: bytes) -> WatchEvent:
    """Decodes the event of one line. Raises the StatusError of an ERROR event, and MalformedStream."""
    try:
        frame = deepjson.loads(line)
        type_, obj = frame["type"], frame["object"]
    except (ValueError, KeyError, TypeError) as e:
        raise MalformedStream("received a line that is not a watch event") from e
    if not isinstance(obj, dict):
        raise MalformedStream("received a watch event without an object")
    if type_ == "ERROR":
        raise errors.from_status(obj, 500)
    if type_ not in _TYPES:
        raise MalformedStream("received a watch event of an unknown type")
    return WatchEvent(type_, obj)
