"""The embedded cluster's storages over a database, and requests to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp.test_utils import make_mocked_request

from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver import rest
from apiserver.meta.resource import GroupKind, Key, Object
from apiserver.request.context import RequestContext, User
from apiserver.request.options import DeleteOptions
from apiserver.request.request_info import Query, RequestInfo
from apiserver.storage.watch_cache import WatchCache
from registry.embedded.api_groups import ServedVersion, primary_backends, storages_by_group_version
from registry.embedded.auth.bound_tokens import BoundTokens
from registry.embedded.auth.signing_key import SigningKey, generate_key
from registry.embedded.cluster import owner_kinds_of
from registry.embedded.controllers.ownership_graph import OwnerKind
from registry.embedded.custom.bootstrap import bootstrap_definitions
from registry.embedded.custom.definition_kind import DEFINITIONS
from registry.embedded.custom.kinds import CustomKinds
from registry.rbac.role_index import RoleIndex
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Database

ADMIN = User(name="admin", groups=("system:masters",))


def request_context(user: User = ADMIN) -> RequestContext:
    info = RequestInfo(method="POST", path="/", verb="create", is_resource=True)
    return RequestContext(http=make_mocked_request("POST", "/"), info=info, query=Query(), audit_id="a", user=user)


def bound_tokens(api: EmbeddedApi, clock: Callable[[], float] = time.time) -> BoundTokens:
    """Tokens that are signed with a new key."""
    return BoundTokens(
        key=SigningKey(generate_key()),
        accounts=api.backends["serviceaccounts"],
        secrets=api.backends["secrets"],
        clock=clock,
    )


@asynccontextmanager
async def no_admission(new: Object | None, old: Object | None) -> AsyncIterator[None]:
    yield


@dataclass
class EmbeddedApi:
    """All kinds; requests name a storage by its path, such as `namespaces/status`."""

    database: Database
    served: Sequence[ServedVersion]
    index: RoleIndex
    backends: dict[str, SqliteBackend] = field(init=False)
    owner_kinds: dict[GroupKind, OwnerKind] = field(init=False)
    custom: CustomKinds = field(init=False)

    def __post_init__(self) -> None:
        self.backends = primary_backends(self.served)
        self.owner_kinds = owner_kinds_of(self.served)
        self._built_in = storages_by_group_version(self.served, self.index)
        self.custom = CustomKinds(
            database=self.database,
            caches=WatchCache,
            compiler=SchemaRuleCompiler(),
            backends=self.backends,
            owner_kinds=self.owner_kinds,
        )

    @property
    def storages(self) -> Mapping[tuple[str, str], Mapping[str, rest.Storage]]:
        return {**self._built_in, **self.custom.storages()}

    async def serve_shipped_kinds(self) -> None:
        await bootstrap_definitions(self.backends[DEFINITIONS])
        for cached in self.backends[DEFINITIONS].cache:
            await self.custom.serve(cached.object())

    def storage(self, path: str, group: str = "", version: str = "v1") -> Any:
        return self.storages[group, version][path]

    async def create(
        self, path: str, obj: Object, *, group: str = "", user: User = ADMIN, version: str = "v1"
    ) -> Object:
        storage = self.storage(path, group, version)
        created: Object = await storage.create(request_context(user), obj, no_admission, dry_run=False)
        return created

    async def update(
        self,
        path: str,
        key: Key,
        change: Callable[[Object], Any],
        *,
        group: str = "",
        user: User = ADMIN,
        version: str = "v1",
    ) -> Object:
        """`change` modifies the object in place."""

        async def apply(current: Object | None) -> Object:
            assert current is not None
            change(current)
            return current

        storage = self.storage(path, group, version)
        updated, _ = await storage.update(request_context(user), key, apply, no_admission, dry_run=False)
        result: Object = updated
        return result

    async def delete(self, path: str, key: Key, *, group: str = "", policy: str | None = None) -> rest.DeletionResult:
        options = DeleteOptions(propagation_policy=policy)
        storage = self.storage(path, group)
        deleted: rest.DeletionResult = await storage.delete(request_context(), key, options, no_admission)
        return deleted

    async def get(self, path: str, key: Key, *, group: str = "", version: str = "v1") -> Object | None:
        backends = (*(each.backend for each in self.served), *(each.backend for each in self.custom.versions))
        backend = next(
            each
            for each in backends
            if (each.resource.group, each.resource.version, each.resource.plural) == (group, version, path)
        )
        return await backend.read(key, live=False)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Waits until `condition` holds, which is checked after each stored change."""
        changed = asyncio.Event()
        self.database.subscribe(lambda change: changed.set())
        async with asyncio.timeout(10):
            while not condition():
                changed.clear()
                await changed.wait()

    def stored(self, storage: str) -> list[Key]:
        """The keys of all objects in a storage."""
        return [cached.key for cached in self.backends[storage].cache]
