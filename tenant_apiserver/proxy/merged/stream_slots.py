"""Bounds the streams of merged watches, of which each has a connection to the cluster, of about 60 KiB, what waits for
clients that do not read, and the objects that were sent to clients."""

from __future__ import annotations

from typing import Final

from apiserver.meta.errors import TooManyRequests
from apiserver.request.bytes_in_flight import BytesInFlight, Reservation
from apiserver.request.fair_shares import FairShares
from registry.names import flow_of

_TOTAL: Final = 5_000
"""About 300 MiB, of the 512 MiB that the Deployment has."""
_PER_USER: Final = 1_500
_ALWAYS: Final = 50
_MIB: Final = 1024 * 1024
_WAITING, _WAITING_PER_USER = 32 * _MIB, 10 * _MIB
"""While they are sent, these bytes are about three times as many."""
# two texts and their place in a dictionary
_OBJECT_BYTES: Final = 300
_SENT_OBJECTS, _SENT_OBJECTS_PER_USER = 200_000 * _OBJECT_BYTES, 50_000 * _OBJECT_BYTES


class StreamSlots:
    """The streams of all watches, and those of one user."""

    def __init__(
        self,
        *,
        total: int = _TOTAL,
        per_user: int = _PER_USER,
        always: int = _ALWAYS,
        sent_objects_per_user: int = _SENT_OBJECTS_PER_USER,
    ) -> None:
        self._per_user = per_user
        self._shares = FairShares(total=total, per_user=per_user, always=always)
        self.waiting = BytesInFlight(total=_WAITING, per_user=_WAITING_PER_USER, flow_of=flow_of)
        """The events that clients have not got yet."""
        self.sent_objects = BytesInFlight(total=_SENT_OBJECTS, per_user=sent_objects_per_user, flow_of=flow_of)

    def change(self, user: str, by: int) -> None:
        """Raises TooManyRequests, and takes none, if `by` more are too many."""
        used = self._shares.of(user)
        if by > 0 and used + by > self._per_user:
            raise TooManyRequests(
                f"the watches of this user have {used} namespaces together, of at most {self._per_user} that the proxy "
                "merges for one user: watch fewer kinds, or single namespaces"
            )
        if by > 0 and not self._shares.allows(user, by):
            raise TooManyRequests("Too many merged watches are open, please try again later.")
        self._shares.add(user, by)


class WatchSlots:
    """The streams of one watch, and the events that wait for its client."""

    def __init__(self, slots: StreamSlots, user: str) -> None:
        self._slots = slots
        self._count = 0
        self.waiting = Reservation(slots.waiting, user)
        self._user = self.waiting.flow
        self._sent_objects = Reservation(slots.sent_objects, user)

    def has_room_for(self, sent_objects: int) -> bool:
        """False, and none is taken, if the watch cannot know so many objects."""
        try:
            self._sent_objects.resize(sent_objects * _OBJECT_BYTES)
        except TooManyRequests:
            self._sent_objects.resize(0)
            return False
        return True

    def close(self) -> None:
        self.resize(0)
        self.waiting.resize(0)
        self._sent_objects.resize(0)

    def resize(self, count: int) -> None:
        """Raises TooManyRequests, and changes nothing, for more than are free."""
        self._slots.change(self._user, count - self._count)
        self._count = count
