"""Multimap: several values for each key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from registry.multimap import Multimap

# More additions than removals, and more values than fit into the tuple.
_STEPS = st.lists(
    st.tuples(st.sampled_from([True, True, False]), st.sampled_from("ab"), st.integers(0, 14)), max_size=80
)


@given(_STEPS)
def test_a_multimap_equals_a_dict_of_sets(steps: list[tuple[bool, str, int]]) -> None:
    index: Multimap[str, int] = Multimap()
    model: dict[str, set[int]] = {"a": set(), "b": set()}
    for adds, key, value in steps:
        (index.add if adds else index.discard)(key, value)
        (model[key].add if adds else model[key].discard)(value)
        for each in model:
            assert sorted(index[each]) == sorted(model[each])
        assert sorted(index) == [each for each in model if model[each]]


def test_values_can_be_discarded_during_iteration() -> None:
    index: Multimap[str, int] = Multimap()
    for value in range(30):
        index.add("a", value)
    for value in index["a"]:
        index.discard("a", value)
    assert not index["a"]
    assert not list(index)


def test_keys_can_be_discarded_during_iteration() -> None:
    index: Multimap[str, int] = Multimap()
    for key in "abc":
        index.add(key, 1)
    for key in index:
        index.discard(key, 1)
    assert not list(index)
