"""The bindings of a subject by namespace, with few and with many of them."""

from __future__ import annotations

import random

import pytest

from registry.rbac.subject_bindings import SubjectBindings

NAMESPACES = ["", "a", "ab", "b"]


@pytest.mark.parametrize("most", [3, 40])
def test_keys_are_found_by_subject_and_namespace(most: int) -> None:
    """Above and below the number from which they are grouped."""
    rng = random.Random(most)
    bindings: SubjectBindings[str, str] = SubjectBindings()
    expected: dict[str, set[str]] = {"alice": set(), "bob": set()}
    for _ in range(600):
        subject, key = rng.choice(["alice", "bob"]), f"{rng.choice(NAMESPACES)}/{rng.randint(0, most)}"
        if key in expected[subject]:
            expected[subject].discard(key)
            bindings.discard(subject, key)
        else:
            expected[subject].add(key)
            bindings.add(subject, key)
        for each, keys in expected.items():
            assert sorted(bindings.keys(each)) == sorted(keys)
            for namespace in NAMESPACES:
                inside = [key for key in keys if key.startswith(f"{namespace}/")]
                assert sorted(bindings.keys_in(each, namespace)) == sorted(inside)


def test_unknown_keys_are_ignored() -> None:
    bindings: SubjectBindings[str, str] = SubjectBindings()
    bindings.discard("alice", "a/x")
    for number in range(40):
        bindings.add("alice", f"a/{number}")
    bindings.discard("alice", "b/x")
    assert len(list(bindings.keys("alice"))) == 40
    assert list(bindings.keys("bob")) == []


def test_bindings_may_change_during_an_iteration() -> None:
    bindings: SubjectBindings[str, str] = SubjectBindings()
    for number in range(40):
        bindings.add("alice", f"n{number}/x")
    for key in bindings.keys("alice"):
        bindings.discard("alice", key)
    assert list(bindings.keys("alice")) == []
