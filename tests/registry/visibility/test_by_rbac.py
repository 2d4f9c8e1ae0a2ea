"""Where RBAC lets users get what is asked for: the index must say what a SubjectAccessReview says (R-327 to R-343)."""

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
from registry.visibility import by_rbac as seeing
from registry.visibility import visible_namespaces as reaching
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
        pytest.param([replace(GET, verbs=("list", "watch"))], NOWHERE, id="list and watch only open the door"),
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
            id="of some names",
        ),
        pytest.param([RbacRule(("get",), ("",), ("namespaces/status",), ("a",))], NOWHERE, id="a namespace's status"),
        pytest.param([RbacRule(("get",), paths=("*",))], NOWHERE, id="paths"),
        pytest.param(
            [RbacRule(("get",), ("",), ("namespaces",), ("a",)), GET], EVERYWHERE, id="the widest of several rules"
        ),
    ],
)
def test_where_rules_answer_yes(rules: list[RbacRule], expected: RoleScope) -> None:
    assert role_scope(rules, BOTH) == expected


# Random states of RBAC, and what a SubjectAccessReview says of them.

PLACES = [f"tenant-{letter}" for letter in "abcdef"]
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
    roles = [rbac.make_role_key(rng.choice(["", "", "", *PLACES]), f"r{number}") for number in range(8)]
    for role in roles[1:]:
        index.put_role(role, [random_rule(rng, PLACES) for _ in range(rng.randint(0, 3))])
    for number in range(rng.randint(20, 100)):
        namespace = rng.choice([*PLACES, *PLACES, "", ""])
        usable = [role for role in roles if split_key(role).namespace in ("", namespace)]
        if usable:
            subjects = tuple(rng.sample(SUBJECTS, rng.randint(1, 4)))
            index.put_binding(RbacBinding(rbac.make_binding_key(namespace, f"b{number}"), rng.choice(usable), subjects))
    return index


def review(index: RoleIndex, user: User, place: str, questions: Sequence[VisibilityCriterion]) -> bool:
    """What SubjectAccessReviews of one namespace say."""
    asked = (
        AccessAttributes(
            user=user,
            verb="get",
            group=question.group,
            resource=question.resource,
            namespace=place,
            name=place if question.by_name else "",
        )
        for question in questions
    )
    return any(index.decide(attributes).allowed for attributes in asked)


Look = Callable[[User, RoleIndex, Sequence[VisibilityCriterion]], VisibleNamespaces]


def differences(look: Look, *, states: int) -> tuple[int, int, int]:
    """How often `look` and the reviews differ, of how many comparisons, of which so many were a yes."""
    rng = random.Random(7)
    wrong = total = allowed = 0
    for _ in range(states):
        index = random_index(rng)
        for user in USERS:
            for questions in ((TENANTS,), BOTH):
                places = look(user, index, questions)
                for namespace in PLACES:
                    expected = review(index, user, namespace, questions)
                    total += 1
                    allowed += expected
                    wrong += is_visible(places, namespace) != expected
    return wrong, total, allowed


def test_the_index_agrees_with_reviews() -> None:
    wrong, total, allowed = differences(visible_namespaces, states=300)
    assert total >= 10_000
    assert 0.3 < allowed / total < 0.7
    assert wrong == 0


Patch = Callable[[pytest.MonkeyPatch], None]


