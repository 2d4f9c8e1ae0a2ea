from __future__ import annotations

from typing import Any

import pytest

from apiserver.endpoints.openapi.meta_definitions import META, meta_definitions
from apiserver.schema.object_meta import OBJECT_META
from apiserver.schema.object_meta_types import metadata_type_error
from tests.apiserver.schema.widgets import widgets


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        pytest.param({"name": "x", "labels": {"a": "b"}, "generation": 1}, None, id="valid types"),
        pytest.param(None, None, id="no metadata"),
        pytest.param({"labels": None, "ownerReferences": [{"controller": None}]}, None, id="nulls"),
        pytest.param(
            "x",
            "json: cannot unmarshal string into Go struct field Widget.metadata of type v1.ObjectMeta",
            id="metadata",
        ),
        pytest.param(
            {"name": 1},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
            id="name",
        ),
        pytest.param(
            {"name": True},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string",
            id="a boolean",
        ),
        pytest.param(
            {"labels": 1},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            id="labels",
        ),
        pytest.param(
            {"labels": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            id="a label",
        ),
        pytest.param(
            {"finalizers": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.finalizers of type []string",
            id="finalizers",
        ),
        pytest.param(
            {"finalizers": [[]]},
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.finalizers of type string",
            id="a finalizer",
        ),
        pytest.param(
            {"ownerReferences": {}},
            "json: cannot unmarshal object into Go struct field "
            "ObjectMeta.metadata.ownerReferences of type []v1.OwnerReference",
            id="owners",
        ),
        pytest.param(
            {"ownerReferences": [1]},
            "json: cannot unmarshal number into Go struct field "
            "ObjectMeta.metadata.ownerReferences of type v1.OwnerReference",
            id="an owner",
        ),
        pytest.param(
            {"ownerReferences": [{"uid": 1}]},
            "json: cannot unmarshal number into Go struct field "
            "OwnerReference.metadata.ownerReferences.uid of type types.UID",
            id="an owner's uid",
        ),
        pytest.param(
            {"ownerReferences": [{"controller": 1}]},
            "json: cannot unmarshal number into Go struct field "
            "OwnerReference.metadata.ownerReferences.controller of type bool",
            id="an owner's controller",
        ),
        pytest.param(
            {"generation": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.generation of type int64",
            id="generation",
        ),
        pytest.param(
            {"generation": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64",
            id="a fraction",
        ),
        pytest.param(
            {"creationTimestamp": "x"},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
            id="a time",
        ),
        pytest.param(
            {"creationTimestamp": "2026-02-30T00:00:00Z"},
            'parsing time "2026-02-30T00:00:00Z" as "2006-01-02T15:04:05Z07:00": cannot parse '
            '"2026-02-30T00:00:00Z" as "2006"',
            id="a day that does not exist",
        ),
        pytest.param(
            {"managedFields": [{"fieldsV1": 3}]},
            "json: cannot unmarshal number into Go struct field "
            "ManagedFieldsEntry.metadata.managedFields.fieldsV1 of type map[string]interface {}",
            id="managedFields",
        ),
    ],
)
def test_wrong_types_in_metadata_have_the_errors_of_go(metadata: Any, text: str | None) -> None:
    assert metadata_type_error(widgets(), {"metadata": metadata}) == text


def test_the_object_meta_schema_matches_the_published_openapi() -> None:
    published = meta_definitions([])[f"{META}.ObjectMeta"]["properties"]
    assert OBJECT_META["properties"].keys() == published.keys()
    for name, schema in OBJECT_META["properties"].items():
        for hint in ("type", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"):
            if hint != "type" or "type" in published[name]:
                assert schema.get(hint) == published[name].get(hint), name
