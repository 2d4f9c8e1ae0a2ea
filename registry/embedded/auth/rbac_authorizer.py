"""The embedded host's RBAC at work: an index that follows the stored objects, and the authorizer over it."""

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
    """Allows what the stored roles and bindings allow, from the moment at which they are stored."""

    def __init__(self, index: RoleIndex) -> None:
        self._index = index

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return self._index.decide(attributes)


class RoleIndexUpdater:
    """Keeps a RoleIndex as the database has it."""

    def __init__(self, *, database: Database, index: RoleIndex) -> None:
        self._database = database
        self._index = index

    def load(self, backends: Mapping[str, SqliteBackend]) -> None:
        """Take in what is stored, and follow it from then on. The backends are loaded."""
        for storage in (ROLES, CLUSTERROLES, ROLEBINDINGS, CLUSTERROLEBINDINGS):
            for cached in backends[storage].cache:
                self._put(StorageKey(storage, cached.key), cached.object())
        self._database.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.type != "DELETED":
            self._put(change.place, change.object)
            return
        key = change.place.key
        if change.place.resource in (ROLES, CLUSTERROLES):
            self._index.drop_role(rbac.make_role_key(*key))
        elif change.place.resource in (ROLEBINDINGS, CLUSTERROLEBINDINGS):
            self._index.drop_binding(rbac.make_binding_key(*key))

    def _put(self, place: StorageKey, obj: Object) -> None:
        if place.resource in (ROLES, CLUSTERROLES):
            self._index.put_role(rbac.make_role_key(*place.key), parse_rules(obj.get("rules")))
        elif place.resource in (ROLEBINDINGS, CLUSTERROLEBINDINGS):
            binding = parse_binding(obj)
            if binding is None:
                self._index.drop_binding(rbac.make_binding_key(*place.key))
            else:
                self._index.put_binding(binding)
