from __future__ import annotations

import contextlib
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import quantity
from tests.cpu_time import least_ratio


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
        pytest.param("1e30", Fraction(10**30), id="more than 64 bits"),
        pytest.param("16Ei", Fraction(2**63 - 1), id="more than 64 bits, binary"),
        pytest.param("1e99999999999", Fraction(10**1000), id="capped"),
        pytest.param("1e-99999999999", Fraction(1, 10**9), id="rounded up to 1n, however small the exponent"),
        pytest.param(f"0.{'0' * 500}1", Fraction(1, 10**9), id="rounded up to 1n, however many zeros"),
        pytest.param(f"1.{'0' * 500}1", 1 + Fraction(1, 10**9), id="rounded up by the last digit"),
        pytest.param(f"1.{'0' * 500}", Fraction(1), id="not rounded up by zeros"),
        pytest.param(f"{'0' * 500}7", Fraction(7), id="leading zeros"),
        pytest.param(f"1{'0' * 500}e-500", Fraction(1), id="an exponent that compensates for digits"),
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
        pytest.param("5e-1", "500e-3", id="a negative exponent"),
        pytest.param("1000e-3", "1", id="an exponent of zero"),
        pytest.param("00500m", "500m", id="leading zeros"),
        pytest.param("+2", "2", id="a sign"),
        pytest.param("-1024Mi", "-1Gi", id="a negative quantity"),
        pytest.param("1500u", "2m", id="rounded up to thousandths"),
        pytest.param("-1500u", "-2m", id="a negative quantity, rounded away from zero"),
        pytest.param("0.1n", "1m", id="less than 1n"),
        pytest.param("9500m", "9500m", id="thousandths"),
        pytest.param("0.0001Ki", "103m", id="thousandths of bytes"),
        pytest.param("0.9999", "1", id="rounded up to a whole number"),
        pytest.param("1e-6", "1e-3", id="an exponent that is rounded up"),
        pytest.param("0", "0", id="zero"),
    ],
)
def test_a_quantity_has_the_canonical_form_of_kubernetes(text: str | int, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@given(st.integers(-(2**33), 2**33), st.sampled_from(["", "n", "m", "k", "Ki", "Mi", "e3", "e-7"]))
def test_canonicalization_rounds_to_thousandths_away_from_zero_and_is_idempotent(number: int, suffix: str) -> None:
    form = quantity.canonical(f"{number}{suffix}")
    exact, found = quantity.parse(f"{number}{suffix}"), quantity.parse(form)
    assert (found * 1000).denominator == 1
    assert abs(exact) <= abs(found) < abs(exact) + Fraction(1, 1000)
    assert quantity.canonical(form) == form


def test_an_integer_is_a_quantity() -> None:
    assert quantity.parse(4) == 4


@pytest.mark.parametrize(
    "text",
    ["", ".", "m", "ten", "NaN", "1 Gi", "1gi", "1KI", "1e", "1ee3", "--1", "1.2.3", "0x1", "1_0", "\u0661", "1\n"],
)
def test_anything_else_is_rejected_with_the_text_of_kubernetes(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("9223372036854775807", "", id="the largest"),
        pytest.param("16Ei", "", id="limited to the largest"),
        pytest.param(2**63 - 1, "", id="the largest integer"),
        pytest.param("1e18", "", id="the largest exponent"),
        pytest.param("1e-18", "", id="the smallest exponent"),
        pytest.param("9223372036854775807.1", "must be no more than", id="more than the largest"),
        pytest.param("10E", "must be no more than", id="more than the largest, with a suffix"),
        pytest.param(2**63, "must be no more than", id="an integer of more than 63 bits"),
        pytest.param("1e19", "must have an exponent between -18 and 18", id="a large exponent"),
        pytest.param("0e19", "must have an exponent between -18 and 18", id="zero with a large exponent"),
        pytest.param("1e-19", "must have an exponent between -18 and 18", id="a small exponent"),
        pytest.param("1e999999999", "must have an exponent between -18 and 18", id="an exponent of 30 bits"),
        pytest.param("1e4294967296", "must have an exponent between -18 and 18", id="an exponent of 33 bits"),
        pytest.param("0" * 128, "", id="as long as allowed"),
        pytest.param("0" * 129, "must be no more than 128 characters", id="too long"),
        pytest.param("-1", "must be greater than or equal to 0", id="negative"),
        pytest.param("-1e-18", "must be greater than or equal to 0", id="negative, rounded to 1n"),
        pytest.param("-0", "", id="zero with a sign"),
        pytest.param("NaN", "quantities must match", id="not a number"),
    ],
)
def test_a_limit_is_what_kubernetes_handles(text: str | int, problem: str) -> None:
    """ATTACK-16."""
    if problem:
        for parse in (quantity.parse_limit, quantity.canonical_limit):
            with pytest.raises(ValueError, match=problem):
                parse(text)
    else:
        assert quantity.parse(quantity.canonical_limit(text)) == quantity.parse_limit(text)


@given(st.from_regex(r"[+-]?[0-9]{0,40}(\.[0-9]{0,40})?([EPTGMKkmun]|Ei|Ki|[eE][+-]?[0-9]{1,12})?", fullmatch=True))
def test_a_limit_is_written_with_few_characters_and_a_small_exponent(text: str) -> None:
    try:
        form = quantity.canonical_limit(text)
    except ValueError:
        return
    assert re.fullmatch(r"[0-9]{1,22}([EPTGMKkm]|[EPTGMK]i|e(-?3|[69]|1[258]))?", form)
    assert quantity.canonical_limit(form) == form


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("9" * 1_000_000, id="digits"),
        pytest.param(f"0.{'9' * 1_000_000}Ei", id="fraction"),
        pytest.param(f"{'0' * 1_000_000}.{'0' * 1_000_000}m", id="zeros"),
        pytest.param(f"1e{'9' * 1_000_000}", id="exponent"),
        pytest.param(f"{'9' * 500_000}e-{'9' * 500_000}", id="digits and exponent"),
        pytest.param(f"{'9' * 1_000_000}x", id="malformed"),
    ],
)
def test_a_megabyte_is_parsed_without_arithmetic_on_it(text: str) -> None:
    """Arithmetic on a million digits takes minutes; the steps of these parsers are linear and few."""

    def parse() -> None:
        for each in (quantity.parse, quantity.parse_limit):
            with contextlib.suppress(ValueError):
                each(text)

    assert least_ratio(parse, lambda: sum(map(ord, text)), below=20) < 20


@given(st.integers(-(10**27), 10**27))
def test_a_formatted_value_parses_to_the_same_value(nanos: int) -> None:
    value = Fraction(nanos, 10**9)
    assert quantity.parse(quantity.to_text(value)) == value
