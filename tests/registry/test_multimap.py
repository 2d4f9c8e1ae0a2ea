"""An index that finds any number of values under a key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from registry.multimap import Multimap

# More additions than removals, and more values than are a few.
_STEPS = st.lists(
    st.tuples(st.sampled_from([True, True, False]), st.sampled_from("ab"), st.integers(0, 14)), max_size=80
)


@given(_STEPS)
def test_it_holds_what_sets_under_the_keys_would_hold(steps: list[tuple[bool, str, int]]) -> None:
    index: Multimap[str, int] = Multimap()
    model: dict[str, set[int]] = {"a": set(), "b": set()}
    for adds, key, value in steps:
        (index.add if adds else index.discard)(key, value)
        (model[key].add if adds else model[key].discard)(value)
        for each in model:
            assert sorted(index[each]) == sorted(model[each])
        assert sorted(index) == [each for each in model if model[each]]


def test_it_may_change_while_its_values_are_walked() -> None:
    index: Multimap[str, int] = Multimap()
    for value in range(30):
        index.add("a", value)
    for value in index["a"]:
        index.discard("a", value)
    assert not index["a"]
    assert not list(index)


def test_it_may_change_while_its_keys_are_walked() -> None:
    index: Multimap[str, int] = Multimap()
    for key in "abc":
        index.add(key, 1)
    for key in index:
        index.discard(key, 1)
    assert not list(index)
