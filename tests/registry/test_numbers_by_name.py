"""Numbers by group and name, compared with a dictionary."""

from __future__ import annotations

import random

import pytest

from registry.numbers_by_name import NumbersByName

_LEAST, _MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("names", [1, 3, 8, 9, 14])
def test_it_contains_what_a_dictionary_contains_after_any_changes(names: int) -> None:
    """Up to eight names are stored as bytes."""
    chance = random.Random(names)
    numbers, model = NumbersByName(), dict[tuple[str, str], int]()
    for _ in range(1000):
        group, name = chance.choice("ab"), f"n{chance.randrange(names)}"
        number = chance.choice([None, None, None, _LEAST, _MOST, chance.randrange(_LEAST, _MOST)])
        differs = model.get((group, name)) != number
        assert numbers.put(group, name, number) is differs
        if number is None:
            model.pop((group, name), None)
        else:
            model[group, name] = number
        assert numbers.get(group, name) == number
        assert sorted(numbers) == sorted(model)
        assert sorted(numbers.names(group)) == sorted(each for other, each in model if other == group)
    numbers.clear()
    assert not list(numbers)
    assert numbers.get("a", "n1") is None


def test_equal_names_of_groups_are_one_tuple() -> None:
    numbers = NumbersByName()
    for group in ("a", "b"):
        for name in ("x", "y"):
            numbers.put(group, name, 1)
    assert numbers.names("a") is numbers.names("b")
