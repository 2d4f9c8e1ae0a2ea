from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from apiserver.meta.resource import Object
from apiserver.schema.pruning_and_defaulting import apply_defaults, object_schema, prune, unknown_fields
from registry.structural_schema import structural_schema
from registry.tenant.types import TenantStatus, tenant_resource

_FORBIDDEN = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "title"}


def _nodes(schema: object) -> list[dict[str, object]]:
    if isinstance(schema, dict):
        return [schema, *(node for value in schema.values() for node in _nodes(value))]
    if isinstance(schema, list):
        return [node for value in schema for node in _nodes(value)]
    return []


def _row(obj: Object) -> dict[str, object]:
    """The cells by the names of their columns."""
    resource = tenant_resource()
    return dict(zip((column.name for column in resource.columns), resource.cells(obj), strict=True))


def test_the_schema_of_a_tenant_is_structural() -> None:
    for node in _nodes([dict(tenant_resource().properties), dict(tenant_resource().published)]):
        assert not _FORBIDDEN & node.keys()
        assert not isinstance(node.get("additionalProperties"), bool)


def test_the_spec_has_the_documented_defaults_and_none_for_gateway() -> None:
    properties = tenant_resource().published["spec"]["properties"]
    assert {name: field["default"] for name, field in properties.items() if "default" in field} == {
        "host": "",
        "etcd": False,
        "monitoring": False,
        "ingress": False,
        "seaweedfs": False,
        "computeplane": False,
        "schedulingClass": "",
        "resourceQuotas": {},
    }
    assert properties["gateway"]["type"] == "boolean"
    assert "nullable" not in properties["gateway"]


def test_the_published_spec_is_open_at_the_top_and_writes_are_decoded_without_defaults() -> None:
    resource = tenant_resource()
    assert resource.published["spec"]["x-kubernetes-preserve-unknown-fields"] is True
    decoded = resource.properties["spec"]
    assert decoded["x-kubernetes-preserve-unknown-fields"] is True
    assert not [node for node in _nodes(decoded) if "default" in node]
    sent = {"spec": {"host": None, "resourceQuotas": {"cpu": None}, "own": {"deep": [None]}}}
    schema = object_schema(resource)
    stored = prune(schema, sent)
    apply_defaults(schema, stored)
    assert (stored, list(unknown_fields(schema, sent))) == (sent, [])


def test_quotas_are_int_or_string_and_conditions_a_map_by_type() -> None:
    quotas = tenant_resource().published["spec"]["properties"]["resourceQuotas"]
    assert quotas["additionalProperties"] == {"x-kubernetes-int-or-string": True}
    conditions = tenant_resource().properties["status"]["properties"]["conditions"]
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])


def test_a_table_row_has_a_cell_for_each_column_with_the_effective_values() -> None:
    shown = {
        "spec": {"host": "", "etcd": True, "resourceQuotas": {"memory": "8Gi", "cpu": 4}},
        "status": {
            "namespace": "tenant-a",
            "version": "0.1.0+abcdef",
            "host": {"value": "a.example.org", "namespace": "tenant-root"},
            "gateway": {"value": True, "namespace": "tenant-root"},
            "services": {"monitoring": "tenant-root", "etcd": "tenant-a"},
            "conditions": [{"type": "Released", "status": "False"}, {"type": "Ready", "status": "True"}],
        },
    }
    assert _row(shown) == {
        "Ready": "True",
        "Namespace": "tenant-a",
        "Host": "a.example.org",
        "Gateway": "tenant-root",
        "Services": "etcd=tenant-a,monitoring=tenant-root",
        "Version": "abcdef",
        "Quota": "cpu=4,memory=8Gi",
    }


def test_the_cells_of_an_empty_object_are_empty() -> None:
    row = _row({})
    assert {name: cell for name, cell in row.items() if cell} == {"Ready": "Unknown"}
    assert None not in row.values()


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        pytest.param("0.1.0+abc", "abc", id="the build"),
        pytest.param("0.1.0", "0.1.0", id="no build"),
        pytest.param("0.1.0+", "0.1.0+", id="an empty build"),
    ],
)
def test_a_table_shows_the_build_of_the_version(version: str, shown: str) -> None:
    assert _row({"status": {"version": version}})["Version"] == shown


def test_a_table_shows_own_services_before_the_first_look_and_the_first_five_quotas() -> None:
    spec = {"etcd": True, "resourceQuotas": {f"r{number}": number for number in range(6)}}
    row = _row({"spec": spec, "status": {"namespace": "tenant-a"}})
    assert (row["Services"], row["Version"]) == ("etcd=tenant-a", "")
    assert row["Quota"] == "r0=0,r1=1,r2=2,r3=3,r4=4,..."


def test_a_model_becomes_a_schema_without_references_and_nulls() -> None:
    class Inner(BaseModel):
        """Inside."""

        size: int = Field(ge=1)

    class Outer(BaseModel):
        inner: Inner = Field(description="One.")
        many: list[Inner] = []
        maybe: str | None = None
        either: int | str = 0
        mode: Literal["a", "b"] = "a"

    inner = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}, "required": ["size"]}
    assert structural_schema(Outer) == {
        "type": "object",
        "required": ["inner"],
        "properties": {
            "inner": {**inner, "description": "One."},
            "many": {"type": "array", "items": {**inner, "description": "Inside."}, "default": []},
            "maybe": {"type": "string"},
            "either": {"x-kubernetes-int-or-string": True, "default": 0},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        },
    }


def test_a_schema_may_be_changed_without_changing_the_next_one() -> None:
    structural_schema(TenantStatus)["properties"].clear()
    assert structural_schema(TenantStatus)["properties"]


def test_a_union_without_a_structural_form_is_rejected() -> None:
    class Model(BaseModel):
        field: int | list[str] = 0

    with pytest.raises(ValueError, match="structural"):
        structural_schema(Model)
