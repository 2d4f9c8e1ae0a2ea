"""Schemas of definitions are read as Go reads them. The texts are those of a kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.errors import BadRequest
from registry.embedded.custom.schema_types import with_schema_types
from tests.registry.embedded.custom.definitions import with_schema

SCHEMA = "spec.versions.schema.openAPIV3Schema"
FIELD = f"JSONSchemaProps.{SCHEMA}.properties.properties"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param(True, f"bool into Go struct field {FIELD} of type v1.JSONSchemaProps", id="a bool"),
        pytest.param("x", f"string into Go struct field {FIELD} of type v1.JSONSchemaProps", id="a string"),
        pytest.param(
            {"properties": ["a"]},
            f"array into Go struct field {FIELD}.properties of type map[string]v1.JSONSchemaProps",
            id="properties",
        ),
        pytest.param({"pattern": 5}, f"number into Go struct field {FIELD}.pattern of type string", id="pattern"),
        pytest.param({"minimum": "x"}, f"string into Go struct field {FIELD}.minimum of type float64", id="minimum"),
        pytest.param(
            {"maxLength": 1.5}, f"number 1.5 into Go struct field {FIELD}.maxLength of type int64", id="a fraction"
        ),
        pytest.param({"nullable": "x"}, f"string into Go struct field {FIELD}.nullable of type bool", id="nullable"),
        pytest.param(
            {"required": "a"}, f"string into Go struct field {FIELD}.required of type []string", id="required"
        ),
        pytest.param({"enum": "abc"}, f"string into Go struct field {FIELD}.enum of type []v1.JSON", id="enum"),
        pytest.param(
            {"anyOf": {}}, f"object into Go struct field {FIELD}.anyOf of type []v1.JSONSchemaProps", id="alternatives"
        ),
        pytest.param(
            {"x-kubernetes-validations": {}},
            f"object into Go struct field {FIELD}.x-kubernetes-validations of type v1.ValidationRules",
            id="rules",
        ),
        pytest.param(
            {"x-kubernetes-validations": [{"rule": 5}]},
            f"number into Go struct field ValidationRule.{SCHEMA}.properties.properties.x-kubernetes-validations.rule "
            "of type string",
            id="a rule",
        ),
    ],
)
def test_a_keyword_of_a_wrong_type_is_a_bad_request(field: Any, expected: str) -> None:
    with pytest.raises(BadRequest) as found:
        with_schema_types(with_schema(a=field))
    prefix = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: json: '
    assert found.value.message == f"{prefix}cannot unmarshal {expected}"


def read(field: Any) -> Any:
    [version] = with_schema_types(with_schema(a=field))["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["a"]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param(None, {}, id="no schema"),
        pytest.param({"type": "string", "default": None, "format": None}, {"type": "string"}, id="null is absence"),
        pytest.param({"type": "string", "foo": {"bar": 1}}, {"type": "string"}, id="an unknown keyword"),
        pytest.param({"enum": [None, {"x": 1}], "default": {"type": 5}}, ..., id="values"),
        pytest.param({"additionalProperties": True, "items": [{"type": "string"}], "not": {}}, ..., id="unions"),
        pytest.param({"dependencies": {"a": ["b"], "c": {"type": "string"}}, "maximum": 1.5}, ..., id="dependencies"),
    ],
)
def test_null_and_what_is_no_keyword_are_dropped(field: Any, expected: Any) -> None:
    assert read(field) == (field if expected is ... else expected)


def test_a_definition_without_schemas_stays_as_it_is() -> None:
    for crd in ({}, {"spec": {"group": "example.com"}}, {"spec": {"versions": [{"name": "v1"}]}}):
        assert with_schema_types(crd) == crd
