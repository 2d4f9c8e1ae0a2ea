"""Storages with fewer verbs or more checks than the generic store. The base classes of a storage declare its verbs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from apiserver import rest
from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta import errors
from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext
from apiserver.request.options import DeleteOptions, ListOptions, WatchOptions
from apiserver.storage.pagination import Page
from apiserver.storage.watcher import CacheWatcher
from registry.generic.backend import Backend
from registry.generic.store import Store
from registry.generic.strategy import Strategy

IMMORTAL_NAMESPACES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))

EscalationCheck = Callable[[RequestContext, Object, Object | None], None]
"""(context, new object, old object): raises StatusError if the new object grants more than the caller may grant."""


class SubresourceStorage(rest.Getter, rest.Updater):
    """A subresource that can be read and updated, such as `status`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def resource(self) -> Resource:
        return self._store.resource

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        return await self._store.get(context, key, at_least=at_least)

    async def update(
        self,
        context: RequestContext,
        key: Key,
        change: rest.UpdateFunc,
        validate: rest.ValidateFunc,
        *,
        dry_run: bool,
        validate_create: rest.ValidateFunc | None = None,
    ) -> tuple[Object, bool]:
        # an update of a subresource never creates the object
        return await self._store.update(context, key, change, validate, dry_run=dry_run)


class NamespaceStorage(
    rest.Getter,
    rest.Lister,
    rest.Watcher,
    rest.Creater,
    rest.Updater,
    rest.GracefulDeleter,
):
    """Namespaces cannot be deleted as a collection, and system Namespaces cannot be deleted at all."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def resource(self) -> Resource:
        return self._store.resource

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        return await self._store.get(context, key, at_least=at_least)

    async def list(self, context: RequestContext, namespace: str, options: ListOptions) -> Page:
        return await self._store.list(context, namespace, options)

    async def watch(self, context: RequestContext, namespace: str, options: WatchOptions) -> CacheWatcher:
        return await self._store.watch(context, namespace, options)

    async def create(
        self, context: RequestContext, obj: Object, validate: rest.ValidateFunc, *, dry_run: bool
    ) -> Object:
        return await self._store.create(context, obj, validate, dry_run=dry_run)

    async def update(
        self,
        context: RequestContext,
        key: Key,
        change: rest.UpdateFunc,
        validate: rest.ValidateFunc,
        *,
        dry_run: bool,
        validate_create: rest.ValidateFunc | None = None,
    ) -> tuple[Object, bool]:
        return await self._store.update(
            context, key, change, validate, dry_run=dry_run, validate_create=validate_create
        )

    async def delete(
        self, context: RequestContext, key: Key, options: DeleteOptions, validate: rest.ValidateFunc
    ) -> rest.DeletionResult:
        if key.name in IMMORTAL_NAMESPACES:
            raise errors.Forbidden(self.resource.group_resource, key.name, "this namespace may not be deleted")
        return await self._store.delete(context, key, options, validate)


class EscalationCheckingStore(Store):
    """A store that runs an escalation check before each create and update."""

    def __init__(self, *, backend: Backend, strategy: Strategy, check: EscalationCheck) -> None:
        super().__init__(backend=backend, strategy=strategy)
        self._check = check

    async def create(
        self, context: RequestContext, obj: Object, validate: rest.ValidateFunc, *, dry_run: bool
    ) -> Object:
        return await super().create(context, obj, self._with_escalation_check(context, validate), dry_run=dry_run)

    async def update(
        self,
        context: RequestContext,
        key: Key,
        change: rest.UpdateFunc,
        validate: rest.ValidateFunc,
        *,
        dry_run: bool,
        validate_create: rest.ValidateFunc | None = None,
    ) -> tuple[Object, bool]:
        return await super().update(
            context,
            key,
            change,
            self._with_escalation_check(context, validate),
            dry_run=dry_run,
            validate_create=validate_create,
        )

    def _with_escalation_check(self, context: RequestContext, validate: rest.ValidateFunc) -> rest.ValidateFunc:
        @asynccontextmanager
        async def checked(new: Object | None, old: Object | None) -> AsyncIterator[None]:
            if new is not None:
                self._check(context, new, old)
            async with validate(new, old):
                yield

        return checked
