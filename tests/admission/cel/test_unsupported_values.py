"""The library cannot pass optionals to functions, and would end the process if one of them touched such a value."""

from __future__ import annotations

import subprocess
import sys

import pytest

from admission.cel.budget import CutOff
from admission.cel.environment import Environment, evaluate
from admission.cel.evaluation import EvaluationOptions, ExpressionEvaluator, compile_expression

_SCRIPT = """
import sys
from admission.cel.environment import CompileError, Environment, EvaluationError, evaluate
environment = Environment()
for text in sys.argv[1:]:
    try:
        program = environment.compile(text)
        for _ in range(3):
            print(evaluate(program, environment.activation({"object": {"a": 1}})))
    except (CompileError, EvaluationError) as error:
        print(error)
"""
_EXPRESSIONS = (
    "['a'].includes(object.?a)",
    "optional.of(1).includes(1)",
    "[optional.of(1)].includes(1)",
    "[optional.of(1)].isSorted()",
    "[optional.of(1)].sum() == 1",
    "[optional.of(1)].min() == 1",
    "[1].indexOf(optional.of(1)) == 0",
    "[1].indexOf(dyn(optional.of(1))) == 0",
    "[optional.of(1)].lastIndexOf(1) == 0",
    "{'a': optional.of(1)}.includes(1)",
    "[{'a': optional.of(1)}].sum() == 1",
    "[{'a': [{'b': dyn(optional.of(1))}]}].isSorted()",
    "{'a': optional.of(1)}.getScheme() == ''",
    "[optional.of(1)].map(x, {'a': x}).min() == 1",
    "{?'a': optional.of(optional.of(1))}",
    "{'a': object.?a}",
    "object.a in{'a': object.?a}.map(k, {k: object.?a})",
    "[optional.of(1)] == object.a",
    "[optional.of(1)]",
    "optional.of(1)",
    "quantity(dyn(optional.of('1'))).isInteger()",
    "dyn(optional.of('a')).find('a') == 'a'",
    "cidr('10.0.0.0/8').containsIP(dyn(optional.of('10.0.0.1')))",
)


def test_no_expression_with_optionals_ends_the_process() -> None:
    """In a process of its own: a failure is a crash, without output."""
    done = subprocess.run([sys.executable, "-c", _SCRIPT, *_EXPRESSIONS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= len(_EXPRESSIONS)


_RESULTS = {
    "['a', 'b'].includes('b') && !['a'].includes('b') && 'a'.includes('a') && ![1].includes(true)": True,
    "[optional.of(1)].includes(optional.of(1))": True,
    "object.l.includes(null) && object.l.includes(2.0)": True,
    "object.l.indexOf(null)": 2,
    "object.l.indexOf(object.n)": 2,
    "object.l.lastIndexOf(object.n)": 4,
    "object.l.indexOf(object.l[object.l.indexOf(2)])": 1,
    "object.l.map(x, object.l.indexOf(x))": [0, 1, 2, 1, 2],
    "'abc'.indexOf(object.s) + object.s.indexOf('b')": 1,
    "object.s.indexOf(object.s, 0) // with a comment": 0,
    "object.l.indexOf(object.n // with a comment\n)": 2,
    "{'a': object.?s.orValue('')}.a == 'abc' && {?'b': object.?none} == {}": True,
}


@pytest.mark.parametrize("text", _RESULTS)
def test_rewritten_calls_have_the_results_of_kubernetes(text: str) -> None:
    environment = Environment()
    values = {"object": {"l": [1, 2, None, 2, None], "n": None, "s": "abc"}}
    assert evaluate(environment.compile(text), environment.activation(values)) == _RESULTS[text]


@pytest.mark.parametrize(
    "text", ["[{'a': [optional.of(1)]}].sum() == 1", "[optional.of(1)].isSorted()", "[optional.of(1)]"]
)
@pytest.mark.parametrize("in_pieces", [False, True])
def test_values_that_are_not_supported_end_the_evaluation(text: str, in_pieces: bool) -> None:
    """They do not count as errors of the expression, which the failurePolicy could ignore."""
    environment = Environment()
    evaluator = ExpressionEvaluator(environment, {}, EvaluationOptions(in_pieces=in_pieces))
    with pytest.raises(CutOff):
        evaluator.evaluate(compile_expression(environment, text, ()))
