"""The author of a schema and the client that sends a value cannot occupy the server together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.json import values
from apiserver.meta.errors import Invalid
from apiserver.meta.resource import GroupKind, Schema
from apiserver.schema import validation
from apiserver.schema.choices import alternatives_of_one_value, has_many_checks
from apiserver.schema.findings import MAX_ERRORS
from apiserver.schema.list_types import ItemsByKeys
from apiserver.schema.validation import SchemaValidator
from tests.cpu_time import least_ratio

REFUSED = "the alternatives of its schema (anyOf, oneOf, allOf, not) take more than 1000 checks"


def items(**schema: Any) -> Schema:
    return {"type": "array", "items": schema}


def test_a_value_is_looked_up_among_many_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counting(left: Any, right: Any) -> bool:
        nonlocal compared
        compared += 1
        return values.equal(left, right)

    monkeypatch.setattr(validation, "equal", counting)
    validator = SchemaValidator(items(enum=[f"choice-{number}" for number in range(5_000)]))
    assert validator.errors(["choice-4999"] * 500) == []
    found = validator.errors(["z"] * 500)
    assert compared == 0
    # all errors share one text of bounded size
    assert len({id(each.detail) for each in found[:MAX_ERRORS]}) == 1
    assert len(found[0].detail) < 10_000
    assert found[0].detail.startswith('supported values: "choice-0", "choice-1", ')
    assert found[0].detail.endswith(" more")


@pytest.mark.parametrize(
    ("enum", "value", "is_valid"),
    [
        pytest.param([1, "a"], 1.0, True, id="equal numbers"),
        pytest.param([1, "a"], True, False, id="a boolean is no number"),
        pytest.param([{"a": [1]}], {"a": [1]}, True, id="an object"),
        pytest.param([["a"]], ["b"], False, id="another list"),
    ],
)
def test_choices_are_compared_as_json(enum: list[Any], value: Any, is_valid: bool) -> None:
    assert (SchemaValidator({"enum": enum}).errors(value, "spec") == []) is is_valid


def test_the_text_of_ordinary_choices_is_that_of_kubernetes() -> None:
    found = SchemaValidator({"enum": ["a", 1, True]}).errors("b", "spec")
    assert [str(each) for each in found] == ['spec: Unsupported value: "b": supported values: "a", "1", "true"']


def test_the_first_errors_of_an_object_are_told() -> None:
    validator = SchemaValidator(items(type="integer"))
    found = validator.errors(["z"] * 5_000, "spec")
    assert [each.field for each in found[:MAX_ERRORS]] == [f"spec[{number}]" for number in range(MAX_ERRORS)]
    note = f"<nil>: Invalid value: there are more errors: only the first {MAX_ERRORS} are listed"
    assert [str(each) for each in found[MAX_ERRORS:]] == [note]
    assert len(validator.errors(["z"] * MAX_ERRORS, "spec")) == MAX_ERRORS


def test_the_errors_of_many_alternatives_are_small() -> None:
    schema = items(anyOf=[{"enum": [f"{number}-{other}" for other in range(100)]} for number in range(50)])
    found = SchemaValidator(schema).errors(["z"] * 500, "spec")
    assert len(json.dumps(Invalid(GroupKind("g", "Kind"), "name", found).status())) < 1_000_000


def test_the_errors_of_many_alternatives_are_not_compared_each_with_each() -> None:
    """A body of 1 kB took minutes, by a schema of 3 kB."""

    def judge(alternatives: int) -> None:
        schema = {"allOf": [items(enum=[f"a{number}"]) for number in range(alternatives)]}
        SchemaValidator(schema).errors(["z"] * 50, "spec")

    assert least_ratio(lambda: judge(64), lambda: judge(8), below=24) < 24


def test_names_that_are_required_cost_what_the_object_has() -> None:
    def judge(required: list[str]) -> None:
        SchemaValidator(items(required=required)).errors([{"a": 1}] * 500, "spec")

    assert least_ratio(lambda: judge(["a"] * 5_000), lambda: judge(["a"]), below=20) < 20
    found = SchemaValidator({"required": [f"name-{number}" for number in range(5_000)]}).errors({}, "spec")
    assert [each.field for each in found[:2]] == ["spec.name-0", "spec.name-1"]
    assert len(found) == MAX_ERRORS + 1


def test_the_names_that_alternatives_require_are_counted() -> None:
    """Each is an error to make, also where another alternative holds."""
    schema = items(anyOf=[{"required": [f"name-{number}" for number in range(500)]}, {}])
    validator = SchemaValidator(schema, max_trials=1_000)
    assert validator.errors([{}] * 2, "spec") == []
    assert [str(each) for each in validator.errors([{}] * 20, "spec")] == [f"spec: Invalid value: {REFUSED}"]


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(items(anyOf=[{"pattern": f"^a{number}$"} for number in range(50)]), id="anyOf"),
        pytest.param(items(allOf=[{"not": {"pattern": f"^a{number}$"}} for number in range(50)]), id="allOf and not"),
        pytest.param({"oneOf": [items(pattern=f"^a{number}$") for number in range(50)]}, id="oneOf of lists"),
    ],
)
def test_the_alternatives_that_one_object_may_try_are_bounded(schema: Schema) -> None:
    tried = 0

    def matches(pattern: str, text: str) -> bool:
        nonlocal tried
        tried += 1
        return False

    validator = SchemaValidator(schema, matches=matches, max_trials=1_000)
    found = validator.errors(["z"] * 5_000, "spec")
    assert [str(each) for each in found] == [f"spec: Invalid value: {REFUSED}"]
    assert tried <= 1_000
    # what was stored before and stays is no error, and costs nothing
    tried = 0
    assert validator.update_errors(["z"] * 5_000, ["z"] * 5_000, "spec") == []
    assert tried == 0
    assert REFUSED in str(validator.update_errors(["z"] * 5_000, ["z"] * 4_999, "spec")[0])


@pytest.mark.parametrize(
    ("schema", "number", "many"),
    [
        pytest.param({"pattern": "a"}, 0, False, id="a pattern"),
        pytest.param(items(pattern="a"), 0, True, id="a pattern for each item"),
        pytest.param(items(properties={"b": {"pattern": "a"}}), 0, True, id="a pattern in each item"),
        pytest.param({"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "a"}, 2, False, id="a quantity"),
        pytest.param(items(anyOf=[{"pattern": "a"}, {"pattern": "b"}]), 2, True, id="two patterns"),
        pytest.param(items(oneOf=[{"type": "integer"}] * 20), 20, True, id="many types"),
        pytest.param(items(enum=["a"] * 5_000), 0, False, id="an enum is looked up"),
        pytest.param({"allOf": [items(anyOf=[{}] * 5)] * 5}, 30, True, id="alternatives multiply"),
        pytest.param({"not": {"additionalProperties": {"anyOf": [{}] * 2}}}, 3, False, id="not"),
        pytest.param({"properties": {f"p{n}": {"anyOf": [{}] * 3} for n in range(50)}}, 3, False, id="many properties"),
    ],
)
def test_schemas_with_many_alternatives_are_known(schema: Schema, number: int, many: bool) -> None:
    assert (alternatives_of_one_value(schema), has_many_checks(schema)) == (number, many)


def test_items_of_a_map_are_found_by_their_keys_without_comparing_each_with_each() -> None:
    schema = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}

    def find(number: int) -> None:
        items = [{"a": index, "c": "first"} for index in range(number)]
        olds = ItemsByKeys(schema, [*items, *items])
        assert all(olds.like({"a": index}) is items[index] for index in range(number))

    assert least_ratio(lambda: find(3_200), lambda: find(200), below=64) < 64


@pytest.mark.parametrize(
    ("item", "found"),
    [
        pytest.param({"a": 1.0, "c": 9}, 0, id="an equal number"),
        pytest.param({"a": True}, None, id="a boolean is no number"),
        pytest.param({"a": 1, "b": 2}, 1, id="two keys"),
        pytest.param({"a": 1, "b": None}, 0, id="null is as absent"),
        pytest.param("a", None, id="no object"),
    ],
)
def test_items_of_a_map_have_equal_keys(item: Any, found: int | None) -> None:
    schema = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}
    items = [{"a": 1}, {"a": 1, "b": 2}, {"a": 1}]
    assert ItemsByKeys(schema, items).like(item) is (None if found is None else items[found])
    assert ItemsByKeys({}, items).like(item) is None
