"""Feeds HelmReleases from an informer into the watch cache of Tenants, converting and encoding each change once."""

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
from registry.cluster.object_store import key_of
from registry.names import DELETION_MARK_ANNOTATION, UNCONFIRMED_ANNOTATION, tenant_name, workload_namespace
from registry.tenant.convert import (
    NotATenant,
    is_tenant,
    selectable_labels,
    tenant_key,
    to_tenant,
)
from registry.tenant.readiness import unreadable_status
from registry.tenant.spec import spec_from_values, unreadable_paths

_logger = logging.getLogger(__name__)


class TenantFeed(EventHandler):
    """The event handler of the informer.

    `retry` ends the informer's pause; it is called when another call succeeds while the cluster counts as unreachable.
    """

    def __init__(self, *, resource: Resource, cache: WatchCache, retry: Callable[[], None] = lambda: None) -> None:
        self._resource = resource
        self._cache = cache
        self._retry = retry
        self._unreadable_fields: dict[Key, tuple[str, ...]] = {}
        self._deletion_marks: dict[Key, str] = {}
        self._unconfirmed: dict[Key, str] = {}
        self.cluster_error: StatusError | None = None
        """The error with which the watch failed, None while it works."""

    @property
    def unreadable_fields(self) -> Mapping[Key, Sequence[str]]:
        """For metrics: the Tenants that are shown incompletely, with the paths of the values that cannot be read."""
        return MappingProxyType(self._unreadable_fields)

    @property
    def deletion_marks(self) -> Mapping[Key, str]:
        """The Tenants that a replica is about to delete, with the text of the mark. It changes with the cache."""
        return MappingProxyType(self._deletion_marks)

    @property
    def unconfirmed(self) -> Mapping[Key, str]:
        """The Tenants whose last write of a host is unconfirmed, with the id of that write. It changes with the
        cache."""
        return MappingProxyType(self._unconfirmed)

    def _peek(self, release: Key) -> CachedObject | None:
        name = tenant_name(release.name)
        return self._cache.peek(Key(release.namespace, name)) if name is not None else None

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        # after a restore from a backup, a version may belong to a different object
        forward = rv >= self._cache.rv
        previous = dict(self._unreadable_fields)
        self._unreadable_fields.clear()
        self._deletion_marks.clear()
        self._unconfirmed.clear()
        tenants: dict[Key, CachedObject] = {}
        async for release in iterate_cooperatively(items):
            key = _key(release)
            if key is None:
                continue
            if key in previous:
                self._unreadable_fields[key] = previous[key]
            self._note_marks(key, release)
            cached = self._cache.peek(key) if forward else None
            # objects of an equal version are equal, so only changed ones are converted again after an outage
            tenants[key] = cached if cached is not None and _is_same(cached, release) else self._encode(key, release)
        await self._cache.replace_cooperatively([tenants[key] for key in sorted(tenants)], rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type == "DELETED":
            self._delete(obj, rv)
        elif (key := _key(obj)) is not None:
            self._store(key, obj, rv)
        else:
            self._cache.advance(rv)

    def bookmark(self, rv: int) -> None:
        self._cache.advance(rv)

    def set_cluster_error(self, error: StatusError | None) -> None:
        self.cluster_error = error

    def cluster_answered(self) -> None:
        """Reports a successful call, so that the informer reconnects immediately and the cache gets the written
        object."""
        if self.cluster_error is not None:
            self._retry()

    def _store(self, key: Key, release: Object, rv: int) -> None:
        cached = self._cache.peek(key)
        if cached is not None and cached.rv >= rv:
            return
        self._cache.apply("ADDED" if cached is None else "MODIFIED", self._encode(key, release))

    def _delete(self, release: Object, rv: int) -> None:
        """Its labels need not be those of a Tenant any more; the last state of the Tenant is then the cached one."""
        cached = self._peek(key_of(release))
        if cached is None:
            self._cache.advance(rv)
            return
        key = cached.key
        last = self._encode(key, release) if is_tenant(release) else _at_version(self._resource, cached, rv)
        self._unreadable_fields.pop(key, None)
        self._deletion_marks.pop(key, None)
        self._unconfirmed.pop(key, None)
        self._cache.apply("DELETED", last)

    def _encode(self, key: Key, release: Object) -> CachedObject:
        self._note_marks(key, release)
        try:
            tenant, problems = to_tenant(release), tuple(unreadable_paths(release))
            encoded = encode(self._resource, tenant, labels=selectable_labels(release, tenant))
        except Exception:
            # a Tenant that cannot be converted must stay visible, or clients would treat it as deleted
            _logger.exception("HelmRelease of tenant %s/%s cannot be converted: only its name is shown", *key)
            encoded, problems = encode(self._resource, _name_only(self._resource, key, release), labels={}), ("",)
        if problems and self._unreadable_fields.get(key) != problems:
            _logger.warning(
                "tenant %s/%s is shown without the values that cannot be read: %s", *key, ", ".join(problems)
            )
        if problems:
            self._unreadable_fields[key] = problems
        else:
            self._unreadable_fields.pop(key, None)
        return encoded

    def _note_marks(self, key: Key, release: Object) -> None:
        annotations = release["metadata"].get("annotations")
        for marks, name in (
            (self._deletion_marks, DELETION_MARK_ANNOTATION),
            (self._unconfirmed, UNCONFIRMED_ANNOTATION),
        ):
            mark = annotations.get(name) if isinstance(annotations, dict) else None
            if mark and isinstance(mark, str):
                marks[key] = mark
            else:
                marks.pop(key, None)


def _at_version(resource: Resource, cached: CachedObject, rv: int) -> CachedObject:
    tenant = cached.object()
    tenant["metadata"]["resourceVersion"] = str(rv)
    return encode(resource, tenant, labels=cached.labels)


def _is_same(cached: CachedObject, release: Object) -> bool:
    metadata = release["metadata"]
    return (str(cached.rv), cached.uid) == (metadata.get("resourceVersion"), metadata.get("uid"))


def _key(release: Object) -> Key | None:
    try:
        return tenant_key(release)
    except NotATenant as e:
        _logger.warning("ignored: %s", e)
        return None


def _name_only(resource: Resource, key: Key, release: Object) -> Object:
    identity = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation")
    metadata = {field: value for field in identity if (value := release["metadata"].get(field))}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, **metadata},
        "spec": spec_from_values(None),
        "status": unreadable_status(workload_namespace(*key)),
    }
