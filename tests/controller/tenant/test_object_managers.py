"""Objects name their manager in a label, and objects of Helm only get the fields that they lack."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import missing_fields
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import (
    ObjectManager,
    merge_chart_conflicts,
    object_manager,
    tenant_release,
    with_manager_labels,
)
from tests.tenant_objects import tenant_summary

FOO = tenant_summary("foo", spec={"etcd": True, "monitoring": True})
BAR = tenant_summary("bar", "tenant-foo", spec={"etcd": True, "gateway": True, "resourceQuotas": {"cpu": 4}})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(None, ObjectManager.OTHER, id="none"),
        pytest.param({"app.kubernetes.io/managed-by": "Helm"}, ObjectManager.HELM, id="Helm"),
        pytest.param({"app.kubernetes.io/managed-by": "tenant-controller"}, ObjectManager.OURS, id="ours"),
        pytest.param({"app.kubernetes.io/managed-by": "argocd"}, ObjectManager.OTHER, id="somebody else"),
    ],
)
def test_the_manager_of_an_object_is_in_its_label(labels: dict[str, str] | None, expected: ObjectManager) -> None:
    assert object_manager({"metadata": {"labels": labels}}) is expected


def test_objects_are_labelled_for_helm_to_take_over_if_flux_installs_charts() -> None:
    labelled = with_manager_labels({"metadata": {"name": "x", "labels": {"a": "b"}}, "data": {}}, tenant_release(FOO))

    assert labelled == {
        "metadata": {
            "name": "x",
            "labels": {"a": "b", "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "meta.helm.sh/release-name": "tenant-foo",
                "meta.helm.sh/release-namespace": "tenant-root",
            },
        },
        "data": {},
    }
    assert tenant_release(BAR) == Key("tenant-foo", "tenant-bar")


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        pytest.param({}, {"a": "x", "l": [1]}, id="missing"),
        pytest.param({"a": "", "l": []}, {"l": [1]}, id="an empty string is a value, an empty list is not"),
        pytest.param({"a": "y", "l": [2]}, {}, id="present"),
    ],
)
def test_only_missing_fields_are_added_to_an_object_of_helm(current: Object, expected: Object) -> None:
    assert missing_fields({"a": "x", "l": [1], "n": None}, current) == expected


def test_all_conflicts_with_a_chart_are_one_condition() -> None:
    one, two = (Finding("ChartConflict", "True", "ObjectsDiffer", text) for text in ("one", "two"))
    other = Finding("NamespaceReady", "True", "Reconciled")

    assert merge_chart_conflicts([one, other]) == [other, one]
    assert merge_chart_conflicts([one, other, two]) == [
        other,
        Finding("ChartConflict", "True", "ObjectsDiffer", "one; two"),
    ]
