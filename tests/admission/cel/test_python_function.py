"""Memory that the CEL library leaks when it calls Python functions, or converts null, is released."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cel_expr_python import cel

from admission.cel.budget import CutOff
from admission.cel.environment import Environment, EvaluationError, SharedEnv, UnsupportedValue, evaluate
from admission.cel.evaluation import EvaluationOptions, ExpressionEvaluator, compile_expression
from admission.cel.library.opaque_types import Type, function, overload

_LENGTH = 100_000
_CALLS = 300
# each leaked argument or result would be 30 MB of text in sum
_MOST_GROWTH = 8 * 1024 * 1024

EXPRESSIONS = [
    "isURL(object.t)",
    "url('https://a/' + object.t).getHost() == 'a'",
    "[object.t, ''].indexOf(object.t) == 0",
    "[object.t].includes(object.t)",
    "[object.t].isSorted()",
    "[object.t].min() == object.t",
    "quantity(object.t).isInteger()",
    "semver('1.0.0-' + object.t).isLessThan(semver('1.0.0'))",
    "object.t.find('a+') == object.t",
    "object.t.findAll('a+') == [object.t]",
    "format.uri().validate(object.t).hasValue()",
    "format.named(object.t).hasValue()",
    "isIP(object.t)",
    "cidr(object.t).prefixLength() == 8",
]
# the library calls a function with a list in the place of whose optionals are null pointers
OPTIONALS = [
    "[object.?t].min() == object.?t",
    "[dyn(object.t), dyn(optional.of(1))].isSorted()",
    "[[dyn(object.t), dyn(optional.of(1))]].indexOf([]) == 0",
    "[dyn(object.t), dyn(optional.of(1))].all(x, [x].min() == 1)",
]


def _resident() -> int:
    """Bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [size] = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(size) * 1024


def _evaluate(expression: str, *, in_pieces: bool, abandoned: threading.Event | None = None) -> Callable[[], None]:
    environment = Environment()
    compiled = compile_expression(environment, expression, ())
    assert not compiled.error
    values = {"object": {"t": "a" * _LENGTH}}
    options = EvaluationOptions(in_pieces=in_pieces, abandoned=abandoned)

    def run() -> None:
        with suppress(EvaluationError, CutOff):
            ExpressionEvaluator(environment, values, options).evaluate(compiled)

    return run


def _growth(run: Callable[[], None]) -> int:
    """The bytes by which the process has grown after 300 calls."""
    for _ in range(20):
        run()
    gc.collect()
    before = _resident()
    for _ in range(_CALLS):
        run()
    gc.collect()
    return _resident() - before


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures with /proc")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_function_keeps_neither_its_arguments_nor_its_result(expression: str) -> None:
    """ATTACK-17: a tenant could exhaust the memory, with 100 kB for each request."""
    assert _growth(_evaluate(expression, in_pieces=False)) < _MOST_GROWTH


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures with /proc")
def test_a_loop_in_pieces_keeps_nothing() -> None:
    run = _evaluate("[object.t, object.t].map(x, x + 'b').all(x, object.t.size() < x.size())", in_pieces=True)
    assert _growth(run) < _MOST_GROWTH


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures with /proc")
@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("expression", OPTIONALS)
def test_arguments_that_the_library_cannot_convert_are_released(expression: str, in_pieces: bool) -> None:
    assert _growth(_evaluate(expression, in_pieces=in_pieces)) < _MOST_GROWTH


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures with /proc")
def test_an_evaluation_that_is_cut_off_keeps_nothing() -> None:
    abandoned = threading.Event()
    abandoned.set()
    run = _evaluate("[object.t].all(x, x == '')", in_pieces=True, abandoned=abandoned)
    assert _growth(run) < _MOST_GROWTH


def test_a_function_is_not_called_with_what_the_library_cannot_convert() -> None:
    seen: list[Any] = []
    with pytest.raises(UnsupportedValue):
        _call(seen.append, "probe([dyn('a'), dyn(optional.of(1))])")
    assert _call(lambda items: [*items, "b"], "probe(['a'])") == ["a", "b"], "the next call is a whole one"
    assert seen == []


def _call(impl: Callable[..., Any], expression: str) -> Any:
    declared = function("probe", overload(Type.List(Type.DYN), Type.List(Type.DYN), impl=impl))
    config = cel.NewEnvConfigFromYaml('extensions:\n- name: "optional"\n')
    env = cel.NewEnv(config=config, extensions=[cel.CelExtension("probe", [declared])])
    environment = Environment()
    environment._env = SharedEnv(env)
    return evaluate(environment.compile(expression), environment.activation({}))


def test_each_object_has_the_references_that_it_should_have() -> None:
    """One too few would end the process later."""
    seen: list[Any] = []

    def probe(items: list[Any]) -> list[Any]:
        made = [*items, "c"]
        seen.extend((items, made))
        return made

    assert _call(probe, "probe(probe(['a', 'b']))") == ["a", "b", "c", "c"]
    assert len(seen) == 4
    while seen:
        found = seen.pop()
        # `found`, and the argument of getrefcount
        assert sys.getrefcount(found) == 2


def test_an_error_releases_the_arguments() -> None:
    seen: list[Any] = []

    def probe(items: list[Any]) -> list[Any]:
        seen.append(items)
        raise ValueError("no")

    with pytest.raises(EvaluationError, match="no"):
        _call(probe, "probe(['a'])")
    gc.collect()
    [found] = seen
    # `seen`, `found`, and the argument of getrefcount
    assert sys.getrefcount(found) == 3


def test_threads_release_their_own_results() -> None:
    environment = Environment()
    program = environment.compile("object.l.indexOf('b') == 1 && url('https://a/b').getHost() == 'a'")
    wrong: list[Any] = []

    def run() -> None:
        for number in range(500):
            values = {"object": {"l": [str(number), "b"]}}
            if evaluate(program, environment.activation(values)) is not True:
                wrong.append(number)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


_NULLS = """
from admission.cel.environment import Environment, evaluate
environment = Environment()
values = {"object": {"none": None, "list": [None] * 1000}}
for text in ("object.none", "[object.none, {'a': object.none}]", "object", "object.list.includes(null)",
             "object.list.indexOf(1) == -1"):
    program = environment.compile(text)
    for _ in range(100):
        evaluate(program, environment.activation(values))
print("alive")
"""


def test_reading_null_does_not_end_the_process() -> None:
    """In a process of its own: a failure is an abort."""
    done = subprocess.run([sys.executable, "-c", _NULLS], capture_output=True, text=True, check=False)
    assert done.stdout == "alive\n", done.stderr
