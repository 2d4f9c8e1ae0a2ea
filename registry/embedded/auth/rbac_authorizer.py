"""RBAC of the embedded cluster: an index of the stored roles and bindings, and the authorizer that uses it."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.resource import Object
from registry.rbac import role_index as rbac
from registry.rbac.role_index import RoleIndex, parse_binding, parse_rules
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Change, Database
from registry.sqlite.statements import StorageKey

ROLES = f"roles.{rbac.GROUP}"
CLUSTERROLES = f"clusterroles.{rbac.GROUP}"
ROLEBINDINGS = f"rolebindings.{rbac.GROUP}"
CLUSTERROLEBINDINGS = f"clusterrolebindings.{rbac.GROUP}"


class RbacAuthorizer:
    """Allows what the stored roles and bindings grant. A change takes effect as soon as it is stored."""

    def __init__(self, index: RoleIndex) -> None:
        self._index = index

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return self._index.decide(attributes)


class RoleIndexUpdater:
    """Keeps a RoleIndex in sync with the database."""

    def __init__(self, *, database: Database, index: RoleIndex) -> None:
        self._database = database
        self._index = index

    def load(self, backends: Mapping[str, SqliteBackend]) -> None:
        """Indexes the stored roles and bindings and subscribes to changes. The backends must be loaded."""
        for storage in (ROLES, CLUSTERROLES, ROLEBINDINGS, CLUSTERROLEBINDINGS):
            for cached in backends[storage].cache:
                self._put(StorageKey(storage, cached.key), cached.object())
        self._database.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.type != "DELETED":
            self._put(change.target, change.object)
            return
        key = change.target.key
        if change.target.resource in (ROLES, CLUSTERROLES):
            self._index.drop_role(rbac.make_role_key(*key))
        elif change.target.resource in (ROLEBINDINGS, CLUSTERROLEBINDINGS):
            self._index.drop_binding(rbac.make_binding_key(*key))

    def _put(self, storage_key: StorageKey, obj: Object) -> None:
        if storage_key.resource in (ROLES, CLUSTERROLES):
            self._index.put_role(rbac.make_role_key(*storage_key.key), parse_rules(obj.get("rules")))
        elif storage_key.resource in (ROLEBINDINGS, CLUSTERROLEBINDINGS):
            binding = parse_binding(obj)
            if binding is None:
                self._index.drop_binding(rbac.make_binding_key(*storage_key.key))
            else:
                self._index.put_binding(binding)
