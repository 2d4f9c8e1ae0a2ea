"""Answers `tenants/diff`: GET for a Tenant as it is, POST for one as a client would make it.

The server answers, and not the plugin, because a client cannot know the settings: they are merged from a file, the
platform's Package and ConfigMaps that tenants may not read, and what is planned also depends on objects of others, such
as the routes at a shared Gateway. Each replica has all of it in its informers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from apiserver import rest
from apiserver.admission import Admission
from apiserver.authorization.authorizer import Authorizer
from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext, User
from apiserver.schema.pruning_and_defaulting import metadata_type_error, object_schema, prune
from apiserver.storage.visibility import VisibilitySource
from registry.cluster.interface import ClusterClient, ClusterResource
from registry.explain.diff.changes import PlannedChange, PlannedChanges, Planner, diff_status, shown_changes
from registry.explain.diff.dry_run import TenantDryRun, WritableTenants
from registry.explain.diff.types import diff_object, diff_resource
from registry.explain.reading_slots import ReadingSlots
from registry.explain.sight import Sight
from registry.names import GROUP, KIND, VERSION
from registry.tenant.strategy import TenantStrategy

_TENANT = ClusterResource(GROUP, VERSION, "tenants", KIND)
# Reviews of the rights to get objects that run at a time. There are more than an answer has changes, because objects
# for hostnames of hidden tenants are among them, whose number decides nothing.
_REVIEWS_AT_A_TIME, _MOST_REVIEWS = 20, 2000
# Each plan reads up to a thousand objects of a hundred tenants; further ones wait for so many seconds.
_PLANS_AT_A_TIME, _SECONDS = 2, 20.0


class TenantDiffs(rest.Getter, rest.Creater):
    """POST writes nothing: it is the only method that takes a body. Its user has to be allowed to make the change."""

    def __init__(
        self,
        tenants: WritableTenants,
        *,
        cluster: ClusterClient,
        authorizer: Authorizer,
        admission: Admission,
        planner: Planner,
        visibility: VisibilitySource,
        wait_for_own_writes: Callable[[], Awaitable[None]],
    ) -> None:
        """`admission` and `visibility` are those of Tenants. A plan depends on other Tenants, too, so it has this
        replica's writes to all of them."""
        self._visibility = visibility
        self._wait_for_own_writes = wait_for_own_writes
        self._tenants = tenants
        self._dry_run = TenantDryRun(tenants, admission)
        self._strategy = TenantStrategy()
        self._cluster = cluster
        self._authorizer = authorizer
        self._planner = planner
        self._resource = diff_resource()
        self._slots = ReadingSlots(
            total=_PLANS_AT_A_TIME, per_user=_PLANS_AT_A_TIME, seconds=_SECONDS, about="changes of tenants"
        )

    @property
    def resource(self) -> Resource:
        return self._resource

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        """Raises AccessDenied, NotFound, TooManyRequests, ServiceUnavailable, and ClusterUnreachable."""
        sight = self._sight(context.user)
        await sight.require(sight.tenant_access("get", key))
        await self._tenants.get(context, key, at_least=at_least)
        found = await self._plan(context.user, key, None)
        return encode(self._resource, await self._answer(sight, key, found))

    async def create(
        self, context: RequestContext, obj: Object, validate: rest.ValidateFunc, *, dry_run: bool
    ) -> Object:
        """`obj` is a TenantDiff with `spec.tenant`, a whole Tenant, as for PUT. Raises BadRequest, Invalid, the errors
        of admission, and those of `get`."""
        key = Key(context.info.namespace, context.info.name)
        sight = self._sight(context.user)
        await sight.require(sight.tenant_access("get", key))
        before = await self._current(context, key)
        await sight.require(sight.tenant_access("create" if before is None else "update", key))
        sent = self._tenant_in(key, (obj.get("spec") or {}).get("tenant"))
        write = self._dry_run.create if before is None else self._dry_run.update
        proposed = await write(context, key, sent)
        found = await self._plan(context.user, key, proposed)
        of_tenant = PlannedChange(_TENANT, key, before, self._strategy.shown(proposed))
        changes = PlannedChanges([of_tenant, *found.changes], found.problems, found.truncated)
        answer = await self._answer(sight, key, changes)
        return {"apiVersion": self._resource.api_version, "kind": self._resource.kind, **answer}

    def _sight(self, user: User) -> Sight:
        return Sight(self._cluster, self._authorizer, user)

    async def _plan(self, user: User, key: Key, proposed: Object | None) -> PlannedChanges:
        """Raises TooManyRequests while the plans of others take too long."""
        sees = await self._sees(user)
        # before it takes a place, of which there are few
        await self._wait_for_own_writes()
        async with self._slots.held(user.name):
            return await self._planner.plan(key, proposed, sees)

    async def _sees(self, user: User) -> Callable[[Key], bool]:
        """If lists show a Tenant to the user. Raises ServiceUnavailable while that is not known."""
        visible = (await self._visibility.for_user(user)).visible
        return partial(visible.includes, self._tenants.resource)

    async def _current(self, context: RequestContext, key: Key) -> Object | None:
        try:
            return (await self._tenants.get(context, key)).object()
        except StatusError as error:
            if error.reason != "NotFound":
                raise
            return None

    def _tenant_in(self, key: Key, sent: object) -> Object:
        """The Tenant that was sent, without unknown fields. Raises BadRequest for what is no Tenant of this name."""
        metadata = sent.get("metadata") if isinstance(sent, dict) else None
        if not isinstance(sent, dict) or not isinstance(metadata, dict) or not _is_tenant(sent):
            raise errors.BadRequest(f"spec.tenant must be a {KIND} of {GROUP}/{VERSION}")
        if (metadata.get("name"), metadata.get("namespace") or key.namespace) != (key.name, key.namespace):
            raise errors.BadRequest(f"spec.tenant must be the Tenant {key.namespace}/{key.name} of the URL")
        resource = self._strategy.resource
        if problem := metadata_type_error(resource, sent):
            raise errors.BadRequest(f"spec.tenant: {problem}")
        resource.precheck(sent)
        tenant: Object = prune(object_schema(resource), sent)
        return tenant

    async def _answer(self, sight: Sight, key: Key, found: PlannedChanges) -> Object:
        shown = await shown_changes(found.changes)
        visible = await _visible(sight, [each.change for each in shown[:_MOST_REVIEWS]])
        truncated = found.truncated or len(shown) > _MOST_REVIEWS
        status = await diff_status(list(zip(shown, visible, strict=False)), found.problems, truncated=truncated)
        return diff_object(key.namespace, key.name, status)


async def _visible(sight: Sight, changes: Sequence[PlannedChange]) -> Sequence[bool]:
    """For each of the changes, True if the user may get the object."""
    allowed = asyncio.Semaphore(_REVIEWS_AT_A_TIME)

    async def may(change: PlannedChange) -> bool:
        async with allowed:
            return await sight.may("get", change.resource, *change.key)

    return await asyncio.gather(*map(may, changes))


def _is_tenant(obj: Object) -> bool:
    return (obj.get("apiVersion"), obj.get("kind")) == (f"{GROUP}/{VERSION}", KIND)
