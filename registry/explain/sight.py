"""The objects that one user may get or list: nothing else enters an explanation (ATTACK-15)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from apiserver.authorization.authorizer import AccessAttributes, AccessDenied, Authorizer
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.cluster.interface import ClusterClient, ClusterResource, NotServed, Visited
from registry.names import GROUP, VERSION

MOST_REVIEWS = 20
"""A question about Tenants costs no more reviews than this."""


class Sight:
    """The objects of the cluster as `user` may read them. If the authorizer cannot decide, nothing is visible."""

    def __init__(self, cluster: ClusterClient, authorizer: Authorizer, user: User) -> None:
        self._cluster = cluster
        self._authorizer = authorizer
        self.user = user

    async def may(self, verb: str, resource: ClusterResource, namespace: str = "", name: str = "") -> bool:
        return await self.is_allowed(self._access(verb, resource, namespace, name))

    async def is_allowed(self, access: AccessAttributes) -> bool:
        try:
            return (await self._authorizer.authorize(access)).allowed
        except StatusError:
            return False

    async def require(self, access: AccessAttributes) -> None:
        """Raises AccessDenied."""
        if not await self.is_allowed(access):
            raise AccessDenied(access)

    def tenant_access(self, verb: str, key: Key, *, user: User | None = None) -> AccessAttributes:
        """An action on a Tenant, or with an empty name on all of a namespace."""
        return AccessAttributes(
            user=user or self.user,
            verb=verb,
            group=GROUP,
            version=VERSION,
            resource="tenants",
            namespace=key.namespace,
            name=key.name,
        )

    async def may_get_tenant(self, key: Key) -> bool:
        return await self.is_allowed(self.tenant_access("get", key))

    async def tenants(self, keys: Iterable[Key]) -> frozenset[Key]:
        """Those of the Tenants that the user may get; only the first twenty are considered."""
        some = list(dict.fromkeys(keys))[:MOST_REVIEWS]
        allowed = await asyncio.gather(*(self.is_allowed(self.tenant_access("get", each)) for each in some))
        return frozenset(each for each, may in zip(some, allowed, strict=True) if may)

    async def may_get_tenants_in(self, namespaces: Iterable[str]) -> Sequence[str]:
        """Those of the namespaces all of whose Tenants the user may get; only the first twenty are considered. The
        empty name stands for all namespaces."""
        some = list(dict.fromkeys(namespaces))[:MOST_REVIEWS]
        allowed = await asyncio.gather(*(self.is_allowed(self.tenant_access("get", Key(each, ""))) for each in some))
        return [each for each, may in zip(some, allowed, strict=True) if may]

    async def get(self, resource: ClusterResource, key: Key) -> Object | None:
        """None if the user may not get the object, or it does not exist. Raises ClusterUnreachable."""
        if not await self.may("get", resource, *key):
            return None
        try:
            found = await self._cluster.get(resource, *key)
        except NotServed:
            return None
        except StatusError as error:
            if error.code in (403, 404):
                return None
            raise
        return {"apiVersion": resource.api_version, "kind": resource.kind, **found}

    async def visit_first(
        self,
        resource: ClusterResource,
        namespace: str,
        *,
        visit: Callable[[Object], None],
        limit: int,
        max_bytes: int,
    ) -> Visited | None:
        """As the method of the cluster. None if the user, or this server, may not list the objects. Raises NotServed if
        the cluster lacks the kind in this version, and ClusterUnreachable."""
        if not await self.may("list", resource, namespace):
            return None
        try:
            return await self._cluster.visit_first(resource, namespace, visit=visit, limit=limit, max_bytes=max_bytes)
        except StatusError as error:
            if error.code == 404:
                raise NotServed from error
            if error.code == 403:
                return None
            raise

    def _access(self, verb: str, resource: ClusterResource, namespace: str, name: str) -> AccessAttributes:
        return AccessAttributes(
            user=self.user,
            verb=verb,
            group=resource.group,
            version=resource.version,
            resource=resource.plural,
            namespace=namespace if resource.namespaced else "",
            name=name,
        )
