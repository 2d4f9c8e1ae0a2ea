"""The custom resources that Tenants are compared with: the same size, the same schema, the same columns."""

from __future__ import annotations

import orjson
import pytest

from apiserver.meta.resource import Object
from benchmarks import objects
from benchmarks.targets import custom_resource
from registry.tenant.types import tenant_resource

SAMPLE: Object = {
    **objects.tenant("b00000"),
    "status": {"namespace": "tenant-b00000", "host": {"value": "b00000.example.org"}},
}


def version() -> Object:
    found: Object = custom_resource.definition()["spec"]["versions"][0]
    return found


def test_a_custom_resource_has_as_many_bytes_as_the_tenant() -> None:
    tenant = custom_resource.renamed(SAMPLE, "b00123")
    api_version = f"{custom_resource.GROUP}/{custom_resource.VERSION}"
    sent = custom_resource.as_sent(tenant, api_version, "Tenant")
    sent["status"] = tenant["status"]
    assert len(orjson.dumps(sent)) == len(orjson.dumps(SAMPLE))


def test_renaming_replaces_every_occurrence_of_the_name() -> None:
    tenant = custom_resource.renamed(SAMPLE, "b00123")
    assert b"b00000" not in orjson.dumps(tenant)
    assert tenant["status"]["namespace"] == "tenant-b00123"
    assert tenant["metadata"]["labels"]["slot"] == "23"
    assert SAMPLE["metadata"]["name"] == "b00000"


def test_renaming_to_another_length_is_rejected() -> None:
    with pytest.raises(ValueError, match="not as long"):
        custom_resource.renamed(SAMPLE, "b1")


def test_one_tenant_in_a_hundred_has_a_given_slot() -> None:
    slots = [objects.tenant(objects.name("b", number))["metadata"]["labels"]["slot"] for number in range(1000)]
    assert slots.count("07") == 10


def test_the_definition_has_the_schema_of_tenants() -> None:
    assert version()["schema"]["openAPIV3Schema"]["properties"] == {
        **tenant_resource().properties,
        **tenant_resource().published,
    }


def test_the_definition_has_every_column_of_tenants() -> None:
    columns = version()["additionalPrinterColumns"]
    assert [each["name"] for each in columns] == [each.name for each in tenant_resource().columns] + ["Age"]


def test_columns_refer_to_fields_of_the_schema() -> None:
    tenant = tenant_resource()
    properties = {**tenant.properties, **tenant.published, "metadata": {"properties": {"creationTimestamp": {}}}}
    for column in version()["additionalPrinterColumns"]:
        inside: Object = {"properties": properties}
        for step in column["jsonPath"].split("[")[0].strip(".").split("."):
            inside = inside["properties"][step]
