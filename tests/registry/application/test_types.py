from __future__ import annotations

import pytest

from apiserver.endpoints.openapi.definitions import kind_definitions
from apiserver.meta.resource import Age, Object
from registry.application.types import application_cells, application_resource
from tests.registry.application.applications import definition


def test_the_columns_are_name_ready_age_and_version() -> None:
    resource = application_resource(definition())
    assert [column.name for column in resource.columns] == ["Name", "Ready", "Age", "Version"]


@pytest.mark.parametrize(
    ("status", "ready", "version"),
    [
        ({}, "Unknown", "<unknown>"),
        ({"version": "1.2.3"}, "Unknown", "1.2.3"),
        ({"version": "1.2.3+a+b"}, "Unknown", "b"),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, "False", "<unknown>"),
        ({"conditions": [{"type": "Released", "status": "True"}]}, "Unknown", "<unknown>"),
    ],
)
def test_the_cells_of_an_application(status: Object, ready: str, version: str) -> None:
    obj = {"metadata": {"name": "cache", "creationTimestamp": "1970-01-01T00:01:00Z"}, "status": status}
    assert list(application_cells(obj)) == ["cache", ready, Age(60), version]


def test_openapi_shows_the_schema_of_the_definition() -> None:
    published = kind_definitions(application_resource(definition()), listed=True)
    spec = published["io.cozystack.apps.v1alpha1.Redis"]["properties"]["spec"]
    assert spec["properties"]["replicas"] == {"type": "integer", "default": 2, "minimum": 1}
    assert spec["x-kubernetes-preserve-unknown-fields"] is True
    assert published["io.cozystack.apps.v1alpha1.RedisList"]["x-kubernetes-group-version-kind"] == [
        {"group": "apps.cozystack.io", "kind": "RedisList", "version": "v1alpha1"}
    ]
