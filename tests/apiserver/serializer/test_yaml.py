"""Decoding of YAML. The expected values were recorded with sigs.k8s.io/yaml v1.6."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.errors import BadRequest
from apiserver.serializer.decoder import decode
from apiserver.serializer.yaml import YamlError, decode_yaml


def read(text: str) -> Any:
    return decode(text.encode(), "application/yaml").value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(
            "[y, Y, yes, on, On, 'true', True, TRUE]", [True, True, True, True, True, "true", True, True], id="yes"
        ),
        pytest.param(
            "[n, N, no, off, Off, 'no', False, tRue]", [False, False, False, False, False, "no", False, "tRue"], id="no"
        ),
        pytest.param("[~, null, Null, NULL, nUll, '']", [None, None, None, None, "nUll", ""], id="null"),
        pytest.param("[010, 0o17, -010, 08, 0_7, 00]", [8, 15, -8, 8, 7, 0], id="octal"),
        pytest.param("[0x1F, 0b11, -0x1f, 0b2, 0o8]", [31, 3, -31, "0b2", "0o8"], id="hexadecimal and binary"),
        pytest.param("[1_000, +5, _1, -0, 1__0]", [1000, 5, "_1", 0, 10], id="integers"),
        pytest.param(
            "[1.0, 1e3, 1.5e3, .5, 5., -.5, 1_0.5, 0.25]", [1, 1000, 1500, 0.5, 5, -0.5, 10.5, 0.25], id="floats"
        ),
        pytest.param("[1:30, 190:20:30, 1:30.5]", ["1:30", "190:20:30", "1:30.5"], id="no sexagesimal numbers"),
        pytest.param(
            "[2001-01-01, 2001-12-14t21:59:43.10-05:00]", ["2001-01-01", "2001-12-14t21:59:43.10-05:00"], id="no dates"
        ),
        pytest.param("[0x, 1e, -a, ., ..]", ["0x", "1e", "-a", ".", ".."], id="text that resembles numbers"),
        pytest.param("[123456789012345678901234567890]", [1.2345678901234568e29], id="beyond 64 bits"),
        pytest.param("[1.8e309]", ["1.8e309"], id="beyond floats"),
        pytest.param(
            "[!!str 1, !!int '3', !!bool 'yes', !!null '', !foo 12, ! 12]", ["1", 3, True, None, "12", "12"], id="tags"
        ),
        pytest.param("!!binary aGk=", "hi", id="binary"),
        pytest.param(
            "{1: a, 2.5: b, true: c, 0x10: d, 123456789.5: e}",
            {"1": "a", "2.5": "b", "true": "c", "16": "d", "1.2345679e+08": "e"},
            id="keys are strings",
        ),
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="an alias"),
        pytest.param(
            "x: &x {a: 1, b: 2}\nz:\n  <<: *x\n  b: 3", {"x": {"a": 1, "b": 2}, "z": {"a": 1, "b": 3}}, id="a merge"
        ),
        pytest.param(
            "- &x {a: 1}\n- &w {a: 2, c: 3}\n- <<: [*x, *w]",
            [{"a": 1}, {"a": 2, "c": 3}, {"a": 1, "c": 3}],
            id="the first of merged maps wins",
        ),
        pytest.param("{'<<': {a: 1}}", {"<<": {"a": 1}}, id="a quoted merge key is a key"),
        pytest.param("a: 1\n---\nb: 2", {"a": 1}, id="the first document only"),
        pytest.param("--- a\n...\nfoo: [", "a", id="the next document may be invalid"),
        pytest.param("# nothing", None, id="a comment"),
        pytest.param("", None, id="empty"),
        pytest.param("a: |\n  x\n  y\nb: >\n  x\n  y\n", {"a": "x\ny\n", "b": "x y\n"}, id="blocks"),
        pytest.param("\ufeffa: 1", {"a": 1}, id="a byte order mark"),
        pytest.param("=: =", {"=": "="}, id="equals"),
    ],
)
def test_yaml_is_decoded_like_in_kubernetes(text: str, value: Any) -> None:
    found = read(text)
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("a: .nan", "yaml: line 1: unsupported value: .nan", id="NaN"),
        pytest.param("a: -.inf", "yaml: line 1: unsupported value: -.inf", id="infinity"),
        pytest.param("~: a", "line 1: unsupported map key: null", id="a null key"),
        pytest.param("? [a]\n: b", "line 1: invalid map key", id="a list as key"),
        pytest.param("a: &x {b: *x}", "anchor 'x' value contains itself", id="an anchor that contains itself"),
        pytest.param("a: *x", "unknown anchor 'x' referenced|undefined alias", id="an unknown anchor"),
        pytest.param("? *x\n: 1\nx: &x []", "unknown anchor", id="an alias before its anchor"),
        pytest.param("x: &x []\n? *x\n: 1", "invalid map key", id="an alias of a list as key"),
        pytest.param("y:\n  <<: 3", "line 2: map merge requires map or sequence of maps", id="merging a number"),
        pytest.param("a: !!int abc", "cannot decode !!str `abc` as a !!int", id="text tagged as a number"),
        pytest.param("a: !!bool 3", "cannot decode !!int `3` as a !!bool", id="a number tagged as a boolean"),
        pytest.param("a: !!binary '***'", "invalid base64", id="invalid binary"),
        pytest.param("a:\n\t- b", "line 2: found character that cannot start any token", id="a tab"),
        pytest.param("a: b: c", "mapping values are not allowed", id="two colons"),
        pytest.param("a: \x07", "control characters are not allowed", id="a control character"),
        pytest.param("a: [1", "line", id="a list that is not closed"),
    ],
)
def test_invalid_yaml_is_a_bad_request(text: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why) as raised:
        read(text)
    assert raised.value.message.startswith("error converting YAML to JSON: yaml: ")


def test_aliases_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 9):
        lines.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]")
    with pytest.raises(BadRequest, match="document contains excessive aliasing"):
        read("\n".join(lines))


@pytest.mark.parametrize("anchored", ["k" * 100_000, "{? " + "k" * 100_000 + " : 1}", "[" + "k" * 100_000 + "]"])
def test_the_text_of_aliases_is_bounded(anchored: str) -> None:
    """ATTACK-19: all aliases share one text, which is written again for each of them."""
    lines = [f"a: &a {anchored}", *(f"a{number}: *a" for number in range(32))]
    with pytest.raises(BadRequest, match="document contains excessive aliasing"):
        read("\n".join(lines))
    assert len(read("\n".join(lines[:30]))) == 30


def test_the_number_of_yaml_values_is_bounded() -> None:
    with pytest.raises(BadRequest, match="document contains too many values"):
        read("- a\n" * 300_000)


def test_aliases_are_copies() -> None:
    value = read("a: &x {l: [1]}\nb: *x\nc: *x")
    value["b"]["l"].append(2)
    assert value == {"a": {"l": [1]}, "b": {"l": [1, 2]}, "c": {"l": [1]}}


def test_yaml_nested_deeper_than_the_limit_is_an_error() -> None:
    with pytest.raises(YamlError, match="exceeded max depth of 2"):
        decode_yaml("[[[1]]]", max_nesting=2)
    assert decode_yaml("[[1]]", max_nesting=2) == ([[1]], [])


def test_duplicate_keys_are_reported_with_the_lines_of_their_values() -> None:
    _, duplicates = decode_yaml("a: 1\nb:\n  foo:\n    x: 1\n  foo:\n    x: 2\n\n\n  foo: 3\n1: a\n1: b", max_nesting=9)
    assert duplicates == [
        'line 6: key "foo" already set in map',
        'line 9: key "foo" already set in map',
        "line 11: key 1 already set in map",
    ]


def test_duplicates_of_a_long_key_are_reported_within_bounds() -> None:
    """ATTACK-19: an alias repeats a key of any length."""
    _, duplicates = decode_yaml(f"? &a {'k' * 50_000}\n: 1\n" + "? *a\n: 1\n" * 40, max_nesting=9)
    assert len(duplicates) == 6


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("ab:#-'\" \n", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab: ", max_size=3), inner, max_size=3),
)


@given(values)
def test_dumped_yaml_survives_a_round_trip(value: Any) -> None:
    assert read(yaml.safe_dump(value)) == value


@given(st.text("ab:-[]{}&*!|>'\"%@#,? \n\t0.9<~", max_size=25))
def test_any_text_is_a_value_or_a_bad_request(text: str) -> None:
    with contextlib.suppress(BadRequest):
        orjson.dumps(read(text))
