"""The HelmReleases that writes start from, as compact JSON: parsed objects would need ten times the memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import orjson

from apiserver.resource import Key, Object

_RECENT = 256


class Releases:
    """What the informer saw last, and beside it what a few recent calls brought, which may be newer.

    Status and managedFields are left out: a PUT keeps the stored ones of both.
    """

    def __init__(self) -> None:
        self._seen: dict[Key, bytes] = {}
        self._recent: OrderedDict[Key, bytes] = OrderedDict()

    def replace(self, releases: Iterable[tuple[Key, bytes]]) -> None:
        self._seen = dict(releases)

    def put(self, key: Key, encoded: bytes) -> None:
        self._seen[key] = encoded

    def remove(self, key: Key) -> None:
        self._seen.pop(key, None)

    def remember(self, key: Key, release: Object) -> None:
        """What a read or a write at the host brought; only the most recent few are kept."""
        self._recent[key] = encode_release(release)
        self._recent.move_to_end(key)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def at(self, key: Key, resource_version: str) -> Object | None:
        """The HelmRelease at exactly this version, if it is held; the caller owns it."""
        for held in (self._seen, self._recent):
            encoded = held.get(key)
            if encoded is not None:
                release: Object = orjson.loads(encoded)
                if release["metadata"].get("resourceVersion") == resource_version:
                    return release
        return None


def encode_release(release: Object) -> bytes:
    metadata = {field: value for field, value in release["metadata"].items() if field != "managedFields"}
    kept = {field: value for field, value in release.items() if field != "status"}
    return orjson.dumps(kept | {"metadata": metadata})
