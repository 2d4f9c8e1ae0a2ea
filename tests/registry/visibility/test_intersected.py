"""The objects that two sources show together, now and in the past."""

from __future__ import annotations

import asyncio
import random

from apiserver.storage.visibility import VisibilityChange, VisibleObjects
from registry.rbac import role_index as rbac
from registry.rbac.role_index import RbacBinding, RbacRule, make_subject
from registry.visibility.by_rbac import RbacVisibility
from registry.visibility.intersected import IntersectedVisibility
from registry.visibility.rbac_history import RbacHistory
from registry.visibility.visible_objects import NamedObjects, VisibilityCriterion
from tests.registry.visibility.rbac_states import USERS, Clock
from tests.run_coroutine import run_coroutine

ALICE = USERS[0]
VERBS = ("list", "watch")


def _source(history: RbacHistory) -> IntersectedVisibility:
    synced = asyncio.Event()
    synced.set()
    one, other = (
        RbacVisibility(
            history, [VisibilityCriterion("", "pods", NamedObjects.OBJECTS, verb)], synced=synced, margin_seconds=0.0
        )
        for verb in VERBS
    )
    return IntersectedVisibility(one, other)


def _grant(history: RbacHistory, rv: int, namespace: str, verb: str, *names: str) -> None:
    role = rbac.make_role_key(namespace, verb)
    history.put_role(role, (RbacRule((verb,), ("",), ("pods",), names),), rv)
    history.put_binding(RbacBinding(rbac.make_binding_key(namespace, verb), role, (make_subject("User", "alice"),)), rv)


def test_everything_of_one_is_all_that_the_other_shows() -> None:
    history = RbacHistory()
    history.start_recording(1)
    visibility = run_coroutine(_source(history).for_user(ALICE))
    _grant(history, 2, "", "watch")
    _grant(history, 3, "", "list", "a", "b")
    assert visibility.visible == VisibleObjects(names=frozenset({"a", "b"}))
    _grant(history, 4, "", "list")
    assert visibility.visible.namespaces is None


def test_random_changes_are_told_and_found_in_the_past(clock: Clock) -> None:
    """Each state is the intersection of what both verbs are granted in, and so is what `change_since` says of it."""
    rng = random.Random(19)
    history = RbacHistory(clock=clock)
    history.start_recording(1)
    visibility = run_coroutine(_source(history).for_user(ALICE))
    told: list[VisibilityChange] = []
    end = visibility.subscribe(told.append)
    granted: dict[str, set[str]] = {verb: set() for verb in VERBS}
    states: list[tuple[float, frozenset[str]]] = []
    for step in range(100):
        clock.now += 1
        namespace, verb = rng.choice("abcd"), rng.choice(VERBS)
        before, told[:] = frozenset.intersection(*map(frozenset, granted.values())), []
        if namespace in granted[verb]:
            history.drop_binding(rbac.make_binding_key(namespace, verb), step + 2)
            granted[verb].discard(namespace)
        else:
            _grant(history, step + 2, namespace, verb)
            granted[verb].add(namespace)
        after = frozenset.intersection(*map(frozenset, granted.values()))
        assert visibility.visible.namespaces == after
        assert {(each.always.namespaces, each.now.namespaces) for each in told} >= (
            {(before, after)} if before != after else set()
        )
        states.append((clock.now + 0.5, after))
    for moment, state in states:
        change = visibility.change_since(200, (moment, moment))
        assert change is not None
        assert (change.ever.namespaces, change.always.namespaces, change.now.namespaces) == (state, state, after)
    end()
    told.clear()
    _grant(history, 300, "e", "list")
    _grant(history, 301, "e", "watch")
    assert not told
