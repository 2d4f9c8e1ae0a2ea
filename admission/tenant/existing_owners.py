"""The kinds of owners that the caches hold: Tenants, Namespaces and TenantNamespaces.

An owner that a cache does not have may just have been created, so it is read from the cluster before it counts as
missing. An owner that the user may not get is not read at all.
"""

from __future__ import annotations

from typing import Protocol

from admission.namespace_source import NamespaceSource
from apiserver.authorization.authorizer import AccessAttributes, Authorizer
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from apiserver.storage.visibility import VisibilitySource
from registry.names import GROUP, VERSION
from registry.tenantnamespace.convert import is_tenant_namespace


class TenantReader(Protocol):
    async def read(self, key: Key, *, live: bool) -> Object | None:
        """Reads a Tenant from the cache, or with `live` from the cluster. Raises StatusError."""
        ...


class TenantOwners:
    def __init__(self, *, authorizer: Authorizer, tenants: TenantReader) -> None:
        self._authorizer = authorizer
        self._tenants = tenants

    async def has(self, user: User, namespace: str, name: str, uid: str) -> bool:
        access = AccessAttributes(
            user=user, verb="get", group=GROUP, version=VERSION, resource="tenants", namespace=namespace, name=name
        )
        if not (await self._authorizer.authorize(access)).allowed:
            return False
        key = Key(namespace, name)
        if _has_uid(await self._tenants.read(key, live=False), uid):
            return True
        return _has_uid(await self._tenants.read(key, live=True), uid)


class NamespaceOwners:
    def __init__(self, *, authorizer: Authorizer, namespaces: NamespaceSource) -> None:
        self._authorizer = authorizer
        self._namespaces = namespaces

    async def has(self, user: User, namespace: str, name: str, uid: str) -> bool:
        # the namespace of a Namespace is its own name, as in the RequestInfo of a GET
        access = AccessAttributes(user=user, verb="get", version="v1", resource="namespaces", namespace=name, name=name)
        if not (await self._authorizer.authorize(access)).allowed:
            return False
        if _has_uid(self._namespaces.get(name), uid):
            return True
        return _has_uid(await self._namespaces.get_live(name), uid)


class TenantNamespaceOwners:
    """A TenantNamespace has the name and uid of its Namespace."""

    def __init__(self, *, visibility: VisibilitySource, namespaces: NamespaceSource) -> None:
        self._visibility = visibility
        self._namespaces = namespaces

    async def has(self, user: User, namespace: str, name: str, uid: str) -> bool:
        user_visibility = await self._visibility.for_user(user)
        if not user_visibility.visible.includes_namespace(name):
            return False
        found = self._namespaces.get(name)
        if not _has_uid(found, uid):
            found = await self._namespaces.get_live(name)
        return found is not None and _has_uid(found, uid) and is_tenant_namespace(found)


def _has_uid(obj: Object | None, uid: str) -> bool:
    return obj is not None and obj["metadata"].get("uid") == uid
