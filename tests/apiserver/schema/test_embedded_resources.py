"""Objects inside of objects have valid types and metadata. The texts are those of apiextensions-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.embedded_resources import embedded_resource_errors

SCHEMA = {
    "type": "object",
    "properties": {"template": {"type": "object", "x-kubernetes-embedded-resource": True}},
}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"labels": {"a": "b"}, "annotations": {"A.b/c": "any text"}}, [], id="valid"),
        pytest.param({"labels": {"a b": "c"}}, ["template.metadata.labels"], id="a key of a label"),
        pytest.param({"labels": {"a": "b c"}}, ["template.metadata.labels"], id="a value of a label"),
        pytest.param({"annotations": {"a b": "c"}}, ["template.metadata.annotations"], id="a key of an annotation"),
        pytest.param({"labels": {"a b": 1}}, [], id="another type"),
        pytest.param("x", [], id="no object"),
    ],
)
def test_labels_and_annotations_of_an_embedded_object_are_valid(metadata: Any, expected: list[str]) -> None:
    obj = {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}}
    assert [each.field for each in embedded_resource_errors(SCHEMA, obj)] == expected
