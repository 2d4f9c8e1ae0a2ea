"""Visibility by RBAC. Its result must equal that of SubjectAccessReviews (R-327 to R-343)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from apiserver.authorization.authorizer import AccessAttributes
from apiserver.meta.errors import ServiceUnavailable
from apiserver.meta.resource import Object
from apiserver.request.context import User
from apiserver.storage.visibility import VisibilityChange, VisibleNamespaces, is_visible
from registry.rbac import role_index as rbac
from registry.rbac.role_index import (
    RbacBinding,
    RbacRule,
    RoleIndex,
    RoleKey,
    Subject,
    make_subject,
    service_account_user,
    split_key,
)
from registry.visibility import by_rbac
from registry.visibility import visible_namespaces as visible_namespaces_module
from registry.visibility.by_rbac import RbacVisibility
from registry.visibility.rbac_feed import RbacFeed
from registry.visibility.rbac_history import RbacHistory
from registry.visibility.visible_namespaces import (
    RbacLookup,
    RoleScope,
    VisibilityCriterion,
    role_scope,
    visible_namespaces,
)
from tests.random_rbac import random_rule

TENANTS = VisibilityCriterion("apps.cozystack.io", "tenants")
NAMESPACES = VisibilityCriterion("", "namespaces", by_name=True)
BOTH = (TENANTS, NAMESPACES)
GET = RbacRule(verbs=("get",), groups=("apps.cozystack.io",), resources=("tenants",))
NOWHERE = RoleScope(everywhere=False, names=frozenset())
EVERYWHERE = RoleScope(everywhere=True, names=frozenset())


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
            RoleScope(False, frozenset(("a", "b"))),
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


# Random RBAC states, compared with SubjectAccessReviews.

TENANT_NAMESPACES = [f"tenant-{letter}" for letter in "abcdef"]
USERS = [
    User(name="alice", groups=("devs", "system:authenticated")),
    User(name="bob", groups=("ops", "devs")),
    User(name="devs", groups=("ops",)),
    service_account_user("tenant-a", "runner"),
]
SUBJECTS = [
    make_subject("User", "alice"),
    make_subject("User", "bob"),
    make_subject("User", "system:serviceaccount:tenant-a:runner"),
    make_subject("Group", "devs"),
    make_subject("Group", "ops"),
    make_subject("Group", "system:serviceaccounts:tenant-a"),
    make_subject("Group", "alice"),
]


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


def review(index: RoleIndex, user: User, namespace: str, criteria: Sequence[VisibilityCriterion]) -> bool:
    """The result of SubjectAccessReviews for one namespace."""
    requests = (
        AccessAttributes(
            user=user,
            verb="get",
            group=criterion.group,
            resource=criterion.resource,
            namespace=namespace,
            name=namespace if criterion.by_name else "",
        )
        for criterion in criteria
    )
    return any(index.decide(attributes).allowed for attributes in requests)


ComputeVisibility = Callable[[User, RoleIndex, Sequence[VisibilityCriterion]], VisibleNamespaces]


def differences(compute: ComputeVisibility, *, states: int) -> tuple[int, int, int]:
    """The number of differences between `compute` and the reviews, of all comparisons, and of allowed reviews."""
    rng = random.Random(7)
    wrong = total = allowed = 0
    for _ in range(states):
        index = random_index(rng)
        for user in USERS:
            for criteria in ((TENANTS,), BOTH):
                visible = compute(user, index, criteria)
                for namespace in TENANT_NAMESPACES:
                    expected = review(index, user, namespace, criteria)
                    total += 1
                    allowed += expected
                    wrong += is_visible(visible, namespace) != expected
    return wrong, total, allowed


def test_visible_namespaces_agree_with_access_reviews() -> None:
    wrong, total, allowed = differences(visible_namespaces, states=300)
    assert total >= 10_000
    assert 0.3 < allowed / total < 0.7
    assert wrong == 0


Patch = Callable[[pytest.MonkeyPatch], None]


def _rules(change: Callable[[RbacRule], RbacRule]) -> Patch:
    """A mutant that sees changed rules."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        real = visible_namespaces_module._covers
        patch.setattr(visible_namespaces_module, "_covers", lambda rule, criterion: real(change(rule), criterion))

    return apply


