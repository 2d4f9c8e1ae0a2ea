from __future__ import annotations

from typing import Any

import pytest

from admission.cel.environment import CompileError, Environment, EvaluationError, evaluate, flattened
from admission.cel.error_messages import kubernetes_words, selection_words

_VALUES = {
    "object": {"text": "abc", "number": 1, "none": None, "list": [1], "map": {"a": 1}},
    "oldObject": None,
    "request": {"operation": "CREATE"},
}


def _value(expression: str, values: dict[str, Any] = _VALUES) -> Any:
    environment = Environment()
    return evaluate(environment.compile(expression), environment.activation(flattened(values)))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param("object.nope", "no such key: nope", id="a missing field"),
        pytest.param("object.map['b']", "no such key: b", id="a missing key"),
        pytest.param("oldObject.metadata.name", "no such key: metadata", id="a field of null"),
        pytest.param("object.text.size > 1", "no such key: size", id="a field of a string"),
        pytest.param("object.list.all(x, x.field)", "no such key: field", id="a field of an item"),
        pytest.param("request.name == 'a'", "no such key: name", id="an absent field of the request"),
        pytest.param("object.list[7]", "index out of bounds: 7", id="an index"),
        pytest.param("object.number / 0", "division by zero", id="division"),
        pytest.param("object.number % 0", "modulus by zero", id="modulus"),
        pytest.param("9223372036854775807 + object.number", "integer overflow", id="overflow"),
        pytest.param("object.text + object.number", "no such overload", id="operands"),
        pytest.param("size(object.number)", "no such overload: size", id="size"),
        pytest.param("object.text.split(dyn(1))", "no such overload: split(string, int)", id="a function of strings"),
        pytest.param("int(object.text)", "type conversion error from 'string' to 'int'", id="conversion"),
        pytest.param(
            "object.text.matches('[' + object.text)", "error parsing regexp: missing closing ]: `[abc`", id="a pattern"
        ),
        pytest.param(
            "object.text.find('[' + object.text)",
            "Illegal regex: error parsing regexp: missing closing ]: `[abc`",
            id="a pattern of ours",
        ),
        pytest.param("[].min()", "min called on empty list", id="the least of nothing"),
        pytest.param("ip('x')", 'IP Address "x" parse error during conversion from string: ParseAddr("x"): '
                     "unable to parse IP", id="an address"),
        pytest.param("lists.range(101).all(x, lists.range(100).all(y, true))",
                     "operation cancelled: actual cost limit exceeded", id="too long"),
        pytest.param("lists.range(1000000000).size()", "operation cancelled: actual cost limit exceeded",
                     id="too many"),
    ],
)  # fmt: skip
def test_errors_come_in_kubernetes_words(expression: str, words: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        _value(expression)
    assert str(caught.value) == words


def test_words_that_are_not_known_stay() -> None:
    assert kubernetes_words("INTERNAL: something new [INTERNAL]") == "something new"


def test_a_selection_that_cannot_be_told_is_an_overload() -> None:
    assert selection_words("a.map(x, x.b || x.c)", {}) == "no such overload"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param("object.a ==", "Syntax error", id="syntax"),
        pytest.param("nobody == 1", "undeclared reference to 'nobody'", id="unknown name"),
        pytest.param("params.a == 1", "undeclared reference to 'params", id="params without paramKind"),
        pytest.param(
            "authorizer.path('/').check('get').allowed()", "undeclared reference", id="authorizer in messages"
        ),
        pytest.param("cel.bind(x, 1, x)", "undeclared reference", id="a library that Kubernetes leaves out"),
    ],
)
def test_what_is_wrong_does_not_compile(expression: str, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        Environment().compile(expression)


def test_the_type_is_one_that_is_asked_for() -> None:
    from admission.cel.environment import BOOL, NULL, STRING

    environment = Environment()
    with pytest.raises(CompileError, match=r"^must evaluate to bool but got dyn$"):
        environment.compile("object.flag", (BOOL,))
    with pytest.raises(CompileError, match=r"^must evaluate to one of \[string null_type\] but got int$"):
        environment.compile("1", (STRING, NULL))
    assert environment.compile("request.dryRun", (BOOL,)).returns == BOOL
    assert environment.compile("namespaceObject.metadata.name", (STRING,)).returns == STRING