def _rules(change: Callable[[RbacRule], RbacRule]) -> Patch:
    """A mutant that takes rules for others than they are."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        real = reaching._covers
        patch.setattr(reaching, "_covers", lambda rule, question: real(change(rule), question))

    return apply


def _reach(change: Callable[[RoleScope, Iterable[RbacRule], Sequence[VisibilityCriterion]], RoleScope]) -> Patch:
    def apply(patch: pytest.MonkeyPatch) -> None:
        real = reaching.role_scope
        patch.setattr(reaching, "role_scope", lambda rules, asked: change(real(rules, asked), rules, asked))

    return apply


def _subjects(change: Callable[[User], Iterable[Subject]]) -> Patch:
    return lambda patch: patch.setattr(reaching, "subjects_of", change)


def _bindings(keep: Callable[[RbacBinding], bool]) -> Patch:
    def apply(patch: pytest.MonkeyPatch) -> None:
        real = reaching._scopes
        patch.setattr(reaching, "_scopes", lambda user, index, *asked: real(user, _Kept(index, keep), *asked))

    return apply


@dataclass(frozen=True)
class _Kept:
    index: RbacLookup
    keep: Callable[[RbacBinding], bool]

    def bindings_of(self, subject: Subject, namespace: str | None = None) -> Iterable[RbacBinding]:
        return (each for each in self.index.bindings_of(subject, namespace) if self.keep(each))

    def rules_of(self, key: RoleKey) -> Sequence[RbacRule] | None:
        return self.index.rules_of(key)


MUTANTS = {
    "groups do not count": _subjects(lambda user: [make_subject("User", user.name)]),
    "users do not count": _subjects(lambda user: [make_subject("Group", group) for group in user.groups]),
    "a group is any subject of its name": _subjects(
        lambda user: [make_subject(kind, name) for kind in ("User", "Group") for name in (user.name, *user.groups)]
    ),
    "bindings of the cluster do not count": _bindings(lambda binding: bool(binding.namespace)),
    "Roles do not count": _bindings(lambda binding: not split_key(binding.role).namespace),
    "ClusterRoles do not count": _bindings(lambda binding: bool(split_key(binding.role).namespace)),
    "any binding shows, API-23": _reach(lambda found, rules, asked: EVERYWHERE),
    "resourceNames are ignored": _reach(
        lambda found, rules, asked: role_scope([replace(rule, names=()) for rule in rules], asked)
    ),
    "verbs are ignored": _rules(lambda rule: replace(rule, verbs=("*",))),
    "groups of the API are ignored": _rules(lambda rule: replace(rule, groups=("*",))),
    "subresources are their resource": _rules(
        lambda rule: replace(rule, resources=tuple(each.partition("/")[0] for each in rule.resources))
    ),
    "* is a name like others": _rules(
        lambda rule: replace(rule, resources=tuple(each for each in rule.resources if each != "*"))
    ),
    "only the first rule counts": _reach(lambda found, rules, asked: role_scope(tuple(rules)[:1], asked)),
    "names of namespaces do not count": _reach(lambda found, rules, asked: found._replace(names=frozenset())),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
def test_an_index_that_is_wrong_is_found_out(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    wrong, _, _ = differences(visible_namespaces, states=300)
    assert wrong > 0


# How it was, and what that means for those who look.


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
def record(clock: Clock) -> RbacHistory:
    made = RbacHistory(clock=clock, max_changes=4)
    made.put_role(rbac.make_role_key("", "view"), (GET,), 5)
    made.begin(10)
    return made


async def visibility_source(record: RbacHistory) -> RbacVisibility:
    synced = asyncio.Event()
    synced.set()
    return RbacVisibility(record, [TENANTS], synced=synced)


async def test_a_sight_hears_of_what_concerns_it_and_of_nothing_else(record: RbacHistory) -> None:
    seers = await visibility_source(record)
    heard: dict[str, list[VisibilityChange]] = {"alice": [], "bob": []}
    for user in (ALICE, BOB):
        (await seers.for_user(user)).subscribe(heard[user.name].append)
    record.put_binding(binding("x"), 11)
    record.put_binding(binding("y"), 12)
    record.put_role(rbac.make_role_key("", "view"), (replace(GET, verbs=("list",)),), 13)
    nothing, something = frozenset[str](), frozenset(("tenant-a",))
    assert heard["alice"] == [
        VisibilityChange(nothing, nothing, something, 11),
        VisibilityChange(something, something, nothing, 13),
    ]
    assert heard["bob"] == []


async def test_who_no_longer_listens_is_not_told(record: RbacHistory) -> None:
    heard: list[VisibilityChange] = []
    end = (await (await visibility_source(record)).for_user(ALICE)).subscribe(heard.append)
    end()
    record.put_binding(binding("x"), 11)
    assert heard == []


async def test_a_sight_that_is_not_kept_is_alive_as_long_as_somebody_has_it(
    record: RbacHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeing, "_MAX_IDENTITIES", 1)
    seers = await visibility_source(record)
    first = await seers.for_user(ALICE)
    await seers.for_user(BOB)
    record.put_binding(binding("x"), 11)
    assert first.namespaces == frozenset(("tenant-a",))
    assert (await seers.for_user(ALICE)).namespaces == frozenset(("tenant-a",))


async def test_one_identity_has_one_sight(record: RbacHistory) -> None:
    seers = await visibility_source(record)
    same = replace(ALICE, groups=tuple(reversed(ALICE.groups)), uid="7")
    assert await seers.for_user(ALICE) is await seers.for_user(same)


async def test_masters_see_everything(record: RbacHistory) -> None:
    visibility = await (await visibility_source(record)).for_user(User(name="x", groups=("system:masters",)))
    assert visibility.namespaces is None
    assert visibility.change_since(1, (0.0, 0.0)) == VisibilityChange(None, None, None, 1)


async def test_nothing_is_shown_before_all_is_known(record: RbacHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    """API-27."""
    monkeypatch.setattr(seeing, "_SYNC_SECONDS", 0.01)
    with pytest.raises(ServiceUnavailable):
        await RbacVisibility(record, [TENANTS], synced=asyncio.Event()).for_user(ALICE)


async def test_administrators_need_no_index(record: RbacHistory) -> None:
    """R-343: whoever sees everything does not wait for what others may see."""
    visibility = await RbacVisibility(record, [TENANTS], synced=asyncio.Event()).for_user(
        User(name="x", groups=("system:masters",))
    )
    assert visibility.namespaces is None


async def test_what_changed_while_nobody_listened_is_told_from_every_state_in_between(
    record: RbacHistory, clock: Clock
) -> None:
    visibility = await (await visibility_source(record)).for_user(ALICE)
    record.put_binding(binding("kept", "tenant-k"), 11)
    clock.now = 1100.0
    record.put_binding(binding("lost", "tenant-l"), 12)
    clock.now = 1101.0
    record.drop_binding(rbac.make_binding_key("tenant-l", "lost"), 13)
    clock.now = 1102.0
    record.put_binding(binding("gained", "tenant-g"), 14)
    change = visibility.change_since(11, (1100.5, 1100.6))
    assert change is not None
    assert change.lost("tenant-l")
    assert change.gained("tenant-g")
    assert not change.gained("tenant-k")
    assert not change.lost("tenant-k")
    assert change.affected == frozenset(("tenant-l", "tenant-g"))
    assert change.rv == 14


async def test_what_was_forgotten_cannot_be_told(record: RbacHistory, clock: Clock) -> None:
    visibility = await (await visibility_source(record)).for_user(ALICE)
    for number in range(6):
        clock.now += 100
        record.put_binding(binding(f"b{number}"), 20 + number)
    assert visibility.change_since(25, (clock.now - 50, clock.now)) is not None
    assert visibility.change_since(25, (clock.now - 500, clock.now)) is None
    assert visibility.change_since(9, (clock.now, clock.now)) is None


async def test_where_no_event_tells_when_it_was_the_beginning_is_early_enough(
    record: RbacHistory, clock: Clock
) -> None:
    """A watch that goes on from a list need not list anew because its server has seen no change of anything yet."""
    visibility = await (await visibility_source(record)).for_user(ALICE)
    always = (float("-inf"), float("inf"))
    change = visibility.change_since(10, always)
    assert change is not None
    assert change.affected == frozenset()
    clock.now += 1
    record.put_binding(binding("x"), 11)
    change = visibility.change_since(10, always)
    assert change is not None
    assert change.gained("tenant-a")
    assert visibility.change_since(9, always) is None
    for number in range(6):
        record.put_binding(binding(f"b{number}"), 20 + number)
    assert visibility.change_since(10, always) is None


ROLES = [rbac.make_role_key("", "r0"), rbac.make_role_key("tenant-a", "r1"), rbac.make_role_key("", "r2")]


def change_at_random(record: RbacHistory, rng: random.Random, rv: int) -> None:
    key = rbac.make_binding_key(rng.choice(["", *PLACES]), f"b{rng.randint(0, 4)}")
    what = rng.random()
    if what < 0.5:
        record.put_binding(RbacBinding(key, rng.choice(ROLES), tuple(rng.sample(SUBJECTS, 2))), rv)
    elif what < 0.65:
        record.drop_binding(key, rv)
    elif what < 0.9:
        record.put_role(rng.choice(ROLES), (random_rule(rng, PLACES),), rv)
    else:
        record.drop_role(rng.choice(ROLES), rv)


def test_the_past_is_as_it_was(clock: Clock) -> None:
    """Any state can be had again, whatever happened since."""
    rng = random.Random(3)
    record = RbacHistory(clock=clock)
    record.begin(1)
    history: list[tuple[float, list[VisibleNamespaces]]] = []
    for step in range(60):
        clock.now += 1
        change_at_random(record, rng, step + 2)
        history.append((clock.now, [visible_namespaces(user, record.index, BOTH) for user in USERS]))
    for moment, expected in history:
        states = record.states_between(moment + 0.5, moment + 0.5, frozenset())
        assert states is not None
        assert [visible_namespaces(user, states[-1], BOTH) for user in USERS] == expected


async def test_who_looks_sees_what_there_is_after_every_change(clock: Clock) -> None:
    """And is told just of what is another."""
    rng = random.Random(5)
    record = RbacHistory(clock=clock)
    record.begin(1)
    synced = asyncio.Event()
    synced.set()
    visibility_source = [await RbacVisibility(record, BOTH, synced=synced).for_user(user) for user in USERS]
    told: dict[int, list[VisibleNamespaces]] = {number: [] for number in range(len(USERS))}
    for number, visibility in enumerate(visibility_source):
        visibility.subscribe(lambda change, number=number: told[number].append(change.now))  # type: ignore[misc]
    seen: list[VisibleNamespaces] = [frozenset()] * len(USERS)
    for step in range(400):
        change_at_random(record, rng, step + 2)
        for number, user in enumerate(USERS):
            now = visible_namespaces(user, record.index, BOTH)
            assert visibility_source[number].namespaces == now
            assert told[number] == ([now] if now != seen[number] else [])
            seen[number] = now
            told[number].clear()


# What informers bring.


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
    record = RbacHistory()
    feed = RbacFeed(record)
    await feed.roles.replace([], 3)
    await feed.cluster_roles.replace([role("view", "get"), role("none", "list")], 5)
    await feed.bindings.replace([role_binding("x", "view")], 4)
    assert not feed.synced.is_set()
    await feed.cluster_bindings.replace([], 2)
    assert feed.synced.is_set()
    return record, feed, await RbacVisibility(record, [TENANTS], synced=feed.synced).for_user(ALICE)


async def test_lists_and_events_make_up_what_is_seen() -> None:
    record, feed, visibility = await fed()
    assert record.first_rv == 5
    assert visibility.namespaces == frozenset(("tenant-a",))
    feed.bindings.apply("ADDED", role_binding("y", "view", "tenant-b"), 6)
    assert visibility.namespaces == frozenset(("tenant-a", "tenant-b"))
    feed.bindings.apply("DELETED", role_binding("y", "view", "tenant-b"), 7)
    feed.cluster_roles.apply("MODIFIED", role("view", "list"), 8)
    assert visibility.namespaces == frozenset()


async def test_what_a_new_list_lacks_is_gone() -> None:
    record, feed, visibility = await fed()
    await feed.bindings.replace([role_binding("z", "view", "tenant-c")], 9)
    assert visibility.namespaces == frozenset(("tenant-c",))
    await feed.cluster_roles.replace([], 10)
    assert visibility.namespaces == frozenset()
    assert record.rv == 10


async def test_a_binding_that_becomes_senseless_grants_nothing() -> None:
    _, feed, visibility = await fed()
    feed.bindings.apply("MODIFIED", {**role_binding("x", "view"), "roleRef": {"kind": "Other", "name": "view"}}, 11)
    assert visibility.namespaces == frozenset()
