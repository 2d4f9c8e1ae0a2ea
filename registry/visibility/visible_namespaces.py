"""In which namespaces RBAC lets a user get something. Pure.

What is found here is what the host's SubjectAccessReview says of `get` in each namespace (R-327 to R-343).
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
    """May they get `resource` in a namespace? With `by_name` the object is meant that has the namespace's name, as a
    Namespace is in the namespace that it is; otherwise any object."""

    group: str
    resource: str
    by_name: bool = False


class RoleScope(NamedTuple):
    """Where a role answers yes if it is bound for the whole cluster: everywhere, or in namespaces of these names."""

    everywhere: bool
    names: frozenset[str]


class RbacLookup(Protocol):
    """Roles and bindings at one time."""

    def bindings_of(self, subject: Subject, namespace: str | None = None) -> Iterable[RbacBinding]:
        """All of a subject, or those in one namespace, '' for those of the cluster."""
        ...

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None: ...


def role_scope(rules: Iterable[RbacRule], questions: Sequence[VisibilityCriterion]) -> RoleScope:
    """Where these rules answer yes to one of the questions at least."""
    names: set[str] = set()
    for rule in rules:
        for question in questions:
            if not _covers(rule, question):
                continue
            if not rule.names:
                return RoleScope(everywhere=True, names=frozenset())
            if question.by_name:
                names.update(rule.names)
    return RoleScope(everywhere=False, names=frozenset(names))


def visible_namespaces(user: User, bindings: RbacLookup, questions: Sequence[VisibilityCriterion]) -> VisibleNamespaces:
    """The namespaces in which `user` gets a yes; None for all, whether they exist or not."""
    found: set[str] = set()
    for namespace, (everywhere, names) in _reaches(user, bindings, questions):
        if not namespace:
            if everywhere:
                return None
            found |= names
        elif everywhere or namespace in names:
            found.add(namespace)
    return frozenset(found)


def is_namespace_visible(
    user: User, bindings: RbacLookup, questions: Sequence[VisibilityCriterion], namespace: str
) -> bool:
    """Whether `visible` has the namespace; that costs what is bound in it, not what is bound everywhere."""
    return any(
        everywhere or namespace in names
        for scope in ("", namespace)
        for _, (everywhere, names) in _reaches(user, bindings, questions, scope)
    )


def _reaches(
    user: User, bindings: RbacLookup, questions: Sequence[VisibilityCriterion], namespace: str | None = None
) -> Iterator[tuple[str, RoleScope]]:
    """The bindings of `user`: where each is, '' for the cluster, and the reach of its role."""
    known: dict[RoleKey, RoleScope] = {}
    for subject in subjects_of(user):
        for binding in bindings.bindings_of(subject, namespace):
            if binding.role not in known:
                known[binding.role] = role_scope(bindings.rules_of(binding.role) or (), questions)
            yield binding.namespace, known[binding.role]


_NOBODY = User(name="")


def _covers(rule: RbacRule, question: VisibilityCriterion) -> bool:
    """Whether the rule says yes to the question for one name at least, or for all."""
    access = AccessAttributes(
        user=_NOBODY,
        verb="get",
        group=question.group,
        resource=question.resource,
        name=rule.names[0] if rule.names else "",
    )
    return rule.allows(access)
