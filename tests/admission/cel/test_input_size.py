from __future__ import annotations

from typing import Any

import pytest

from admission.cel.budget import CutOff
from admission.cel.input_size import EvaluationInput, InputSize, input_size, is_short
from admission.cel.loops import loop_shape


@pytest.mark.parametrize(
    ("value", "size"),
    [
        pytest.param(None, InputSize(total=1), id="null"),
        pytest.param({"a": "xy", "b": [1, 2, 3]}, InputSize(3, 2, 8), id="an object"),
        pytest.param([[], {"long key": {}}], InputSize(2, 8, 5), id="keys are texts, too"),
        pytest.param({"a": ["b\0c"]}, InputSize(1, 3, 4, has_nul=True), id="a NUL character"),
        pytest.param({"a\0": 1}, InputSize(1, 2, 3, has_nul=True), id="a NUL character in a key"),
    ],
)
def test_the_size_of_a_value_is_measured(value: Any, size: InputSize) -> None:
    assert input_size(value) == size


def test_a_nul_character_ends_the_evaluation() -> None:
    """The library would truncate the text there, so that `good\\0evil` would equal `good`."""
    EvaluationInput("good", "a backslash and \\u0000").require_no_nul()
    for values in (EvaluationInput({"a": "good\0evil"}), EvaluationInput("good").including({"a\0": 1})):
        with pytest.raises(CutOff, match="NUL character"):
            values.require_no_nul()


def test_whether_an_expression_is_short_depends_on_the_values_that_it_reads() -> None:
    shape = loop_shape("object.a.map(x, x)")
    assert EvaluationInput({"a": ["some text"] * 100}).is_short(shape)
    assert not EvaluationInput({"a": ["some text"] * 100}).including([1] * 200).is_short(shape)


_SIZE = InputSize(longest=100, longest_text=1000, total=6000)


@pytest.mark.parametrize(
    ("expression", "short"),
    [
        ("object.a == object.b", True),
        ("object.a.all(x, x)", True),
        ("object.a.map(x, x)", True),
        ("object.a.all(x, object.a.all(y, x == y))", False),
        ("object.a.split(',').all(x, x == '')", True),
        ("object.a.split(',').map(x, x)", False),
        ("object.a.flatten().all(x, x)", False),
        ("object.a.flatten()", True),
        ("lists.range(2).all(x, true)", False),
    ],
)
def test_the_event_loop_evaluates_only_short_loops(expression: str, short: bool) -> None:
    assert is_short(loop_shape(expression), _SIZE) is short


@pytest.mark.parametrize("size", [InputSize(longest_text=100_000), InputSize(total=20_000)], ids=["text", "values"])
def test_the_event_loop_reads_no_large_values(size: InputSize) -> None:
    assert not is_short(loop_shape("object.a == ''"), size)