def _scope(change: Callable[[RoleScope, Iterable[RbacRule], Sequence[VisibilityCriterion]], RoleScope]) -> Patch:
    def apply(patch: pytest.MonkeyPatch) -> None:
        real = visible_namespaces_module.role_scope
        patch.setattr(
            visible_namespaces_module,
            "role_scope",
            lambda rules, criteria: change(real(rules, criteria), rules, criteria),
        )

    return apply


def _subjects(change: Callable[[User], Iterable[Subject]]) -> Patch:
    return lambda patch: patch.setattr(visible_namespaces_module, "subjects_of", change)


def _bindings(keep: Callable[[RbacBinding], bool]) -> Patch:
    def apply(patch: pytest.MonkeyPatch) -> None:
        real = visible_namespaces_module._scopes
        patch.setattr(
            visible_namespaces_module,
            "_scopes",
            lambda user, index, *rest: real(user, _FilteredLookup(index, keep), *rest),
        )

    return apply


@dataclass(frozen=True)
class _FilteredLookup:
    index: RbacLookup
    keep: Callable[[RbacBinding], bool]

    def bindings_of(self, subject: Subject, namespace: str | None = None) -> Iterable[RbacBinding]:
        return (each for each in self.index.bindings_of(subject, namespace) if self.keep(each))

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None:
        return self.index.rules_of(key)


