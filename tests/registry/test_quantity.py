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
        pytest.param("5.", Fraction(5), id="no digits after the point"),
        pytest.param(".5", Fraction(1, 2), id="no digits before the point"),
        pytest.param("1.5Gi", Fraction(3 * 2**29), id="binary"),
        pytest.param("2k", Fraction(2000), id="kilo"),
        pytest.param("1E", Fraction(10**18), id="exa, not an exponent"),
        pytest.param("1e3", Fraction(1000), id="exponent"),
        pytest.param("1E-3", Fraction(1, 1000), id="negative exponent"),
        pytest.param("+3", Fraction(3), id="sign"),
        pytest.param("-3Ki", Fraction(-3072), id="negative"),
        pytest.param("1e-12", Fraction(1, 10**9), id="rounded up to 1n"),
        pytest.param("0e99999999999", Fraction(0), id="zero, however large the exponent"),
        pytest.param("1e99999999999", Fraction(2**63 - 1), id="capped"),
        pytest.param("16Ei", Fraction(2**63 - 1), id="binary, capped"),
    ],
)
def test_a_quantity_has_its_exact_value(text: str, value: Fraction) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("1000m", "1", id="a whole number in milli"),
        pytest.param("0.5", "500m", id="a fraction"),
        pytest.param(1500, "1500", id="an integer"),
        pytest.param("100000k", "100M", id="the largest decimal suffix"),
        pytest.param("1024Mi", "1Gi", id="the largest binary suffix"),
        pytest.param("1.5Gi", "1536Mi", id="a binary fraction"),
        pytest.param("1000Ki", "1000Ki", id="not a whole Mi"),
        pytest.param("0.1Ki", "102400m", id="less than 1Ki"),
        pytest.param("1.1Gi", "1181116006400m", id="not a whole byte"),
        pytest.param("1e3", "1e3", id="an exponent is preserved"),
        pytest.param("12e6", "12e6", id="an exponent that is a multiple of three"),
        pytest.param("0", "0", id="zero"),
    ],
)
def test_a_quantity_has_the_canonical_form_of_kubernetes(text: str | int, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@given(st.integers(0, 2**60), st.sampled_from(["", "m", "k", "Ki", "Mi", "e3"]))
def test_canonicalization_preserves_the_value_and_is_idempotent(number: int, suffix: str) -> None:
    form = quantity.canonical(f"{number}{suffix}")
    assert quantity.parse(form) == quantity.parse(f"{number}{suffix}")
    assert quantity.canonical(form) == form


def test_an_integer_is_a_quantity() -> None:
    assert quantity.parse(4) == 4


@pytest.mark.parametrize(
    "text",
    ["", "ten", "1 Gi", "1gi", "1KI", "1e", "1ee3", "--1", "1.2.3", "0x1", "1_0", "\u0661", "1\n", "9" * 129],
)
def test_anything_else_is_rejected_with_the_text_of_kubernetes(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        quantity.parse(text)


@given(st.integers(-(10**27), 10**27))
def test_a_formatted_value_parses_to_the_same_value(nanos: int) -> None:
    value = Fraction(nanos, 10**9)
    assert quantity.parse(quantity.to_text(value)) == value
