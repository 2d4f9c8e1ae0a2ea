"""Computes the objects that are visible to a user by RBAC. Pure.

The result equals that of SubjectAccessReviews for `get` of each object (R-327 to R-343).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from apiserver.authorization.authorizer import AccessAttributes
from apiserver.meta.resource import Key
from apiserver.request.context import User
from apiserver.storage.visibility import EVERYTHING, VisibleObjects
from registry.rbac.role_index import BoundRole, RbacRule, RoleKey, Subject, subjects_of


class NamedObjects(Enum):
    """The effect of a rule that allows to `get` objects of certain names only."""

    NOTHING = "nothing"
    OBJECTS = "objects"
    """The objects with these names are visible."""
    NAMESPACES = "namespaces"
    """The namespaces with these names are visible: the objects are Namespaces."""


@dataclass(frozen=True, slots=True)
class VisibilityCriterion:
    """A namespace is visible to users who may `get` every object of the resource in it, or use another `verb` on them.
    `named` is the effect of rules with resourceNames."""

    group: str
    resource: str
    named: NamedObjects = NamedObjects.NOTHING
    verb: str = "get"


class RoleScope(NamedTuple):
    """The objects that a bound role makes visible: everything, or these namespaces and objects with these names."""

    everything: bool
    namespaces: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


class VisibleInNamespace(NamedTuple):
    """The visible objects of one namespace: all, or those with these names."""

    everything: bool
    names: frozenset[str] = frozenset()


class RbacLookup(Protocol):
    """Access to the roles and bindings at one point in time."""

    def roles_of(self, subject: Subject, namespace: str | None = None) -> Iterable[BoundRole]:
        """The bindings of a subject: all of them, or those in `namespace`, '' for ClusterRoleBindings."""
        ...

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None: ...


def role_scope(rules: Iterable[RbacRule], criteria: Sequence[VisibilityCriterion]) -> RoleScope:
    """The scope in which these rules meet at least one of the criteria."""
    namespaces: set[str] = set()
    names: set[str] = set()
    for rule in rules:
        for criterion in criteria:
            if not _covers(rule, criterion):
                continue
            if not rule.names:
                return RoleScope(everything=True)
            if criterion.named is NamedObjects.NAMESPACES:
                namespaces.update(rule.names)
            elif criterion.named is NamedObjects.OBJECTS:
                names.update(rule.names)
    return RoleScope(False, frozenset(namespaces), frozenset(names))


def visible_objects(user: User, bindings: RbacLookup, criteria: Sequence[VisibilityCriterion]) -> VisibleObjects:
    """The objects that are visible to `user`, including those that do not exist."""
    namespaces: set[str] = set()
    keys: set[Key] = set()
    names: set[str] = set()
    for namespace, scope in _scopes(user, bindings, criteria):
        if not namespace:
            if scope.everything:
                return EVERYTHING
            namespaces |= scope.namespaces
            names |= scope.names
        elif scope.everything or namespace in scope.namespaces:
            namespaces.add(namespace)
        else:
            keys.update(Key(namespace, name) for name in scope.names)
    outside = (key for key in keys if key.namespace not in namespaces)
    return VisibleObjects(frozenset(namespaces), frozenset(outside), frozenset(names))


def visible_in_namespace(
    user: User, bindings: RbacLookup, criteria: Sequence[VisibilityCriterion], namespace: str
) -> VisibleInNamespace:
    """The part of `visible_objects` that is in one namespace, except for objects that are visible by their names in
    every namespace. Reads only the cluster-wide bindings and those of the namespace."""
    names: set[str] = set()
    for where in ("", namespace):
        for _, scope in _scopes(user, bindings, criteria, where):
            if scope.everything or namespace in scope.namespaces:
                return VisibleInNamespace(everything=True)
            if where:
                names |= scope.names
    return VisibleInNamespace(False, frozenset(names))


def _scopes(
    user: User, bindings: RbacLookup, criteria: Sequence[VisibilityCriterion], namespace: str | None = None
) -> Iterator[tuple[str, RoleScope]]:
    """The namespace of each binding of `user`, '' for a ClusterRoleBinding, and the scope of its role."""
    scopes: dict[RoleKey, RoleScope] = {}
    for subject in subjects_of(user):
        for where, role in bindings.roles_of(subject, namespace):
            scope = scopes.get(role)
            if scope is None:
                scope = scopes[role] = role_scope(bindings.rules_of(role) or (), criteria)
            yield where, scope


_NOBODY = User(name="")


def _covers(rule: RbacRule, criterion: VisibilityCriterion) -> bool:
    """True if the rule meets the criterion for all objects or for at least one name."""
    access = AccessAttributes(
        user=_NOBODY,
        verb=criterion.verb,
        group=criterion.group,
        resource=criterion.resource,
        name=rule.names[0] if rule.names else "",
    )
    return rule.allows(access)
