"""From the informer of HelmReleases into the watch cache of Tenants: converted and encoded once a change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from apiserver.cooperative import iterate_cooperatively
from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object, Resource
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.event_handlers import EventHandler
from registry.names import workload_namespace
from registry.tenant.convert import (
    NotATenant,
    selectable_labels,
    spec_from_values,
    tenant_key,
    to_tenant,
    unreadable_paths,
)

_logger = logging.getLogger(__name__)


class TenantFeed(EventHandler):
    """The event handler of the informer, and what it has learned of the state of the host.

    `retry` makes the informer try again at once; it is called when the host answers while it counts as unreachable.
    """

    def __init__(self, *, resource: Resource, cache: WatchCache, retry: Callable[[], None] = lambda: None) -> None:
        self._resource = resource
        self._cache = cache
        self._retry = retry
        self._damaged: dict[Key, tuple[str, ...]] = {}
        self.cluster_error: StatusError | None = None
        """Why the host cannot be watched at present, None while it can."""

    @property
    def unreadable_fields(self) -> Mapping[Key, Sequence[str]]:
        """Tenants that are shown incompletely, with the paths of what could not be read; for metrics."""
        return MappingProxyType(self._damaged)

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        # a host that went back in time may have given a version to something else
        forward = rv >= self._cache.rv
        known = dict(self._damaged)
        self._damaged.clear()
        tenants: dict[Key, CachedObject] = {}
        async for release in iterate_cooperatively(items):
            key = _key(release)
            if key is None:
                continue
            if key in known:
                self._damaged[key] = known[key]
            held = self._cache.peek(key) if forward else None
            # an equal version has equal content: after an outage, only what changed is converted again
            tenants[key] = held if held is not None and _is_same(held, release) else self._encode(key, release)
        await self._cache.replace_cooperatively([tenants[key] for key in sorted(tenants)], rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        key = _key(obj)
        if key is None:
            self._cache.advance(rv)
        elif type == "DELETED":
            self._delete(key, obj, rv)
        else:
            self._store(key, obj, rv)

    def bookmark(self, rv: int) -> None:
        self._cache.advance(rv)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self.cluster_error = error

    def cluster_answered(self) -> None:
        """A call to the host went well: what it wrote is to be seen soon, however long the informer meant to wait."""
        if self.cluster_error is not None:
            self._retry()

    def _store(self, key: Key, release: Object, rv: int) -> None:
        held = self._cache.peek(key)
        if held is not None and held.rv >= rv:
            return
        self._cache.apply("ADDED" if held is None else "MODIFIED", self._encode(key, release))

    def _delete(self, key: Key, release: Object, rv: int) -> None:
        if self._cache.peek(key) is None:
            self._cache.advance(rv)
            return
        last = self._encode(key, release)
        self._damaged.pop(key, None)
        self._cache.apply("DELETED", last)

    def _encode(self, key: Key, release: Object) -> CachedObject:
        try:
            tenant, problems = to_tenant(release), tuple(unreadable_paths(release))
            encoded = encode(self._resource, tenant, labels=selectable_labels(release, tenant))
        except Exception:
            # what this release of ours cannot convert must still be seen, or a client would take it for deleted
            _logger.exception("HelmRelease of tenant %s/%s cannot be converted: only its name is shown", *key)
            encoded, problems = encode(self._resource, _name_only(self._resource, key, release), labels={}), ("",)
        if problems and self._damaged.get(key) != problems:
            _logger.warning("tenant %s/%s is shown without what cannot be read: %s", *key, ", ".join(problems))
        if problems:
            self._damaged[key] = problems
        else:
            self._damaged.pop(key, None)
        return encoded


def _is_same(held: CachedObject, release: Object) -> bool:
    metadata = release["metadata"]
    return (str(held.rv), held.uid) == (metadata.get("resourceVersion"), metadata.get("uid"))


def _key(release: Object) -> Key | None:
    try:
        return tenant_key(release)
    except NotATenant as e:
        _logger.warning("passed over: %s", e)
        return None


def _name_only(resource: Resource, key: Key, release: Object) -> Object:
    identity = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation")
    metadata = {field: value for field in identity if (value := release["metadata"].get(field))}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, **metadata},
        "spec": spec_from_values(None),
        "status": {"namespace": workload_namespace(*key)},
    }
