"""Random changes of RBAC: past states and subscriptions."""

from __future__ import annotations

import asyncio
import random

from apiserver.storage.visibility import VisibleNamespaces
from registry.rbac import role_index as rbac
from registry.rbac.role_index import (
    RbacBinding,
)
from registry.visibility.by_rbac import RbacVisibility
from registry.visibility.rbac_history import RbacHistory
from registry.visibility.visible_namespaces import (
    visible_namespaces,
)
from tests.random_rbac import random_rule
from tests.registry.visibility.rbac_states import BOTH, SUBJECTS, TENANT_NAMESPACES, USERS, Clock

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
    history.start_recording(1)
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
