"""Visible objects by RBAC must equal the results of SubjectAccessReviews (R-327 to R-343)."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from apiserver.authorization.authorizer import AccessAttributes
from apiserver.meta.resource import Key, Resource
from apiserver.request.context import User
from apiserver.storage.visibility import VisibleObjects
from registry.rbac import role_index as rbac
from registry.rbac.role_index import (
    BoundRole,
    RbacBinding,
    RbacRule,
    RoleIndex,
    RoleKey,
    Subject,
    make_subject,
    split_key,
)
from registry.visibility import visible_objects as visible_objects_module
from registry.visibility.visible_objects import (
    NamedObjects,
    RbacLookup,
    RoleScope,
    VisibilityCriterion,
    VisibleInNamespace,
    role_scope,
    visible_in_namespace,
    visible_objects,
)
from tests.random_rbac import random_rule
from tests.registry.visibility.rbac_states import BOTH, GET, NAMESPACES, SUBJECTS, TENANT_NAMESPACES, TENANTS, USERS

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)
NOWHERE = RoleScope(everything=False)
EVERYWHERE = RoleScope(everything=True)
NAMES = (*TENANT_NAMESPACES, "x", "y")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([], NOWHERE, id="no rules, API-23"),
        pytest.param([GET], EVERYWHERE, id="get of tenants"),
        pytest.param([replace(GET, verbs=("*",))], EVERYWHERE, id="every verb"),
        pytest.param([replace(GET, verbs=("list", "watch"))], NOWHERE, id="list and watch without get"),
        pytest.param([replace(GET, groups=("*",))], EVERYWHERE, id="every group"),
        pytest.param([replace(GET, groups=("",))], NOWHERE, id="another group"),
        pytest.param([replace(GET, resources=("*",))], EVERYWHERE, id="every resource"),
        pytest.param([replace(GET, resources=("tenants/status",))], NOWHERE, id="a subresource"),
        pytest.param([replace(GET, resources=("*/status",))], NOWHERE, id="a subresource of everything"),
        pytest.param([replace(GET, names=("alice",))], NOWHERE, id="tenants of one name"),
        pytest.param([RbacRule(("get",), ("",), ("namespaces",))], EVERYWHERE, id="get of namespaces"),
        pytest.param(
            [RbacRule(("get",), ("",), ("namespaces",), ("a", "b"))],
            RoleScope(False, namespaces=frozenset(("a", "b"))),
            id="get of named namespaces",
        ),
        pytest.param(
            [RbacRule(("get",), ("",), ("namespaces/status",), ("a",))], NOWHERE, id="the status of a namespace"
        ),
        pytest.param([RbacRule(("get",), paths=("*",))], NOWHERE, id="paths"),
        pytest.param(
            [RbacRule(("get",), ("",), ("namespaces",), ("a",)), GET], EVERYWHERE, id="the widest of several rules"
        ),
    ],
)
def test_the_scope_of_a_role_follows_from_its_rules(rules: list[RbacRule], expected: RoleScope) -> None:
    assert role_scope(rules, BOTH) == expected


def test_names_of_objects_count_where_objects_are_shown() -> None:
    """A user who may get one Tenant sees it, but not the namespace that it lies in."""
    rules = [replace(GET, names=("alice",)), replace(GET, verbs=("list",), names=("bob",))]
    assert role_scope(rules, (TENANTS, NAMESPACES)) == RoleScope(False, names=frozenset(("alice",)))
    assert role_scope(rules, BOTH) == NOWHERE


def random_index(rng: random.Random) -> RoleIndex:
    index = RoleIndex()
    roles = [rbac.make_role_key(rng.choice(["", "", "", *TENANT_NAMESPACES]), f"r{number}") for number in range(8)]
    for role in roles[1:]:
        index.put_role(role, [random_rule(rng, TENANT_NAMESPACES) for _ in range(rng.randint(0, 3))])
    for number in range(rng.randint(20, 100)):
        namespace = rng.choice([*TENANT_NAMESPACES, *TENANT_NAMESPACES, "", ""])
        usable = [role for role in roles if split_key(role).namespace in ("", namespace)]
        if usable:
            subjects = tuple(rng.sample(SUBJECTS, rng.randint(1, 4)))
            index.put_binding(RbacBinding(rbac.make_binding_key(namespace, f"b{number}"), rng.choice(usable), subjects))
    return index


def review(index: RoleIndex, user: User, key: Key, criteria: Sequence[VisibilityCriterion]) -> bool:
    """The result of SubjectAccessReviews for one object."""

    def name(criterion: VisibilityCriterion) -> str:
        names = {NamedObjects.NAMESPACES: key.namespace, NamedObjects.OBJECTS: key.name, NamedObjects.NOTHING: ""}
        return names[criterion.named]

    requests = (
        AccessAttributes(
            user=user,
            verb="get",
            group=criterion.group,
            resource=criterion.resource,
            namespace=key.namespace,
            name=name(criterion),
        )
        for criterion in criteria
    )
    return any(index.decide(attributes).allowed for attributes in requests)


ComputeVisibility = Callable[[User, RoleIndex, Sequence[VisibilityCriterion]], VisibleObjects]


@dataclass(frozen=True)
class Reviews:
    """The answers of reviews for one user by one index."""

    index: RoleIndex
    user: User
    criteria: Sequence[VisibilityCriterion]
    allowed: Sequence[tuple[Key, bool]]


@functools.cache
def reviews(states: int) -> Sequence[Reviews]:
    """Of `states` indices; made once, because every mutant is compared with the same."""
    rng = random.Random(7)
    found = []
    for _ in range(states):
        index = random_index(rng)
        for user in USERS:
            for criteria in ((TENANTS,), BOTH):
                keys = [Key(namespace, rng.choice(NAMES)) for namespace in TENANT_NAMESPACES]
                found.append(
                    Reviews(index, user, criteria, [(key, review(index, user, key, criteria)) for key in keys])
                )
    return found


def differences(compute: ComputeVisibility, *, states: int) -> tuple[int, int, int]:
    """The number of differences between `compute` and the reviews, of all comparisons, and of allowed reviews."""
    wrong = total = allowed = 0
    for each in reviews(states):
        visible = compute(each.user, each.index, each.criteria)
        for key, expected in each.allowed:
            total += 1
            allowed += expected
            wrong += visible.includes(THINGS, key) != expected
    return wrong, total, allowed


def test_visible_objects_agree_with_access_reviews() -> None:
    wrong, total, allowed = differences(visible_objects, states=300)
    assert total >= 10_000
    assert 0.3 < allowed / total < 0.7
    assert wrong == 0


def test_one_namespace_alone_gives_what_all_together_give() -> None:
    rng = random.Random(8)
    for _ in range(100):
        index = random_index(rng)
        for user, criteria in ((user, criteria) for user in USERS for criteria in ((TENANTS, NAMESPACES), BOTH)):
            visible = visible_objects(user, index, criteria)
            for namespace in TENANT_NAMESPACES:
                everything = visible.namespaces is None or namespace in visible.namespaces
                names = frozenset(key.name for key in visible.keys if key.namespace == namespace)
                found = visible_in_namespace(user, index, criteria, namespace)
                assert found == VisibleInNamespace(everything, names)


Patch = Callable[[pytest.MonkeyPatch], None]


def _rules(change: Callable[[RbacRule], RbacRule]) -> Patch:
    """A mutant that sees changed rules."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        real = visible_objects_module._covers
        patch.setattr(visible_objects_module, "_covers", lambda rule, criterion: real(change(rule), criterion))

    return apply


