"""Random changes of RBAC: past states and subscriptions."""

from __future__ import annotations

import asyncio
import random

from apiserver.meta.resource import Key, Resource
from apiserver.storage.visibility import VisibleObjects
from registry.rbac import role_index as rbac
from registry.rbac.role_index import (
    RbacBinding,
)
from registry.visibility.by_rbac import RbacVisibility
from registry.visibility.rbac_history import RbacHistory
from registry.visibility.visible_objects import RbacLookup, visible_objects
from tests.random_rbac import random_rule
from tests.registry.visibility.rbac_states import NAMESPACES, SUBJECTS, TENANT_NAMESPACES, TENANTS, USERS, Clock

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)
CRITERIA = (TENANTS, NAMESPACES)
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
    history.start_recording(1)
    expected_states: list[tuple[float, list[VisibleObjects]]] = []
    for step in range(60):
        clock.now += 1
        change_at_random(history, rng, step + 2)
        expected_states.append((clock.now, [visible_objects(user, history.index, CRITERIA) for user in USERS]))
    for moment, expected in expected_states:
        undone = history.undo_until(moment + 0.5, frozenset(SUBJECTS))
        assert undone is not None
        states: list[RbacLookup] = [history.index, *(each.past for each in undone)]
        assert [visible_objects(user, states[-1], CRITERIA) for user in USERS] == expected


async def test_past_visibility_covers_the_states_of_the_interval(clock: Clock) -> None:
    """The union and the intersection of the states yield the same losses and gains as a comparison of each state."""
    rng = random.Random(9)
    history = RbacHistory(clock=clock)
    history.start_recording(1)
    synced = asyncio.Event()
    synced.set()
    sources = [await RbacVisibility(history, CRITERIA, synced=synced).for_user(user) for user in USERS]
    states: list[list[VisibleObjects]] = [[] for _ in USERS]
    keys = [Key(namespace, name) for namespace in TENANT_NAMESPACES for name in (*TENANT_NAMESPACES, "x", "y")]
    for step in range(150):
        clock.now += 20
        change_at_random(history, rng, step + 2)
        for number, user in enumerate(USERS):
            states[number].append(visible_objects(user, history.index, CRITERIA))
        first = max(0, step - rng.randint(0, 12))
        last = rng.randint(first, step)
        # the clock was at 1020 for the first change; ten seconds are the margin
        change_between = 1020 + 20 * first + 15, 1020 + 20 * last + 5
        for number, source in enumerate(sources):
            change = source.change_since(history.rv, change_between)
            assert change is not None
            between = states[number][first : last + 1]
            for key in keys:
                now = states[number][-1].includes(THINGS, key)
                ever, always = (check(each.includes(THINGS, key) for each in between) for check in (any, all))
                assert change.lost(THINGS, key) == (ever and not now)
                # an object may be visible by different rules in turn, and is then sent again
                assert change.gained(THINGS, key) or not now or always
                assert not change.gained(THINGS, key) or now


async def test_visibility_is_current_after_every_change(clock: Clock) -> None:
    """Subscribers are notified only of differences."""
    rng = random.Random(5)
    history = RbacHistory(clock=clock)
    history.start_recording(1)
    synced = asyncio.Event()
    synced.set()
    visibility_source = [await RbacVisibility(history, CRITERIA, synced=synced).for_user(user) for user in USERS]
    notified: dict[int, list[VisibleObjects]] = {number: [] for number in range(len(USERS))}
    for number, visibility in enumerate(visibility_source):
        visibility.subscribe(lambda change, number=number: notified[number].append(change.now))  # type: ignore[misc]
    seen = [VisibleObjects()] * len(USERS)
    for step in range(400):
        change_at_random(history, rng, step + 2)
        for number, user in enumerate(USERS):
            now = visible_objects(user, history.index, CRITERIA)
            assert visibility_source[number].visible == now
            assert notified[number] == ([now] if now != seen[number] else [])
            seen[number] = now
            notified[number].clear()


def large_binding(name: str, subjects: int, *, role: str = "r") -> rbac.RbacBinding:
    users = tuple(rbac.make_subject("User", f"{name}-{number}") for number in range(subjects))
    return rbac.RbacBinding(rbac.make_binding_key("ns", name), rbac.make_role_key("ns", role), users)


def test_large_changes_are_forgotten_sooner(clock: Clock) -> None:
    """A user who may write RoleBindings in one namespace may write some of ten thousand subjects."""
    history = RbacHistory(clock=clock, max_bytes=100_000)
    history.start_recording(1)
    for rv in range(2, 12):
        clock.now += 1
        history.put_binding(large_binding(f"b{rv}", 300), rv)
    # each has about 22 kB
    assert history.oldest_rv == 7
    assert history.undo_until(clock.now - 3.5, frozenset(SUBJECTS)) is not None
    assert history.undo_until(clock.now - 5, frozenset(SUBJECTS)) is None


def test_a_change_that_is_too_large_is_told_and_forgotten(clock: Clock) -> None:
    history, told = RbacHistory(clock=clock, max_bytes=10_000), list[int]()
    history.start_recording(1)
    history.subscribe(lambda affected, rv, namespace: told.append(sum(map(len, affected))))
    for rv in (2, 3):
        clock.now += 1
        history.put_binding(large_binding(f"b{rv}", 300), rv)
    clock.now += 1
    history.put_role(rbac.make_role_key("ns", "r"), (), 4)
    assert told == [300, 300, 600]
    assert history.oldest_rv == 4
    assert history.undo_until(clock.now, frozenset(SUBJECTS)) is None
    assert history.undo_until(clock.now + 1, frozenset(SUBJECTS)) is not None
