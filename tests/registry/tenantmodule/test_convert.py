"""TenantModules are made from the HelmReleases that are labelled as modules, whoever wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Age, Object
from registry.application.release_cache import trim_release
from registry.tenantmodule.convert import is_module, tenant_module_resource, to_tenant_module

READY = {"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "ok", "observedGeneration": 1}
OTHER = {"type": "Remediated", "status": "True"}


def release(**metadata: Any) -> Object:
    labels = {
        "internal.cozystack.io/tenantmodule": "true",
        "apps.cozystack.io/application.kind": "Etcd",
        "apps.cozystack.io-team": "x",
    }
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "etcd", "namespace": "tenant-a", "uid": "u", "resourceVersion": "7", "labels": labels}
        | metadata,
        "spec": {
            "chart": {"spec": {"chart": "etcd", "version": "2.9.1"}},
            "values": {"password": "secret"},
            "valuesFrom": [],
        },
        "status": {
            "lastAttemptedRevision": "2.9.1+abc",
            "conditions": [READY, OTHER],
            "history": [{"digest": "x"}],
        },
    }


def test_a_module_has_the_labels_of_its_release_under_the_keys_that_consoles_look_for() -> None:
    assert to_tenant_module(release()) == {
        "apiVersion": "core.cozystack.io/v1alpha1",
        "kind": "TenantModule",
        "metadata": {
            "name": "etcd",
            "namespace": "tenant-a",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"apps.cozystack.io/application.kind": "Etcd", "apps.cozystack.io-team": "x"},
        },
        "appVersion": "2.9.1",
        "status": {
            "version": "2.9.1+abc",
            "conditions": [{field: READY[field] for field in ("type", "status", "reason", "message")}],
        },
    }


@pytest.mark.parametrize(
    ("key", "is_shown"),
    [
        pytest.param("example.org/note", True, id="somebody's"),
        pytest.param("meta.helm.sh/release-name", True, id="Helm's"),
        pytest.param("apps.cozystack.io/managed-fields", False, id="our own"),
        pytest.param("apps.cozystack.io/unconfirmed", False, id="the mark of a write"),
        pytest.param("kubectl.kubernetes.io/last-applied-configuration", False, id="the values of the release"),
        pytest.param(
            "apps.cozystack.io-kubectl.kubernetes.io/last-applied-configuration",
            False,
            id="the spec of the application",
        ),
    ],
)
def test_annotations_that_have_the_values_are_hidden(key: str, is_shown: bool) -> None:
    """A reader of modules need not be allowed to read the application."""
    shown = to_tenant_module(release(annotations={key: "text"}))["metadata"].get("annotations")
    assert shown == ({key: "text"} if is_shown else None)


def test_nothing_of_the_spec_is_shown_but_the_version_of_the_chart() -> None:
    shown = to_tenant_module(release())
    assert "spec" not in shown
    assert "secret" not in str(shown)


@pytest.mark.parametrize("obj", [release(), release(deletionTimestamp="2026-01-01T00:00:00Z", generation=3)])
def test_what_the_informer_keeps_is_enough(obj: Object) -> None:
    assert to_tenant_module(trim_release(obj)) == to_tenant_module(obj)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"spec": None}, id="no spec"),
        pytest.param({"spec": {"chart": "etcd"}}, id="chart is a string"),
        pytest.param({"spec": {"chart": {"spec": {"version": 2}}}}, id="version is a number"),
        pytest.param({"status": "x"}, id="status is a string"),
        pytest.param({"status": {"conditions": [1, {"type": 2}]}}, id="conditions are no objects"),
    ],
)
def test_a_malformed_release_is_shown_without_its_broken_parts(broken: Object) -> None:
    shown = to_tenant_module(trim_release({**release(), **broken}))
    assert shown["metadata"]["name"] == "etcd"
    assert shown.get("appVersion") in (None, "2.9.1")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"internal.cozystack.io/tenantmodule": "true"}, True),
        ({"internal.cozystack.io/tenantmodule": "false"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_the_label_makes_a_release_a_module(labels: Any, expected: bool) -> None:
    assert is_module({"metadata": {"name": "x", "labels": labels}}) == expected


def test_a_row_of_the_table() -> None:
    created = release(creationTimestamp="2026-01-01T00:00:00Z")
    resource = tenant_module_resource()
    assert [each.name for each in resource.columns] == ["Name", "Ready", "Age", "Version"]
    name, ready, age, version = resource.cells(to_tenant_module(created))
    assert (name, ready, version) == ("etcd", "True", "abc")
    assert isinstance(age, Age)
