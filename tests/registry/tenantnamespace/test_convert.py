"""TenantNamespaces are computed from Namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from registry.tenantnamespace.convert import tenant_namespace_resource, to_tenant_namespace

HOST = {"namespace.cozystack.io/host": "bar.foo.example.org"}
HELM = {"meta.helm.sh/release-name": "tenant-bar", "meta.helm.sh/release-namespace": "tenant-foo"}


@pytest.mark.parametrize(
    ("name", "annotations", "cells"),
    [
        pytest.param(
            "tenant-foo-bar", {"apps.cozystack.io/tenant": "tenant-foo/bar"}, ("bar", "tenant-foo"), id="ours"
        ),
        pytest.param("tenant-foo-bar", HELM, ("bar", "tenant-foo"), id="of the chart"),
        pytest.param("tenant-foo-bar", {**HELM, "meta.helm.sh/release-name": "x"}, ("", ""), id="of another chart"),
        pytest.param("tenant-foo-bar", {}, ("", ""), id="without annotations"),
        pytest.param("tenant-root", {}, ("root", ""), id="the root"),
        pytest.param("tenant-root", HELM, ("root", ""), id="the root, by a chart"),
    ],
)
def test_the_wide_table_has_the_tenant_its_host_and_its_parent(
    name: str, annotations: dict[str, Any], cells: tuple[str, str]
) -> None:
    """The annotations themselves are not shown."""
    shown = to_tenant_namespace({"metadata": {"name": name, "labels": HOST, "annotations": annotations}})
    tenant, parent = cells
    resource = tenant_namespace_resource()
    assert resource.cells(shown) == ("Active", tenant, "bar.foo.example.org", parent)
    assert [(each.name, each.priority) for each in resource.columns] == [
        ("Status", 0),
        ("Tenant", 1),
        ("Host", 1),
        ("Parent", 1),
    ]
    assert set(shown["metadata"]) == {"name", "labels"}
    expected = {"tenant": tenant, "parent": parent, "host": "bar.foo.example.org"}
    assert shown["status"] == {field: value for field, value in expected.items() if value}
