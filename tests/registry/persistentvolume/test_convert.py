"""PersistentVolumes as lists by claim show them."""

from __future__ import annotations

from typing import Any

import pytest

from registry.persistentvolume.convert import claim_namespace, claimed_volume_resource, to_visible_volume
from tests.registry.persistentvolume.volumes import volume


def test_what_only_administrators_should_read_is_left_out() -> None:
    shown = to_visible_volume(volume("pv", claim="tenant-a/data", annotations={"secret": "x"}, labels={"zone": "a"}))
    assert shown["metadata"] == {"name": "pv", "uid": "pv", "resourceVersion": "1", "labels": {"zone": "a"}}
    assert shown["spec"]["claimRef"] == {"namespace": "tenant-a", "name": "data"}
    assert shown["status"] == {"phase": "Bound"}


@pytest.mark.parametrize(
    ("spec", "namespace"),
    [
        ({"claimRef": {"namespace": "tenant-a", "name": "data"}}, "tenant-a"),
        ({"claimRef": {"name": "data"}}, ""),
        ({"claimRef": None}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_a_volume_belongs_to_the_namespace_of_its_claim(spec: Any, namespace: str) -> None:
    assert claim_namespace({"metadata": {"name": "pv"}, "spec": spec}) == namespace


def test_the_table_has_the_columns_of_kubernetes() -> None:
    resource = claimed_volume_resource()
    full = volume("pv", claim="tenant-a/data")
    full["spec"] |= {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "fast",
        "volumeMode": "Block",
    }
    assert [each.name for each in resource.columns if not each.priority] == [
        "Capacity",
        "Access Modes",
        "Reclaim Policy",
        "Status",
        "Claim",
        "StorageClass",
        "VolumeAttributesClass",
        "Reason",
    ]
    row = ("5Gi", "RWO,RWX", "Retain", "Bound", "tenant-a/data", "fast", "<unset>", "", "Block")
    assert resource.cells(full) == row
    full["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert tuple(resource.cells(full))[3] == "Terminating"


def test_an_old_annotation_names_the_class() -> None:
    old = volume("pv", claim="a/b", annotations={"volume.beta.kubernetes.io/storage-class": "slow"})
    assert to_visible_volume(old)["spec"]["storageClassName"] == "slow"
