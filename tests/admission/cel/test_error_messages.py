from __future__ import annotations

from typing import Any

import pytest

from admission.cel.environment import CompileError, Environment, EvaluationError, evaluate, flatten_typed_fields
from admission.cel.error_messages import missing_field_message, text_of_status, to_kubernetes_message

_VALUES = {
    "object": {"text": "abc", "number": 1, "none": None, "list": [1], "map": {"a": 1}},
    "oldObject": None,
    "request": {"operation": "CREATE"},
}


def _value(expression: str, values: dict[str, Any] = _VALUES) -> Any:
    environment = Environment()
    return evaluate(environment.compile(expression), environment.activation(flatten_typed_fields(values)))


@pytest.mark.parametrize(
    ("status", "text"),
    [
        pytest.param("INTERNAL: a\nb", "a\nb", id="a code"),
        pytest.param("NOT_FOUND: a [b] [NOT_FOUND]", "a [b]", id="a code on both sides"),
        pytest.param("INTERNAL: a [b]", "a [b]", id="brackets"),
        pytest.param("INTERNAL: [INTERNAL]", "[INTERNAL]", id="brackets alone"),
        pytest.param("INTERNAL:  [INTERNAL]", "", id="no text"),
        pytest.param("no status: a [NOT_FOUND]", "no status: a [NOT_FOUND]", id="no code"),
    ],
)
def test_the_text_of_a_status_has_no_codes(status: str, text: str) -> None:
    assert text_of_status(status) == text


@pytest.mark.parametrize(
    ("expression", "message"),
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
        pytest.param("object.text.split(dyn(1))", "no such overload: split(string, int)", id="an extension function"),
        pytest.param("int(object.text)", "type conversion error from 'string' to 'int'", id="conversion"),
        pytest.param(
            "object.text.matches('[' + object.text)", "error parsing regexp: missing closing ]: `[abc`", id="a pattern"
        ),
        pytest.param(
            "object.text.find('[' + object.text)",
            "Illegal regex: error parsing regexp: missing closing ]: `[abc`",
            id="a pattern of find()",
        ),
        pytest.param("[].min()", "min called on empty list", id="min of an empty list"),
        pytest.param("ip('x')", 'IP Address "x" parse error during conversion from string: ParseAddr("x"): '
                     "unable to parse IP", id="an address"),
        pytest.param("lists.range(101).all(x, lists.range(100).all(y, true))",
                     "operation cancelled: actual cost limit exceeded", id="too many iterations"),
        pytest.param("lists.range(1000000000).size()", "operation cancelled: actual cost limit exceeded",
                     id="a range that is too long"),
    ],
)  # fmt: skip
def test_evaluation_errors_have_kubernetes_messages(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        _value(expression)
    assert str(caught.value) == message


def test_an_unknown_error_message_is_passed_on() -> None:
    assert to_kubernetes_message("INTERNAL: something new [INTERNAL]") == "something new"


def test_an_ambiguous_field_selection_is_reported_as_no_such_overload() -> None:
    assert missing_field_message("a.map(x, x.b || x.c)", {}) == "no such overload"


@pytest.mark.parametrize(
    ("expression", "message"),
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
def test_an_invalid_expression_does_not_compile(expression: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        Environment().compile(expression)


def test_an_expression_must_have_an_accepted_result_type() -> None:
    from admission.cel.environment import BOOL, NULL, STRING

    environment = Environment()
    with pytest.raises(CompileError, match=r"^must evaluate to bool but got dyn$"):
        environment.compile("object.flag", (BOOL,))
    with pytest.raises(CompileError, match=r"^must evaluate to one of \[string null_type\] but got int$"):
        environment.compile("1", (STRING, NULL))
    assert environment.compile("request.dryRun", (BOOL,)).returns == BOOL
    assert environment.compile("namespaceObject.metadata.name", (STRING,)).returns == STRING
