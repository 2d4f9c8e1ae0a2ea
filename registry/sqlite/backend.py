"""The Backend of one resource in the database. Several versions of a kind can share their stored objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from apiserver import rest
from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.encoding.offload import offload_if_large
from apiserver.meta import errors
from apiserver.meta import object_meta as meta
from apiserver.meta.resource import GroupResource, Key, Object, Resource, do_nothing
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.generic import deletion
from registry.generic.deletion import Finalization, MetadataFinalizers
from registry.sqlite.database import Change, Database, Write, WriteRejected, decode_row
from registry.sqlite.statements import RejectReason, Row, StorageKey

NAMESPACES = "namespaces"
_NAMESPACE = GroupResource("", NAMESPACES)


class VersionConversion(Protocol):
    """Converts objects between a served version and the stored one. Pure; the argument is not changed."""

    def to_served(self, stored: Object) -> Object: ...

    def to_stored(self, served: Object) -> Object: ...


class IdentityConversion:
    """The conversion of a kind with one version."""

    def to_served(self, stored: Object) -> Object:
        return stored

    def to_stored(self, served: Object) -> Object:
        return served


class SqliteBackend:
    """`storage` is the name under which objects are stored, by default that of the resource. Versions that share it
    differ in their apiVersion and `conversion`. `complete` changes objects in place when they are read from the
    database: those that were stored long ago may lack defaults."""

    def __init__(
        self,
        *,
        database: Database,
        resource: Resource,
        cache: WatchCache,
        storage: str = "",
        conversion: VersionConversion | None = None,
        finalization: Finalization | None = None,
        complete: Callable[[Object], None] = do_nothing,
    ) -> None:
        self._database = database
        self.resource = resource
        self._cache = cache
        self.storage = storage or str(resource.group_resource)
        self._conversion: VersionConversion = conversion or IdentityConversion()
        self._finalization: Finalization = finalization or MetadataFinalizers()
        self._complete = complete
        # changes that arrive while the cache is filled; None before and after
        self._pending: list[Change] | None = None

    @property
    def cache(self) -> WatchCache:
        return self._cache

    @property
    def is_only_writer(self) -> bool:
        return True

    async def load(self) -> None:
        """Fills the cache from the database and follows its changes. Called once."""
        self._pending = []
        self._database.subscribe(self._on_change)
        try:
            rows, revision = await self._database.rows(self.storage)
            # a kind is loaded again, while requests are served, when its definition has changed
            size = sum(len(row.data) for row in rows)
            objects = await offload_if_large(lambda: self._encode(rows), size=size)
        except BaseException:
            self._database.unsubscribe(self._on_change)
            raise
        self._cache.replace(objects, revision)
        pending, self._pending = self._pending, None
        for change in pending:
            if change.rv > revision:
                self._on_change(change)

    def unload(self) -> None:
        """Ends all watches, and follows the database no longer."""
        self._database.unsubscribe(self._on_change)
        self._cache.close()

    def before_read(self, context: RequestContext) -> None:
        """The cache is always current, because this process is the only writer."""

    async def read(self, key: Key, *, live: bool) -> Object | None:
        if not live:
            cached = self._cache.peek(key)
            return None if cached is None else cached.object()
        row = await self._database.row(StorageKey(self.storage, key))
        return None if row is None else {**self._decode(row), **self._type()}

    async def confirm_absent(self, key: Key) -> bool:
        return True

    async def create(self, obj: Object, *, dry_run: bool, context: RequestContext | None = None) -> Object:
        """Raises AlreadyExists, Forbidden in a terminating namespace and NotFound without one (WIRE-H5)."""
        metadata = dict(obj["metadata"])
        metadata.pop("resourceVersion", None)
        metadata.setdefault("uid", meta.new_uid())
        metadata.setdefault("creationTimestamp", meta.now_rfc3339())
        key = self._key(metadata)
        parent = StorageKey(NAMESPACES, Key("", key.namespace)) if self.resource.namespaced else None
        write = Write(
            type="ADDED",
            target=StorageKey(self.storage, key),
            object=self._stored({**obj, "metadata": metadata}),
            parent=parent,
            dry_run=dry_run,
        )
        return await self._write(write)

    async def update(
        self, key: Key, new: Object, current: Object, *, dry_run: bool, context: RequestContext | None = None
    ) -> Object:
        """Raises Conflict and NotFound. Removes a terminating object that has lost its last finalizer (WIRE-D79)."""
        remove = bool(new["metadata"].get("deletionTimestamp")) and not self._finalization.has_finalizers(new)
        write = Write(
            type="DELETED" if remove else "MODIFIED",
            target=StorageKey(self.storage, key),
            object=self._stored(new),
            expected=int(current["metadata"]["resourceVersion"]),
            dry_run=dry_run,
        )
        return await self._write(write)

    async def delete(
        self, key: Key, current: Object, options: DeleteOptions, *, context: RequestContext | None = None
    ) -> rest.DeletionResult:
        """Raises Conflict and NotFound."""
        outcome = deletion.apply_delete(current, options, self._finalization, now=meta.now_rfc3339())
        if not outcome.changed:
            return rest.DeletionResult(current, removed=False)
        write = Write(
            type="DELETED" if outcome.removed else "MODIFIED",
            target=StorageKey(self.storage, key),
            object=self._stored(outcome.object),
            expected=int(current["metadata"]["resourceVersion"]),
            dry_run=options.dry_run,
        )
        return rest.DeletionResult(await self._write(write), removed=outcome.removed)

    async def _write(self, write: Write) -> Object:
        try:
            return self._with_type(await self._database.write(write))
        except WriteRejected as rejected:
            raise self._to_status_error(rejected.why, write.target.key) from rejected

    def _to_status_error(self, why: RejectReason, key: Key) -> errors.StatusError:
        resource = self.resource.group_resource
        match why:
            case RejectReason.EXISTS | RejectReason.EXISTS_DELETING:
                return errors.AlreadyExists(resource, key.name, deleting=why is RejectReason.EXISTS_DELETING)
            case RejectReason.MISSING:
                return errors.NotFound(resource, key.name)
            case RejectReason.CONFLICT:
                return errors.Conflict(resource, key.name)
            case RejectReason.PARENT_MISSING:
                return errors.NotFound(_NAMESPACE, key.namespace)
            case RejectReason.PARENT_DELETING:
                return _terminating(resource, key)

    def _encode(self, rows: Sequence[Row]) -> Sequence[CachedObject]:
        return [encode(self.resource, self._decode(row)) for row in rows]

    def _decode(self, row: Row) -> Object:
        served = self._conversion.to_served(decode_row(row))
        self._complete(served)
        return served

    def _on_change(self, change: Change) -> None:
        if self._pending is not None:
            self._pending.append(change)
            return
        if change.target.resource != self.storage:
            self._cache.advance(change.rv)
            return
        self._cache.apply(change.type, encode(self.resource, self._conversion.to_served(change.object)))

    def _with_type(self, stored: Object) -> Object:
        return {**self._conversion.to_served(stored), **self._type()}

    def _type(self) -> Object:
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind}

    def _stored(self, served: Object) -> Object:
        stored = self._conversion.to_stored(served)
        return {name: value for name, value in stored.items() if name not in ("apiVersion", "kind")}

    def _key(self, metadata: Object) -> Key:
        return Key(metadata.get("namespace", "") if self.resource.namespaced else "", metadata["name"])


def _terminating(resource: GroupResource, key: Key) -> errors.Forbidden:
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {key.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
    return errors.Forbidden(resource, key.name, why, causes=[cause])