def _scope(change: Callable[[RoleScope, Iterable[RbacRule], Sequence[VisibilityCriterion]], RoleScope]) -> Patch:
    def apply(patch: pytest.MonkeyPatch) -> None:
        real = visible_objects_module.role_scope
        patch.setattr(
            visible_objects_module,
            "role_scope",
            lambda rules, criteria: change(real(rules, criteria), rules, criteria),
        )

    return apply


def _subjects(change: Callable[[User], Iterable[Subject]]) -> Patch:
    return lambda patch: patch.setattr(visible_objects_module, "subjects_of", change)


def _bindings(keep: Callable[[BoundRole], bool]) -> Patch:
    def apply(patch: pytest.MonkeyPatch) -> None:
        real = visible_objects_module._scopes
        patch.setattr(
            visible_objects_module,
            "_scopes",
            lambda user, index, *rest: real(user, _FilteredLookup(index, keep), *rest),
        )

    return apply


@dataclass(frozen=True)
class _FilteredLookup:
    index: RbacLookup
    keep: Callable[[BoundRole], bool]

    def roles_of(self, subject: Subject, namespace: str | None = None) -> Iterable[BoundRole]:
        return (each for each in self.index.roles_of(subject, namespace) if self.keep(each))

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None:
        return self.index.rules_of(key)


MUTANTS = {
    "groups are ignored": _subjects(lambda user: [make_subject("User", user.name)]),
    "user names are ignored": _subjects(lambda user: [make_subject("Group", group) for group in user.groups]),
    "the kind of a subject is ignored": _subjects(
        lambda user: [make_subject(kind, name) for kind in ("User", "Group") for name in (user.name, *user.groups)]
    ),
    "ClusterRoleBindings are ignored": _bindings(lambda bound: bool(bound[0])),
    "Roles are ignored": _bindings(lambda bound: not split_key(bound[1]).namespace),
    "ClusterRoles are ignored": _bindings(lambda bound: bool(split_key(bound[1]).namespace)),
    "every binding makes its namespace visible, API-23": _scope(lambda found, rules, criteria: EVERYWHERE),
    "resourceNames are ignored": _scope(
        lambda found, rules, criteria: role_scope([replace(rule, names=()) for rule in rules], criteria)
    ),
    "verbs are ignored": _rules(lambda rule: replace(rule, verbs=("*",))),
    "API groups are ignored": _rules(lambda rule: replace(rule, groups=("*",))),
    "subresources are treated as their resource": _rules(
        lambda rule: replace(rule, resources=tuple(each.partition("/")[0] for each in rule.resources))
    ),
    "* is treated as a name": _rules(
        lambda rule: replace(rule, resources=tuple(each for each in rule.resources if each != "*"))
    ),
    "only the first rule is used": _scope(lambda found, rules, criteria: role_scope(tuple(rules)[:1], criteria)),
    "names of namespaces are ignored": _scope(lambda found, rules, criteria: found._replace(namespaces=frozenset())),
    "names of objects are ignored": _scope(lambda found, rules, criteria: found._replace(names=frozenset())),
    "names of objects show their namespace": _scope(
        lambda found, rules, criteria: found._replace(everything=found.everything or bool(found.names))
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
def test_the_comparison_with_reviews_detects_a_mutant(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews(300)
    mutant(monkeypatch)
    wrong, _, _ = differences(visible_objects, states=300)
    assert wrong > 0
