"""An expression has the same result and the same errors, whether its loops are evaluated at once or in pieces."""

from __future__ import annotations

from typing import Any

import pytest

from admission.cel import piecewise
from admission.cel.budget import CutOff
from admission.cel.environment import Environment, EvaluationError
from admission.cel.evaluation import EvaluationOptions, ExpressionEvaluator, NeedsPieces, compile_expression
from tests.admission.cel.loop_expressions import EXPRESSIONS, VALUES

_ENVIRONMENT = Environment(authorizer=True)
_MANY = {"object": {"map": {f"k{number}": number for number in range(10_001)}}}


def _outcome(text: str, values: dict[str, Any], *, in_pieces: bool) -> Any:
    """The value, or the text of the error."""
    expression = compile_expression(_ENVIRONMENT, text, ())
    assert not expression.error
    try:
        return ExpressionEvaluator(_ENVIRONMENT, values, EvaluationOptions(in_pieces=in_pieces)).evaluate(expression)
    except EvaluationError as error:
        return str(error)


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_pieces_have_the_result_of_the_whole_loop(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piecewise, "_TESTED_AT_ONCE", size)
    monkeypatch.setattr(piecewise, "_BUILT_AT_ONCE", size)
    assert _outcome(text, VALUES, in_pieces=True) == _outcome(text, VALUES, in_pieces=False)


@pytest.mark.parametrize(
    "text",
    [
        "object.map.all(k, object.map[k] >= 0)",
        "!object.map.exists(k, object.map[k] < 0)",
        "object.map.map(k, object.map[k]).filter(n, n > 9999) == [10000]",
        "object.map.all(k, ['a', 'b'].all(s, s != k))",
        "['a', 'b'].all(s, object.map.all(k, s != k))",
        "['a', 'b'].all(s, object.map.filter(k, s == k) == [])",
        "object.map.map(k, k).all(i, k, k in object.map && i <= 10000)",
    ],
)
def test_ten_thousand_iterations_need_pieces(text: str) -> None:
    assert _outcome(text, _MANY, in_pieces=True) is True
    if "map(" not in text and "filter" not in text:
        with pytest.raises(NeedsPieces):
            _outcome(text, _MANY, in_pieces=False)


def test_an_exhausted_budget_is_not_absorbed_by_an_operator() -> None:
    """`||` ignores the error of one operand if the other is true, but not that nothing more may be evaluated."""
    expression = compile_expression(_ENVIRONMENT, "object.map.all(k, k != '') || true", ())
    times = iter([0.0, *[100.0] * 1000])
    options = EvaluationOptions(in_pieces=True, clock=lambda: next(times))
    evaluator = ExpressionEvaluator(_ENVIRONMENT, _MANY, options)
    assert evaluator._budget is not None
    evaluator._budget._earliest = 0.0
    with pytest.raises(CutOff):
        evaluator.evaluate(expression)


@pytest.mark.parametrize(
    "text",
    [
        "[optional.of(1), optional.none()].all(o, o.hasValue() || true)",
        "[optional.of(1)].map(o, o)[0].value() == 1",
        "object.map.map(k, optional.of(k)).all(o, o.hasValue())",
        "object.map.map(k, optional.of(k)).all(o, object.map.all(k, o.hasValue() && k != ''))",
        "[int, string].all(t, t == int || t == string)",
        "[timestamp('2026-01-01T00:00:00Z')].all(t, t == timestamp('2026-01-01T00:00:00Z'))",
        "[duration('1s')].map(d, d)[0] == duration('1s')",
        "[1u, 2u].all(u, u + 1u > 1u)",
        "{'a': object.?map, 'b': optional.none()}.exists(k, v, v.hasValue())",
    ],
)
def test_values_that_cannot_be_passed_to_pieces_end_the_evaluation(text: str) -> None:
    """They do not count as errors of the expression, which the failurePolicy could ignore."""
    with pytest.raises(CutOff, match="not supported"):
        _outcome(text, {"object": {"map": {"a": 1}}}, in_pieces=True)
