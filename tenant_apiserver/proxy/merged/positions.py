"""The resourceVersions that were sent to clients, with what they mean for a watch that goes on from there.

The streams of a merged watch are not in step: the version of an event may be beyond that of an event of another stream
that the client never got. And since then, the caller may have been granted or denied namespaces.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final, NamedTuple

from registry.names import flow_of
from tenant_apiserver.proxy.merged.frames import NO_FORM, Form
from tenant_apiserver.proxy.merged.sent_objects import SentObjects, union

_MAX_WEIGHT, _MAX_SHARE = 200_000, 20_000
# positions of one client at one version: of pages, and of watches and lists that it has at once
_MOST_AT_ONE_VERSION: Final = 64
_DIGEST_BYTES: Final = 16


class Client(NamedTuple):
    """Digests, as the texts of a client can be long: of a user, and of an identity and a list with its selectors."""

    user: bytes
    list: bytes


def client_of(user: str, *list_: object) -> Client:
    """`list_` are tuples of texts, whose repr says all. ServiceAccounts of a tenant are one user."""
    return Client(_digest(flow_of(user)), _digest((user, list_)))


def _digest(of: object) -> bytes:
    return blake2b(repr(of).encode(), digest_size=_DIGEST_BYTES).digest()


_Key = tuple[Client, str]


@dataclass(frozen=True, slots=True)
class Position:
    """At `time` of the monotonic clock, or later, the client has everything up to `version`. `sent_objects` are those
    that it has, None if they are not known. A watch goes on to change them: a client of an earlier position gets the
    events of the objects that it does not know yet, and has those that were removed after the first `removals`."""

    time: float
    version: int
    sent_objects: SentObjects | None = None
    form: Form = NO_FORM
    removals: int = 0

    @property
    def restored(self) -> Position:
        """The position, whose `sent_objects` are at least those that the client has."""
        known = self.sent_objects is None or self.sent_objects.restore(self.removals)
        return self if known else replace(self, sent_objects=None)


def position_of(version: int, sent_objects: SentObjects | None, form: Form) -> Position:
    """That of a client that has everything until now."""
    return Position(time.monotonic(), version, sent_objects, form, sent_objects.removals if sent_objects else 0)


@dataclass(slots=True)
class _Counted:
    """Objects that were sent, which many positions share. `size` is the last known number, `positions` that of the
    positions that have them."""

    sent_objects: SentObjects
    size: int = 0
    positions: int = 0


@dataclass(slots=True)
class _Share:
    """The memory of one user, the oldest key first."""

    weight: int = 0
    keys: OrderedDict[_Key, None] = field(default_factory=OrderedDict)


class Positions:
    """Remembers the latest positions, as long as they and the objects that were sent to their clients are at most
    200,000 together, 20,000 of them of one user. Replicas do not share them (docs/proxy.md says what that means)."""

    def __init__(self, max_weight: int = _MAX_WEIGHT, max_share: int = _MAX_SHARE) -> None:
        self._max_weight = max_weight
        self._max_share = max_share
        # several watches of one client may have sent a version, each with objects of its own
        self._positions: OrderedDict[_Key, dict[int, Position]] = OrderedDict()
        self._counted: dict[int, _Counted] = {}
        self._shares: dict[bytes, _Share] = {}
        self._weight = 0

    @property
    def weight(self) -> int:
        return self._weight

    def remember(self, client: Client, version: str, position: Position) -> None:
        """Of two positions at one version the earlier one holds."""
        key, share = (client, version), self._shares.setdefault(client.user, _Share())
        positions = self._positions.setdefault(key, {})
        self._positions.move_to_end(key)
        share.keys[key] = None
        share.keys.move_to_end(key)
        before = positions.get(id(position.sent_objects))
        if before is None:
            self._weigh(share, 1)
        else:
            position = _earlier(before, position)
        positions[id(position.sent_objects)] = position
        if position.sent_objects is not None:
            self._count(share, position.sent_objects, is_new=before is None)
        if len(positions) > _MOST_AT_ONE_VERSION:
            self._join(key, share)
        while share.weight > self._max_share:
            self._drop(next(iter(share.keys)))
        while self._weight > self._max_weight:
            self._drop(next(iter(self._positions)))

    def find(self, client: Client, version: str) -> Position | None:
        found = self._positions.get((client, version))
        return _joined(list(found.values())) if found else None

    def _join(self, key: _Key, share: _Share) -> None:
        """Makes one position of all: anybody can have any number of lists of one version, and a watch that goes on
        would look through them. Joined, they are what it would find."""
        positions = self._positions[key]
        joined = _joined(list(positions.values()))
        self._release(positions.values(), share)
        positions.clear()
        positions[id(joined.sent_objects)] = joined
        self._weigh(share, 1)
        if joined.sent_objects is not None:
            self._count(share, joined.sent_objects, is_new=True)

    def _count(self, share: _Share, sent_objects: SentObjects, *, is_new: bool) -> None:
        counted = self._counted.setdefault(id(sent_objects), _Counted(sent_objects))
        counted.positions += is_new
        self._weigh(share, sent_objects.size - counted.size)
        counted.size = sent_objects.size

    def _weigh(self, share: _Share, change: int) -> None:
        share.weight += change
        self._weight += change

    def _drop(self, key: _Key) -> None:
        user = key[0].user
        positions, share = self._positions.pop(key), self._shares[user]
        del share.keys[key]
        self._release(positions.values(), share)
        if not share.keys:
            del self._shares[user]

    def _release(self, positions: Collection[Position], share: _Share) -> None:
        self._weigh(share, -len(positions))
        for each in positions:
            if each.sent_objects is None:
                continue
            counted = self._counted[id(each.sent_objects)]
            counted.positions -= 1
            if not counted.positions:
                self._weigh(share, -counted.size)
                del self._counted[id(each.sent_objects)]


def _joined(found: Sequence[Position]) -> Position:
    """The position from which a watch loses nothing that a client of one of them lacks."""
    found = [each.restored for each in found]
    sent_objects = [each.sent_objects for each in found if each.sent_objects is not None]
    return Position(
        min(each.time for each in found),
        min(each.version for each in found),
        (sent_objects[0] if len(sent_objects) == 1 else union(sent_objects))
        if len(sent_objects) == len(found)
        else None,
        found[-1].form,
        # nothing was removed of those that are united now
        found[0].removals if len(found) == 1 else 0,
    )


def _earlier(one: Position, other: Position) -> Position:
    removals = min(one.removals, other.removals)
    return replace(other, time=min(one.time, other.time), version=min(one.version, other.version), removals=removals)
