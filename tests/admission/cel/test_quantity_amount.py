"""The forms are those that Kubernetes' ParseQuantity, Add and AsInt64 have."""

from __future__ import annotations

import pytest

from admission.cel.environment import Environment, evaluate
from admission.cel.library.quantity_amount import Amount, add, of_integer, parse_amount, subtract


@pytest.mark.parametrize(
    ("text", "scale", "integer"),
    [
        pytest.param("1", 0, 1, id="a whole number"),
        pytest.param("-7", 0, -7, id="a negative number"),
        pytest.param("1k", 3, 1000, id="thousands"),
        pytest.param("1.5k", 2, 1500, id="a fraction of thousands"),
        pytest.param("1000m", -3, None, id="thousandths of a whole number"),
        pytest.param("1.0", -1, None, id="a fraction of zero"),
        pytest.param("1.", 0, 1, id="a point"),
        pytest.param("1e3", 3, 1000, id="an exponent"),
        pytest.param("1E+2", 2, 100, id="a large letter"),
        pytest.param("1000e-3", -3, None, id="a negative exponent"),
        pytest.param("9E", 18, 9 * 10**18, id="the largest suffix"),
        pytest.param("10E", 18, None, id="more than 64 bits"),
        pytest.param("1e19", 19, None, id="an exponent beyond 64 bits"),
        pytest.param("0e99999", 40, 0, id="zero with an exponent"),
        pytest.param("000k", 3, 0, id="zeros"),
        pytest.param("123456789012345678", 0, 123456789012345678, id="18 digits"),
        pytest.param("1234567890123456789", None, None, id="19 digits"),
        pytest.param("0001", 0, 1, id="leading zeros"),
        pytest.param("1.0000000001", None, None, id="less than 1n"),
        pytest.param("1Ki", 0, 1024, id="a binary suffix"),
        pytest.param("1.0Ki", None, None, id="a fraction with a binary suffix"),
        pytest.param("99999999999Ki", 0, 99999999999 * 1024, id="11 digits with Ki"),
        pytest.param("999999999999Ki", None, None, id="12 digits with Ki"),
        pytest.param("1Ei", None, None, id="the largest binary suffix"),
    ],
)
def test_a_quantity_is_an_integer_in_some_forms(text: str, scale: int | None, integer: int | None) -> None:
    found = parse_amount(text)
    assert (found.scale, found.as_int64()) == (scale, integer)


@pytest.mark.parametrize(
    ("amount", "scale", "integer"),
    [
        pytest.param(add(parse_amount("500m"), parse_amount("500m")), -3, None, id="thousandths"),
        pytest.param(add(parse_amount("1k"), of_integer(1)), 0, 1001, id="the smaller scale"),
        pytest.param(add(parse_amount("0"), parse_amount("1k")), 3, 1000, id="zero takes the other's scale"),
        pytest.param(add(parse_amount("1k"), parse_amount("0m")), 3, 1000, id="adding zero changes nothing"),
        pytest.param(add(parse_amount("9E"), parse_amount("9E")), 18, None, id="the sum of two large ones"),
        pytest.param(add(parse_amount("9E"), parse_amount("1m")), None, None, id="too many digits"),
        pytest.param(subtract(parse_amount("1k"), of_integer(1)), 0, 999, id="a difference"),
        pytest.param(subtract(parse_amount("1Ei"), parse_amount("1Ei")), None, None, id="any precision stays"),
    ],
)
def test_a_sum_has_the_scale_of_kubernetes(amount: Amount, scale: int | None, integer: int | None) -> None:
    assert (amount.scale, amount.as_int64()) == (scale, integer)


@pytest.mark.parametrize(
    "expression",
    [
        "quantity('1000m') == quantity('1')",
        "quantity('1Ei') == quantity('1152921504606846976')",
        "[quantity('1.0')] == [quantity('1')]",
        "quantity('1.0') in [quantity('1')]",
        "quantity('1.0').compareTo(quantity('1')) == 0",
        "quantity('1') != quantity('2')",
    ],
)
def test_the_form_does_not_count_in_comparisons(expression: str) -> None:
    environment = Environment()
    assert evaluate(environment.compile(expression), environment.activation({})) is True
