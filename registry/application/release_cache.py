"""A cache of the HelmReleases that writes start from, as compact JSON: parsed ones need ten times the memory."""

from __future__ import annotations

from collections import OrderedDict

from apiserver.json import deep as deepjson
from apiserver.meta.resource import Key, Object
from registry.cluster.object_store import ObjectLister

_RECENT = 256
_RECENT_BYTES = 16 * 1024 * 1024
# the fields that this process reads; the rest, mostly the history, is half of a HelmRelease
_STATUS = ("conditions", "lastAttemptedRevision")


class ReleaseCache:
    """The `store` of the HelmRelease informer, and the results of a few recent calls, which may be newer.
    Keys are those of HelmReleases.

    Status and managedFields are left out: a PUT without them does not change the stored ones.
    """

    def __init__(self, store: ObjectLister) -> None:
        self._store = store
        self._recent: OrderedDict[Key, bytes] = OrderedDict()
        self._recent_bytes = 0

    def add(self, key: Key, release: Object) -> None:
        """Adds the result of a read or write. Only the most recent ones are cached, of at most 16 MiB."""
        self._recent_bytes -= len(self._recent.pop(key, b""))
        self._recent[key] = encoded = bytes(memoryview(deepjson.to_stored(_without_status(release))))
        self._recent_bytes += len(encoded)
        while len(self._recent) > _RECENT or self._recent_bytes > _RECENT_BYTES:
            self._recent_bytes -= len(self._recent.popitem(last=False)[1])

    def get(self, key: Key, resource_version: str) -> Object | None:
        """The HelmRelease at exactly this version, None if it is not cached. The caller owns it."""
        stored = self._store.get(key)
        if stored is not None and _version(stored) == resource_version:
            return _without_status(stored)
        encoded = self._recent.get(key)
        recent: Object | None = deepjson.from_stored(encoded) if encoded is not None else None
        return recent if recent is not None and _version(recent) == resource_version else None


def trim_release(release: Object) -> Object:
    """The transform of the HelmRelease informer: removes the status fields that this process does not read."""
    status = release.get("status")
    if not isinstance(status, dict):
        return release
    return release | {"status": {field: status[field] for field in _STATUS if field in status}}


def _without_status(release: Object) -> Object:
    metadata = {field: value for field, value in release["metadata"].items() if field != "managedFields"}
    others = {field: value for field, value in release.items() if field != "status"}
    return others | {"metadata": metadata}


def _version(release: Object) -> object:
    return release["metadata"].get("resourceVersion")
