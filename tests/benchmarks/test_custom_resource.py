"""The custom resources that Tenants are measured against: as many bytes, the same schema, the same columns."""

from __future__ import annotations

import orjson
import pytest

from apiserver.meta.resource import Object
from benchmarks import customresource, objects
from registry.tenant.types import tenant_resource

SAMPLE: Object = {
    **objects.tenant("b00000"),
    "status": {"namespace": "tenant-b00000", "host": {"value": "b00000.example.org"}},
}


def version() -> Object:
    found: Object = customresource.definition()["spec"]["versions"][0]
    return found


def test_an_object_is_as_long_as_the_tenant() -> None:
    tenant = customresource.renamed(SAMPLE, "b00123")
    api_version = f"{customresource.GROUP}/{customresource.VERSION}"
    sent = customresource.as_sent(tenant, api_version, "Tenant")
    sent["status"] = tenant["status"]
    assert len(orjson.dumps(sent)) == len(orjson.dumps(SAMPLE))


def test_another_name_is_another_object_throughout() -> None:
    tenant = customresource.renamed(SAMPLE, "b00123")
    assert b"b00000" not in orjson.dumps(tenant)
    assert tenant["status"]["namespace"] == "tenant-b00123"
    assert tenant["metadata"]["labels"]["slot"] == "23"
    assert SAMPLE["metadata"]["name"] == "b00000"


def test_a_name_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="not as long"):
        customresource.renamed(SAMPLE, "b1")


def test_one_in_a_hundred_is_in_a_slot() -> None:
    slots = [objects.tenant(objects.name("b", number))["metadata"]["labels"]["slot"] for number in range(1000)]
    assert slots.count("07") == 10


def test_the_schema_is_that_of_tenants() -> None:
    assert version()["schema"]["openAPIV3Schema"]["properties"] == tenant_resource().properties


def test_every_column_of_tenants_is_there() -> None:
    columns = version()["additionalPrinterColumns"]
    assert [each["name"] for each in columns] == [each.name for each in tenant_resource().columns] + ["Age"]


def test_columns_show_fields_that_the_schema_knows() -> None:
    properties = {**tenant_resource().properties, "metadata": {"properties": {"creationTimestamp": {}}}}
    for column in version()["additionalPrinterColumns"]:
        inside: Object = {"properties": properties}
        for step in column["jsonPath"].split("[")[0].strip(".").split("."):
            inside = inside["properties"][step]
