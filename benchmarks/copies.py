"""Copies of Tenants with everything that was written for them, as etcd stores it. Pure.

Names that are as long as those they replace leave the lengths in protobuf as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from benchmarks import objects

_UID = rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# the digits of a name, not those of a longer number
_REPLACED = re.compile(rb"(?P<uid>" + _UID + rb")|b(?P<number>\d{5})(?!\d)")
_UIDS = re.compile(_UID)
_NAME = re.compile(rb"b(\d{5})(?!\d)")
# an odd number: different copies of a uid differ
_STEP = 0x9E3779B1


class TenantCopies:
    """Copies of the first `count` Tenants, named by `objects.name("b", …)`: of each key of a cluster's `data` that has
    such a name. Events are not copied: they expire."""

    def __init__(self, data: Mapping[bytes, bytes], count: int) -> None:
        self._count = count
        self._copied: list[tuple[bytes, bytes]] = []
        self._shared_uids: set[bytes] = set()
        for key, value in data.items():
            if self._is_of_a_tenant(key):
                if not key.startswith(b"/registry/events/"):
                    self._copied.append((key, value))
            else:
                self._shared_uids.update(_UIDS.findall(value))

    def copy(self, number: int) -> Iterator[tuple[bytes, bytes]]:
        """The keys and values of copy `number`, from 1 on. Uids of objects that are not copied stay."""
        offset = number * self._count
        if offset + self._count > 100_000:
            raise ValueError(f"a name has five digits, which do not suffice for copy {number}")

        def replace(match: re.Match[bytes]) -> bytes:
            uid = match["uid"]
            if uid is None:
                found = int(match["number"])
                return objects.name("b", found + offset).encode() if found < self._count else match[0]
            if uid in self._shared_uids:
                return uid
            return b"%08x" % ((int(uid[:8], 16) + number * _STEP) & 0xFFFFFFFF) + uid[8:]

        for key, value in self._copied:
            yield _REPLACED.sub(replace, key), _REPLACED.sub(replace, value)

    def keys(self) -> Sequence[bytes]:
        """The keys that are copied."""
        return [key for key, _ in self._copied]

    def _is_of_a_tenant(self, key: bytes) -> bool:
        return any(int(number) < self._count for number in _NAME.findall(key))
