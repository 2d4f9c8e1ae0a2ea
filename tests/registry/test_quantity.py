from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("10", Fraction(10), id="whole"),
        pytest.param("500m", Fraction(1, 2), id="milli"),
        pytest.param("1.5", Fraction(3, 2), id="decimal point"),
        pytest.param("5.", Fraction(5), id="nothing behind the point"),
        pytest.param(".5", Fraction(1, 2), id="nothing before the point"),
        pytest.param("1.5Gi", Fraction(3 * 2**29), id="binary"),
        pytest.param("2k", Fraction(2000), id="kilo"),
        pytest.param("1E", Fraction(10**18), id="exa, not an exponent"),
        pytest.param("1e3", Fraction(1000), id="exponent"),
        pytest.param("1E-3", Fraction(1, 1000), id="negative exponent"),
        pytest.param("+3", Fraction(3), id="sign"),
        pytest.param("-3Ki", Fraction(-3072), id="negative"),
        pytest.param("1e-12", Fraction(1, 10**9), id="rounded up to a nano"),
        pytest.param("0e99999999999", Fraction(0), id="zero, however large the exponent"),
        pytest.param("1e99999999999", Fraction(2**63 - 1), id="capped"),
        pytest.param("16Ei", Fraction(2**63 - 1), id="a binary one, capped"),
    ],
)
def test_a_quantity_has_its_exact_value(text: str, value: Fraction) -> None:
    assert quantity.parse(text) == value


def test_an_integer_is_a_quantity() -> None:
    assert quantity.parse(4) == 4


@pytest.mark.parametrize(
    "text",
    ["", "ten", "1 Gi", "1gi", "1KI", "1e", "1ee3", "--1", "1.2.3", "0x1", "1_0", "\u0661", "1\n", "9" * 129],
)
def test_anything_else_is_refused_in_kubernetes_words(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        quantity.parse(text)


@given(st.integers(-(10**27), 10**27))
def test_the_text_of_a_value_parses_to_it(nanos: int) -> None:
    value = Fraction(nanos, 10**9)
    assert quantity.parse(quantity.text(value)) == value