MUTANTS = {
    "groups are ignored": _subjects(lambda user: [make_subject("User", user.name)]),
    "user names are ignored": _subjects(lambda user: [make_subject("Group", group) for group in user.groups]),
    "the kind of a subject is ignored": _subjects(
        lambda user: [make_subject(kind, name) for kind in ("User", "Group") for name in (user.name, *user.groups)]
    ),
    "ClusterRoleBindings are ignored": _bindings(lambda binding: bool(binding.namespace)),
    "Roles are ignored": _bindings(lambda binding: not split_key(binding.role).namespace),
    "ClusterRoles are ignored": _bindings(lambda binding: bool(split_key(binding.role).namespace)),
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
    "names of namespaces are ignored": _scope(lambda found, rules, criteria: found._replace(names=frozenset())),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
def test_the_comparison_with_reviews_detects_a_mutant(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    wrong, _, _ = differences(visible_namespaces, states=300)
    assert wrong > 0


# The history, and subscriptions to changes.


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def binding(name: str, namespace: str = "tenant-a", *, user: str = "alice", role: str = "view") -> RbacBinding:
    return RbacBinding(
        rbac.make_binding_key(namespace, name), rbac.make_role_key("", role), (make_subject("User", user),)
    )


ALICE, BOB = USERS[0], USERS[1]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def history(clock: Clock) -> RbacHistory:
    made = RbacHistory(clock=clock, max_changes=4)
    made.put_role(rbac.make_role_key("", "view"), (GET,), 5)
    made.begin(10)
    return made


async def visibility_source(history: RbacHistory) -> RbacVisibility:
    synced = asyncio.Event()
    synced.set()
    return RbacVisibility(history, [TENANTS], synced=synced)


async def test_subscribers_get_only_the_changes_that_affect_their_user(history: RbacHistory) -> None:
    source = await visibility_source(history)
    changes: dict[str, list[VisibilityChange]] = {"alice": [], "bob": []}
    for user in (ALICE, BOB):
        (await source.for_user(user)).subscribe(changes[user.name].append)
    history.put_binding(binding("x"), 11)
    history.put_binding(binding("y"), 12)
    history.put_role(rbac.make_role_key("", "view"), (replace(GET, verbs=("list",)),), 13)
    nothing, something = frozenset[str](), frozenset(("tenant-a",))
    assert changes["alice"] == [
        VisibilityChange(nothing, nothing, something, 11),
        VisibilityChange(something, something, nothing, 13),
    ]
    assert changes["bob"] == []


async def test_a_cancelled_subscription_gets_no_changes(history: RbacHistory) -> None:
    changes: list[VisibilityChange] = []
    end = (await (await visibility_source(history)).for_user(ALICE)).subscribe(changes.append)
    end()
    history.put_binding(binding("x"), 11)
    assert changes == []


async def test_an_evicted_visibility_is_updated_while_it_is_referenced(
    history: RbacHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_rbac, "_MAX_IDENTITIES", 1)
    source = await visibility_source(history)
    first = await source.for_user(ALICE)
    await source.for_user(BOB)
    history.put_binding(binding("x"), 11)
    assert first.namespaces == frozenset(("tenant-a",))
    assert (await source.for_user(ALICE)).namespaces == frozenset(("tenant-a",))


async def test_users_with_the_same_identity_share_a_visibility(history: RbacHistory) -> None:
    source = await visibility_source(history)
    same = replace(ALICE, groups=tuple(reversed(ALICE.groups)), uid="7")
    assert await source.for_user(ALICE) is await source.for_user(same)


async def test_system_masters_see_everything(history: RbacHistory) -> None:
    visibility = await (await visibility_source(history)).for_user(User(name="x", groups=("system:masters",)))
    assert visibility.namespaces is None
    assert visibility.change_since(1, (0.0, 0.0)) == VisibilityChange(None, None, None, 1)


async def test_visibility_is_unavailable_before_rbac_is_synced(
    history: RbacHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API-27."""
    monkeypatch.setattr(by_rbac, "_SYNC_SECONDS", 0.01)
    with pytest.raises(ServiceUnavailable):
        await RbacVisibility(history, [TENANTS], synced=asyncio.Event()).for_user(ALICE)


async def test_system_masters_do_not_wait_for_the_sync(history: RbacHistory) -> None:
    """R-343: they see everything without RBAC."""
    visibility = await RbacVisibility(history, [TENANTS], synced=asyncio.Event()).for_user(
        User(name="x", groups=("system:masters",))
    )
    assert visibility.namespaces is None


async def test_change_since_covers_every_state_in_between(history: RbacHistory, clock: Clock) -> None:
    visibility = await (await visibility_source(history)).for_user(ALICE)
    history.put_binding(binding("unchanged", "tenant-u"), 11)
    clock.now = 1100.0
    history.put_binding(binding("lost", "tenant-l"), 12)
    clock.now = 1101.0
    history.drop_binding(rbac.make_binding_key("tenant-l", "lost"), 13)
    clock.now = 1102.0
    history.put_binding(binding("gained", "tenant-g"), 14)
    change = visibility.change_since(11, (1100.5, 1100.6))
    assert change is not None
    assert change.lost("tenant-l")
    assert change.gained("tenant-g")
    assert not change.gained("tenant-u")
    assert not change.lost("tenant-u")
    assert change.affected == frozenset(("tenant-l", "tenant-g"))
    assert change.rv == 14


async def test_change_since_is_unknown_beyond_the_history(history: RbacHistory, clock: Clock) -> None:
    visibility = await (await visibility_source(history)).for_user(ALICE)
    for number in range(6):
        clock.now += 100
        history.put_binding(binding(f"b{number}"), 20 + number)
    assert visibility.change_since(25, (clock.now - 50, clock.now)) is not None
    assert visibility.change_since(25, (clock.now - 500, clock.now)) is None
    assert visibility.change_since(9, (clock.now, clock.now)) is None


async def test_change_since_without_event_times_starts_with_the_history(history: RbacHistory, clock: Clock) -> None:
    """A watch that resumes from a list does not need a new list if there has been no event yet."""
    visibility = await (await visibility_source(history)).for_user(ALICE)
    always = (float("-inf"), float("inf"))
    change = visibility.change_since(10, always)
    assert change is not None
    assert change.affected == frozenset()
    clock.now += 1
    history.put_binding(binding("x"), 11)
    change = visibility.change_since(10, always)
    assert change is not None
    assert change.gained("tenant-a")
    assert visibility.change_since(9, always) is None
    for number in range(6):
        history.put_binding(binding(f"b{number}"), 20 + number)
    assert visibility.change_since(10, always) is None


ROLES = [rbac.make_role_key("", "r0"), rbac.make_role_key("tenant-a", "r1"), rbac.make_role_key("", "r2")]


def change_at_random(history: RbacHistory, rng: random.Random, rv: int) -> None:
    key = rbac.make_binding_key(rng.choice(["", *TENANT_NAMESPACES]), f"b{rng.randint(0, 4)}")
    what = rng.random()
    if what < 0.5:
        history.put_binding(RbacBinding(key, rng.choice(ROLES), tuple(rng.sample(SUBJECTS, 2))), rv)
    elif what < 0.65:
        history.drop_binding(key, rv)
    elif what < 0.9:
        history.put_role(rng.choice(ROLES), (random_rule(rng, TENANT_NAMESPACES),), rv)
    else:
        history.drop_role(rng.choice(ROLES), rv)


def test_past_states_are_reconstructed(clock: Clock) -> None:
    """Every recorded state can be reconstructed after later changes."""
    rng = random.Random(3)
    history = RbacHistory(clock=clock)
    history.begin(1)
    expected_states: list[tuple[float, list[VisibleNamespaces]]] = []
    for step in range(60):
        clock.now += 1
        change_at_random(history, rng, step + 2)
        expected_states.append((clock.now, [visible_namespaces(user, history.index, BOTH) for user in USERS]))
    for moment, expected in expected_states:
        states = history.states_between(moment + 0.5, moment + 0.5, frozenset())
        assert states is not None
        assert [visible_namespaces(user, states[-1], BOTH) for user in USERS] == expected


async def test_visibility_is_current_after_every_change(clock: Clock) -> None:
    """Subscribers are notified only of differences."""
    rng = random.Random(5)
    history = RbacHistory(clock=clock)
    history.begin(1)
    synced = asyncio.Event()
    synced.set()
    visibility_source = [await RbacVisibility(history, BOTH, synced=synced).for_user(user) for user in USERS]
    notified: dict[int, list[VisibleNamespaces]] = {number: [] for number in range(len(USERS))}
    for number, visibility in enumerate(visibility_source):
        visibility.subscribe(lambda change, number=number: notified[number].append(change.now))  # type: ignore[misc]
    seen: list[VisibleNamespaces] = [frozenset()] * len(USERS)
    for step in range(400):
        change_at_random(history, rng, step + 2)
        for number, user in enumerate(USERS):
            now = visible_namespaces(user, history.index, BOTH)
            assert visibility_source[number].namespaces == now
            assert notified[number] == ([now] if now != seen[number] else [])
            seen[number] = now
            notified[number].clear()


# RbacFeed.


def role(name: str, *verbs: str, namespace: str = "") -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    rule = {"apiGroups": ["apps.cozystack.io"], "resources": ["tenants"], "verbs": list(verbs)}
    return {"metadata": metadata, "rules": [rule]}


def role_binding(name: str, role: str, namespace: str = "tenant-a") -> Object:
    subjects = [{"kind": "User", "name": "alice"}]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }


async def fed() -> tuple[RbacHistory, RbacFeed, Any]:
    history = RbacHistory()
    feed = RbacFeed(history)
    await feed.roles.replace([], 3)
    await feed.cluster_roles.replace([role("view", "get"), role("none", "list")], 5)
    await feed.bindings.replace([role_binding("x", "view")], 4)
    assert not feed.synced.is_set()
    await feed.cluster_bindings.replace([], 2)
    assert feed.synced.is_set()
    return history, feed, await RbacVisibility(history, [TENANTS], synced=feed.synced).for_user(ALICE)


async def test_lists_and_events_update_the_visibility() -> None:
    history, feed, visibility = await fed()
    assert history.first_rv == 5
    assert visibility.namespaces == frozenset(("tenant-a",))
    feed.bindings.apply("ADDED", role_binding("y", "view", "tenant-b"), 6)
    assert visibility.namespaces == frozenset(("tenant-a", "tenant-b"))
    feed.bindings.apply("DELETED", role_binding("y", "view", "tenant-b"), 7)
    feed.cluster_roles.apply("MODIFIED", role("view", "list"), 8)
    assert visibility.namespaces == frozenset()


async def test_objects_missing_from_a_new_list_are_removed() -> None:
    history, feed, visibility = await fed()
    await feed.bindings.replace([role_binding("z", "view", "tenant-c")], 9)
    assert visibility.namespaces == frozenset(("tenant-c",))
    await feed.cluster_roles.replace([], 10)
    assert visibility.namespaces == frozenset()
    assert history.rv == 10


async def test_a_binding_that_becomes_invalid_grants_nothing() -> None:
    _, feed, visibility = await fed()
    feed.bindings.apply("MODIFIED", {**role_binding("x", "view"), "roleRef": {"kind": "Other", "name": "view"}}, 11)
    assert visibility.namespaces == frozenset()
