"""Where the bytes of a watch may end: between two events, as those of a kube-apiserver do. Pure."""

from __future__ import annotations

from typing import Final

_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_JSON: Final = "application/json"
# the length of a protobuf event, before it
_PREFIX_BYTES: Final = 4


class WatchBoundary:
    """Follows the bytes of a response with this media type. `reached` is True after a whole event. Of other types than
    JSON and protobuf nothing is known: they may end after any piece."""

    def __init__(self, media_type: str) -> None:
        self._is_json = media_type == _JSON
        self._is_protobuf = media_type == _PROTOBUF
        self._prefix = b""
        self._missing = 0
        self.reached = True

    def feed(self, piece: bytes) -> None:
        if self._is_json:
            # an event has no line break but the one at its end
            self.reached = piece.endswith(b"\n")
        elif self._is_protobuf:
            self._feed_protobuf(piece)

    def _feed_protobuf(self, piece: bytes) -> None:
        position = 0
        while position < len(piece):
            if self._missing:
                taken = min(self._missing, len(piece) - position)
                self._missing -= taken
            else:
                taken = min(_PREFIX_BYTES - len(self._prefix), len(piece) - position)
                self._prefix += piece[position : position + taken]
                if len(self._prefix) == _PREFIX_BYTES:
                    self._missing, self._prefix = int.from_bytes(self._prefix), b""
            position += taken
        self.reached = not self._missing and not self._prefix
