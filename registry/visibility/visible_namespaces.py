"""Computes the namespaces that are visible to a user by RBAC. Pure.

The result equals that of SubjectAccessReviews for `get` in each namespace (R-327 to R-343).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from apiserver.authorization.authorizer import AccessAttributes
from apiserver.request.context import User
from apiserver.storage.visibility import VisibleNamespaces
from registry.rbac.role_index import RbacBinding, RbacRule, RoleKey, Subject, subjects_of


@dataclass(frozen=True, slots=True)
class VisibilityCriterion:
    """A namespace is visible to users who may `get` the resource in it: any object, or with `by_name` only the one that
    has the name of the namespace, as a Namespace has."""

    group: str
    resource: str
    by_name: bool = False


class RoleScope(NamedTuple):
    """The namespaces that a role makes visible by a ClusterRoleBinding: all, or those with these names."""

    everywhere: bool
    names: frozenset[str]


class RbacLookup(Protocol):
    """Access to the roles and bindings at one point in time."""

    def bindings_of(self, subject: Subject, namespace: str | None = None) -> Iterable[RbacBinding]:
        """The bindings of a subject: all of them, or those in `namespace`, '' for ClusterRoleBindings."""
        ...

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None: ...


def role_scope(rules: Iterable[RbacRule], criteria: Sequence[VisibilityCriterion]) -> RoleScope:
    """The scope in which these rules meet at least one of the criteria."""
    names: set[str] = set()
    for rule in rules:
        for criterion in criteria:
            if not _covers(rule, criterion):
                continue
            if not rule.names:
                return RoleScope(everywhere=True, names=frozenset())
            if criterion.by_name:
                names.update(rule.names)
    return RoleScope(everywhere=False, names=frozenset(names))


def visible_namespaces(user: User, bindings: RbacLookup, criteria: Sequence[VisibilityCriterion]) -> VisibleNamespaces:
    """The namespaces that are visible to `user`, None for all, including those that do not exist."""
    namespaces: set[str] = set()
    for namespace, (everywhere, names) in _scopes(user, bindings, criteria):
        if not namespace:
            if everywhere:
                return None
            namespaces |= names
        elif everywhere or namespace in names:
            namespaces.add(namespace)
    return frozenset(namespaces)


def is_namespace_visible(
    user: User, bindings: RbacLookup, criteria: Sequence[VisibilityCriterion], namespace: str
) -> bool:
    """True if `visible_namespaces` contains the namespace. Reads only the bindings of the cluster and the namespace."""
    return any(
        everywhere or namespace in names
        for scope in ("", namespace)
        for _, (everywhere, names) in _scopes(user, bindings, criteria, scope)
    )


def _scopes(
    user: User, bindings: RbacLookup, criteria: Sequence[VisibilityCriterion], namespace: str | None = None
) -> Iterator[tuple[str, RoleScope]]:
    """The namespace of each binding of `user`, '' for a ClusterRoleBinding, and the scope of its role."""
    scopes: dict[RoleKey, RoleScope] = {}
    for subject in subjects_of(user):
        for binding in bindings.bindings_of(subject, namespace):
            if binding.role not in scopes:
                scopes[binding.role] = role_scope(bindings.rules_of(binding.role) or (), criteria)
            yield binding.namespace, scopes[binding.role]


_NOBODY = User(name="")


def _covers(rule: RbacRule, criterion: VisibilityCriterion) -> bool:
    """True if the rule meets the criterion for all objects or for at least one name."""
    access = AccessAttributes(
        user=_NOBODY,
        verb="get",
        group=criterion.group,
        resource=criterion.resource,
        name=rule.names[0] if rule.names else "",
    )
    return rule.allows(access)
