from __future__ import annotations

import math

import pytest

from admission.cel.library import ip_and_cidr as addresses
from admission.cel.library import quantity_and_semver as comparables
from admission.cel.library import urls
from admission.cel.library.opaque_types import FunctionError
from admission.cel.library.regex import find, find_all, without_groups


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        pytest.param("(a)(?P<n>b)", "(?:a)(?:b)", id="groups, named or not"),
        pytest.param("(?:a)(?i:b)(?i)c", "(?:a)(?i:b)(?i)c", id="non-capturing groups and flags"),
        pytest.param(r"\(a[(]b\Q(c\E(d)", r"\(a[(]b\Q(c\E(?:d)", id="quoted parentheses"),
        pytest.param("[]()](a)", "[]()](?:a)", id="a bracket at the start of a character class"),
    ],
)
def test_capturing_groups_become_non_capturing(pattern: str, plain: str) -> None:
    assert without_groups(pattern) == plain


def test_a_pattern_with_catastrophic_backtracking_is_evaluated_at_once() -> None:
    assert find("a" * 5000 + "!", "(a+)+$") == ""
    assert find_all("a1b22", "[0-9]+") == ["1", "22"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "empty url", id="empty"),
        pytest.param("a/b", "invalid URI for request", id="relative"),
        pytest.param(":a", "missing protocol scheme", id="no scheme"),
        pytest.param("https://a b/", 'invalid character " " in host name', id="space in the host"),
        pytest.param("https://a:b/", 'invalid port ":b" after host', id="port"),
        pytest.param("https://a/%zz", 'invalid URL escape "%zz"', id="escape"),
        pytest.param("https://[::1/", "missing ']' in host", id="bracket"),
        pytest.param("https://a/\n", "net/url: invalid control character in URL", id="control character"),
    ],
)
def test_an_invalid_url_fails_with_gos_message(text: str, why: str) -> None:
    assert urls.request_uri_problem(text).endswith(why)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("1.2.3.256", "IPv4 field has value >255", id="value"),
        pytest.param("01.2.3.4", "IPv4 field has octet with leading zero", id="leading zero"),
        pytest.param("1.2.3", "IPv4 address too short", id="short"),
        pytest.param("1.2.3.4.5", "IPv4 address too long", id="long"),
        pytest.param("x", "unable to parse IP", id="no address"),
    ],
)
def test_an_invalid_ip_address_fails_with_gos_message(text: str, why: str) -> None:
    with pytest.raises(FunctionError) as caught:
        addresses.parse_ip(text)
    assert str(caught.value).endswith(why)


@pytest.mark.parametrize(
    ("text", "loose", "why"),
    [
        pytest.param("", False, "Version string empty", id="empty"),
        pytest.param("1.2", False, "No Major.Minor.Patch elements found", id="short"),
        pytest.param("01.2.3", False, 'Major number must not contain leading zeroes "01"', id="leading zero"),
        pytest.param("a.2.3", False, 'Invalid character(s) found in major number "a"', id="letters"),
        pytest.param(
            "1.2-a", True, "short version cannot contain PreRelease/Build meta data", id="short, with a prerelease"
        ),
        pytest.param("1.2.3-01", False, 'Numeric PreRelease version must not contain leading zeroes "01"', id="pre"),
        pytest.param(
            f"{'9' * 5000}.2.3",
            False,
            f'strconv.ParseUint: parsing "{"9" * 5000}": value out of range',
            id="a number of 5,000 digits",
        ),
        pytest.param(
            f"1.2.3-{2**64}",
            False,
            f'strconv.ParseUint: parsing "{2**64}": value out of range',
            id="a large prerelease",
        ),
    ],
)
def test_an_invalid_semantic_version_fails_with_the_message_of_the_go_library(text: str, loose: bool, why: str) -> None:
    with pytest.raises(FunctionError) as caught:
        comparables.parse_semver(text, loose)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("1500m", 1.5, id="a fraction"),
        pytest.param("1e300", 1e300, id="an exponent"),
        pytest.param("1e999999999", math.inf, id="more than a float holds"),
        pytest.param("-1e999999999", -math.inf, id="less than a float holds"),
    ],
)
def test_a_quantity_has_an_approximate_float(text: str, value: float) -> None:
    assert comparables.as_approximate_float(comparables.parse_quantity(text)) == value
