"""The defaults that one object gets are bounded: a client would else make large objects of small ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.cel.library.regex import matches
from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver.meta.resource import Object, Schema
from registry.application.defaulting import TooManyDefaults, with_defaults, with_defaults_if_few
from registry.application.validation import ApplicationValidation
from registry.application.values import shown_spec, write_changed_values
from tests.cpu_time import least_ratio

LARGE = {"properties": {"text": {"type": "string", "default": "x" * 4_000}}}
SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "default": "1Gi"},
        "list": {"type": "array", "items": LARGE},
        "nulls": {"type": "array", "items": {"type": "string", "default": "x" * 4_000}},
        "map": {"type": "object", "additionalProperties": LARGE},
        **{f"part{number}": LARGE for number in range(100)},
    },
}
FEW: Object = {"list": [{}] * 50}
MANY: Object = {"list": [{}] * 20_000}


@pytest.fixture(scope="module")
def validation() -> ApplicationValidation:
    return ApplicationValidation(SCHEMA, compiler=SchemaRuleCompiler(), matches=matches)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(MANY, id="items of a list"),
        pytest.param({"nulls": [None] * 20_000}, id="null items"),
        pytest.param({"map": {f"key{number}": {} for number in range(20_000)}}, id="values of a map"),
        pytest.param({f"part{number}": {} for number in range(100)}, id="many parts"),
    ],
)
def test_a_spec_to_which_too_much_would_be_added_is_refused(validation: ApplicationValidation, spec: Any) -> None:
    expected = ["spec: Invalid value: the defaults of its schema would add more than 256 KiB"]
    assert [str(each) for each in validation.create_errors(spec)] == expected
    assert [str(each) for each in validation.update_errors(spec, {})] == expected
    with pytest.raises(TooManyDefaults):
        with_defaults(SCHEMA, spec)


def test_the_names_of_defaults_count() -> None:
    """A body of 76 kB was shown as one of 76 MB."""
    short = {"type": "integer", "default": 0}
    schema = {"properties": {"list": {"items": {"properties": {"x" * 900 + str(n): short for n in range(4)}}}}}
    with pytest.raises(TooManyDefaults):
        with_defaults(schema, MANY)
    assert with_defaults_if_few(schema, MANY) == MANY
    assert len(with_defaults(schema, FEW)["list"][0]) == 4


def test_properties_without_a_default_are_not_looked_for_in_each_item() -> None:
    def fill(properties: int) -> None:
        item = {"properties": {f"p{number}": {"type": "string"} for number in range(properties)}}
        with_defaults({"properties": {"list": {"items": item}}}, {"list": [{}] * 1_000})

    assert least_ratio(lambda: fill(2_000), lambda: fill(10), below=20) < 20


def test_a_spec_that_gets_few_defaults_is_shown_with_them(validation: ApplicationValidation) -> None:
    assert validation.create_errors(FEW) == []
    assert len(json.dumps(with_defaults(SCHEMA, FEW))) > 200_000
    # values that a client sends itself do not count
    own = {"list": [{"text": "y" * 4_000}] * 200}
    assert with_defaults(SCHEMA, own) == {**own, "size": "1Gi"}


def test_what_is_stored_already_is_shown_as_it_is_and_can_be_mended(validation: ApplicationValidation) -> None:
    stored = {"_cluster": 1, **MANY}
    shown = shown_spec(stored, SCHEMA)
    assert shown == MANY == with_defaults_if_few(SCHEMA, MANY)
    assert shown["list"][0] is not stored["list"][0]
    # the metadata can change, such as finalizers
    assert validation.update_errors(MANY, shown) == []
    assert validation.shown(MANY) == MANY
    # and the spec to what is not too large
    assert validation.update_errors({**MANY, "size": "2Gi"}, shown) != []
    assert validation.update_errors(FEW, shown) == []
    release_spec = {"values": stored}
    write_changed_values(release_spec, FEW, shown)
    assert release_spec["values"] == {"_cluster": 1, **FEW}
