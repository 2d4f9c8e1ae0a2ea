"""Label and field selectors: matching, and the errors of invalid ones (WIRE-D56, WIRE-D57)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.errors import BadRequest
from apiserver.meta.selectors import FieldSelector, Requirement, parse_field_selector, parse_label_selector

NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@dataclass(frozen=True)
class LabelledObject:
    labels: Mapping[str, str]


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        pytest.param("", {}, True, id="an empty selector matches everything"),
        pytest.param("a", {"a": ""}, True, id="a key alone requires that it exists"),
        pytest.param("a", {"b": ""}, False, id="a key that is not there does not exist"),
        pytest.param("!a", {"b": ""}, True, id="an exclamation mark requires that it does not exist"),
        pytest.param("! a", {"a": ""}, False, id="a space may follow the exclamation mark"),
        pytest.param("a=b", {"a": "b"}, True, id="one equals sign"),
        pytest.param("a==b", {"a": "b"}, True, id="two equals signs"),
        pytest.param("a=b", {}, False, id="a missing key equals nothing"),
        pytest.param("a=", {"a": ""}, True, id="an empty value is a value"),
        pytest.param("a=,b=c", {"a": "", "b": "c"}, True, id="an empty value before a comma"),
        pytest.param("a!=b", {"a": "b"}, False, id="not equal"),
        pytest.param("a!=b", {}, True, id="a missing key is not equal"),
        pytest.param("a in (b,c)", {"a": "c"}, True, id="in a set"),
        pytest.param("a in (b,c)", {}, False, id="a missing key is in no set"),
        pytest.param("a in (,b)", {"a": ""}, True, id="a set may hold the empty value"),
        pytest.param("a in ()", {"a": ""}, True, id="a set of nothing holds the empty value"),
        pytest.param("a in ()", {"a": "b"}, False, id="in a set of nothing"),
        pytest.param("a notin ()", {"a": "b"}, True, id="not in a set of nothing"),
        pytest.param("a notin (b,c)", {"a": "c"}, False, id="not in a set"),
        pytest.param("a notin(b)", {}, True, id="a missing key is not in the set"),
        pytest.param("a>5", {"a": "6"}, True, id="greater"),
        pytest.param("a>5", {"a": "5"}, False, id="equal is not greater"),
        pytest.param("a<5", {"a": "4"}, True, id="less"),
        pytest.param("a<5", {"a": "x"}, False, id="text is neither greater nor less"),
        pytest.param("a,!a", {"a": ""}, False, id="a contradiction matches nothing"),
        pytest.param("in in (in)", {"in": "in"}, True, id="operators may be keys and values"),
        pytest.param(f"{'k' * 63}=v", {"k" * 63: "v"}, True, id="a key of 63 characters"),
        pytest.param(
            "kubernetes.io/metadata.name = x , b", {"kubernetes.io/metadata.name": "x", "b": ""}, True, id="spaces"
        ),
    ],
)
def test_a_label_selector_matches(text: str, labels: Mapping[str, str], matches: bool) -> None:
    selector, labelled = parse_label_selector(text), LabelledObject(labels)
    assert selector.matches(labels) is matches
    assert selector.select([labelled, labelled]) == [labelled] * (2 * matches)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a(",
            "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt",
            id="no operator",
        ),
        pytest.param(
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            id="an identifier instead of an operator",
        ),
        pytest.param("=a", "found '=', expected: !, identifier, or 'end of string'", id="an operator first"),
        pytest.param("a,", "found '', expected: identifier after ','", id="nothing after a comma"),
        pytest.param(
            "!", "unable to parse requirement: found '', expected: identifier", id="an exclamation mark without a key"
        ),
        pytest.param("!a=b", "found '=', expected: ',' or 'end of string'", id="an exclamation mark and an operator"),
        pytest.param(
            "a=(", "unable to parse requirement: found '(', expected: identifier", id="a set after an equals sign"
        ),
        pytest.param("a in b", "unable to parse requirement: found 'b' expected: '('", id="in without a set"),
        pytest.param(
            "a in (b", "unable to parse requirement: found '', expected: ',' or ')'", id="a set that is not closed"
        ),
        pytest.param("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier", id="an end"),
        pytest.param(
            "a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier", id="a sign"
        ),
        pytest.param("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier", id="a comma"),
        pytest.param("a in (,=", "unable to parse requirement: found '=', expected: ',', or identifier", id="commas"),
        pytest.param(
            f"a>{'1' * 63}",
            f"unable to parse requirement: values[0]: Invalid value: \"{'1' * 63}\": for 'Gt', 'Lt' operators, "
            "the value must be an integer",
            id="greater than more than 64 bits",
        ),
        pytest.param(
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
            "the value must be an integer",
            id="greater than text",
        ),
        pytest.param(
            "a:b", f'unable to parse requirement: <nil>: Invalid value: "a:b": {NAME_PART}', id="an invalid key"
        ),
        pytest.param(
            "/a",
            'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty',
            id="an empty prefix",
        ),
        pytest.param(
            f"{'k' * 64}",
            f'unable to parse requirement: <nil>: Invalid value: "{"k" * 64}": name part must be no more than 63 bytes',
            id="a long key",
        ),
        pytest.param(
            "a=b:c",
            'unable to parse requirement: values[0][a]: Invalid value: "b:c": a valid label',
            id="an invalid value",
        ),
    ],
)
def test_an_invalid_label_selector_is_a_bad_request(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        parse_label_selector(text)
    assert raised.value.message.startswith(message)


def format_requirement(requirement: Requirement) -> str:
    # a set with only the empty value is written as a comma
    key, values = requirement.key, ",".join(requirement.values) or ","
    forms = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
        "Gt": f"{key}>{values}",
        "Lt": f"{key}<{values}",
    }
    return forms[requirement.operator]


@given(st.text(alphabet="ab/=!<>(), intno.-_é\t01", max_size=30))
def test_any_text_is_rejected_or_survives_a_round_trip(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except BadRequest:
        return
    assert parse_label_selector(",".join(map(format_requirement, selector.requirements))) == selector


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        pytest.param("", (), id="empty"),
        pytest.param("metadata.name=x", (Requirement("metadata.name", "In", ("x",)),), id="one equals sign"),
        pytest.param("metadata.name==x", (Requirement("metadata.name", "In", ("x",)),), id="two equals signs"),
        pytest.param("metadata.name!=x", (Requirement("metadata.name", "NotIn", ("x",)),), id="not equal"),
        pytest.param("=,!=,metadata.name=x,==", (Requirement("metadata.name", "In", ("x",)),), id="operators alone"),
        pytest.param("metadata.name=", (Requirement("metadata.name", "In", ("",)),), id="the empty value"),
        pytest.param(r"metadata.name=a\,b\=c\\", (Requirement("metadata.name", "In", ("a,b=c\\",)),), id="escapes"),
        pytest.param(
            "metadata.namespace=n,,metadata.name=x",
            (Requirement("metadata.name", "In", ("x",)), Requirement("metadata.namespace", "In", ("n",))),
            id="terms are sorted, empty ones dropped",
        ),
    ],
)
def test_a_field_selector_is_parsed(text: str, requirements: tuple[Requirement, ...]) -> None:
    assert parse_field_selector(text) == FieldSelector(requirements)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("name", "invalid selector: 'name'; can't understand 'name'", id="no operator"),
        pytest.param(
            "spec.x=1",
            '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="an unknown field",
        ),
        pytest.param(
            r"metadata.name=a\b", r"invalid field selector: invalid escape sequence: \b", id="an unknown escape"
        ),
        pytest.param("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\", id="a lone backslash"),
        pytest.param(
            "metadata.name=a=b", "invalid field selector: unescaped character in value: 61", id="an unescaped equals"
        ),
    ],
)
def test_an_invalid_field_selector_is_a_bad_request(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        parse_field_selector(text)
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        pytest.param(",".join(f"k{number}=v" for number in range(100)), True, id="100 requirements"),
        pytest.param(",".join(f"k{number}=v" for number in range(101)), False, id="101 requirements"),
        pytest.param("a=" * 8000, False, id="requirements that do not end"),
        pytest.param(f"k in ({','.join(f'v{number:06}' for number in range(2000))})", True, id="2,000 values"),
        pytest.param(f"k in ({','.join(f'v{number:06}' for number in range(2100))})", False, id="too many characters"),
    ],
)
def test_selectors_are_limited(text: str, accepted: bool) -> None:
    """ATTACK-19"""
    if accepted:
        assert parse_label_selector(text).requirements
    else:
        with pytest.raises(BadRequest):
            parse_label_selector(text)


@pytest.mark.parametrize("number", [100, 101])
def test_field_selectors_are_limited(number: int) -> None:
    """ATTACK-19"""
    text = ",".join(["metadata.name!=x"] * number)
    if number <= 100:
        assert len(parse_field_selector(text).requirements) == number
    else:
        with pytest.raises(BadRequest, match="at most 100 requirements"):
            parse_field_selector(text)


def test_other_fields_can_be_supported() -> None:
    selector = parse_field_selector("type=Opaque", ("metadata.name", "type"))
    assert selector.matches({"type": "Opaque"})
    assert not selector.matches({"type": "other"})


def test_kinds_with_selectable_fields_reject_unknown_fields_with_another_error() -> None:
    with pytest.raises(BadRequest) as raised:
        parse_field_selector("spec.x=1", ("metadata.name", "metadata.namespace", "type"))
    assert raised.value.message == "field label not supported: spec.x"


def test_any_field_can_be_supported() -> None:
    assert parse_field_selector("spec.x=1", None).requirements == (Requirement("spec.x", "In", ("1",)),)


def test_a_field_selector_returns_the_value_it_requires() -> None:
    selector = parse_field_selector("metadata.name!=a,metadata.namespace=b")
    assert (selector.exact("metadata.name"), selector.exact("metadata.namespace")) == (None, "b")
