"""The HelmReleases that writes start from, as compact JSON: parsed objects would need ten times the memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from apiserver.json import deep as deepjson
from apiserver.meta.resource import Key, Object
from registry.names import release_name

_RECENT = 256
# what a Tenant shows, and the reconciler looks at; the history that Flux keeps is half of a HelmRelease
_STATUS = ("conditions", "lastAttemptedRevision")


class Seen(Protocol):
    """The store of an informer of HelmReleases, by their own keys. The caller owns what it gets."""

    def get(self, key: Key) -> Object | None: ...


class ReleaseCache:
    """What the informer saw last, and beside it what a few recent calls brought, which may be newer.

    Status and managedFields are left out: a PUT keeps the stored ones of both.
    """

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._recent: OrderedDict[Key, bytes] = OrderedDict()

    def add(self, key: Key, release: Object) -> None:
        """What a read or a write at the host brought; only the most recent few are kept."""
        self._recent[key] = bytes(memoryview(deepjson.dumps(_to_write(release))))
        self._recent.move_to_end(key)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    def get(self, key: Key, resource_version: str) -> Object | None:
        """The HelmRelease of a Tenant at exactly this version, if it is held; the caller owns it."""
        seen = self._seen.get(Key(key.namespace, release_name(key.name)))
        if seen is not None and _version(seen) == resource_version:
            return _to_write(seen)
        encoded = self._recent.get(key)
        recent: Object | None = deepjson.loads_dumped(encoded) if encoded is not None else None
        return recent if recent is not None and _version(recent) == resource_version else None


def trim_release(release: Object) -> Object:
    """What of a HelmRelease this process looks at: for the informer to keep, and no more."""
    status = release.get("status")
    if not isinstance(status, dict):
        return release
    return release | {"status": {field: status[field] for field in _STATUS if field in status}}


def _to_write(release: Object) -> Object:
    metadata = {field: value for field, value in release["metadata"].items() if field != "managedFields"}
    kept = {field: value for field, value in release.items() if field != "status"}
    return kept | {"metadata": metadata}


def _version(release: Object) -> object:
    return release["metadata"].get("resourceVersion")
