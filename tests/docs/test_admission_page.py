"""docs/admission.md says what expressions can do: each row of its tables is tried."""

from __future__ import annotations

import pytest

from admission.cel.environment import BOOL, CompileError, Environment, evaluate, flatten_typed_fields
from admission.cel.library.authz import authorizer_variable, check_function
from admission.policy.compiled_policy import compile_policy
from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.request.context import User
from tests.docs.admission_page import MISSING, WORKING, Row
from tests.tenant_objects import ADMIN, attributes, tenant


def _answer(access: AccessAttributes) -> Decision:
    return Decision(allowed=access.user == ADMIN)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.function) for row in WORKING])
def test_a_function_works_as_the_page_says(row: Row) -> None:
    environment = Environment(authorizer=True)
    user: User = ADMIN
    values = flatten_typed_fields(
        {
            "object": {"metadata": {"name": "a"}},
            "authorizer": authorizer_variable(attributes("CREATE", tenant("a"), user=user)),
        }
    )
    program = environment.compile(row.example, (BOOL,))
    assert evaluate(program, environment.activation(values, check_function(user, _answer))) is True


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.function) for row in MISSING if "variables." not in row.example]
)
def test_what_the_page_says_is_missing_does_not_compile(row: Row) -> None:
    with pytest.raises(CompileError):
        Environment().compile(row.example)


def test_a_variable_that_holds_an_optional_does_not_compile() -> None:
    [row] = [row for row in MISSING if "variables." in row.example]
    spec = {
        "variables": [{"name": "kept", "expression": "optional.of(1)"}],
        "validations": [{"expression": row.example}],
    }
    policy = compile_policy({"metadata": {"name": "p"}, "spec": spec})
    assert policy.expressions.variables["kept"].program is None


def test_the_page_has_a_row_for_everything() -> None:
    assert (len(WORKING), len(MISSING)) == (55, 4)
