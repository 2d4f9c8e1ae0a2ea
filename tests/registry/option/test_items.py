"""The items of each source."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.option import items


def obj(**fields: Any) -> Object:
    return {"metadata": {"name": "x"}, **fields}


def test_names_are_sorted_and_appear_once() -> None:
    assert items.named(["b", "a", "b"]) == [{"value": "a"}, {"value": "b"}]


def test_images_are_the_claims_with_the_prefix() -> None:
    assert items.images(["vm-default-images-ubuntu", "other", "vm-default-images-alpine"]) == [
        {"value": "alpine"},
        {"value": "ubuntu"},
    ]


def test_the_default_storage_class_is_marked() -> None:
    assert items.storage_classes({"slow": False, "fast": True}) == [
        {"value": "fast", "label": "fast (default)", "default": True},
        {"value": "slow"},
    ]


def test_disks_have_their_size() -> None:
    assert items.disks({"b": "", "a": "5Gi"}) == [{"value": "a", "label": "a (5Gi)"}, {"value": "b"}]


def test_devices_have_their_number_on_the_nodes() -> None:
    allocatable = {"n2": {"nvidia.com/A": "2"}, "n1": {"nvidia.com/A": "1", "nvidia.com/B": "x"}, "n3": {}}
    assert items.devices(["nvidia.com/B", "nvidia.com/A"], allocatable) == [
        {"value": "nvidia.com/A", "description": "3 available on n1, n2"},
        {"value": "nvidia.com/B", "description": "not currently available on any node"},
    ]


@pytest.mark.parametrize(
    ("kubevirt", "expected"),
    [
        pytest.param({}, (), id="nothing"),
        pytest.param({"spec": {"configuration": {"permittedHostDevices": "x"}}}, (), id="malformed"),
        pytest.param(
            {
                "spec": {
                    "configuration": {
                        "permittedHostDevices": {
                            "pciHostDevices": [{"resourceName": "a/b"}, {"resourceName": 1}, "x"],
                            "mediatedDevices": [{"resourceName": "c/d"}],
                        }
                    }
                }
            },
            ("a/b", "c/d"),
            id="both",
        ),
    ],
)
def test_permitted_devices(kubevirt: Object, expected: tuple[str, ...]) -> None:
    assert items.permitted_devices(obj(**kubevirt)) == expected


def test_resources_of_kubernetes_are_no_devices() -> None:
    """They change with every heartbeat of some nodes, and no form offers them."""
    node = obj(status={"allocatable": {"cpu": "4", "nvidia.com/A": 2}})
    assert items.extended_resources(node) == (("nvidia.com/A", "2"),)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ()),
        ({"volume": {"pools": {"b": {}, "a": {}}}}, ("a", "b")),
        ({"volume": {"zones": {"z1": {"pools": {"c": {}}}, "z2": None}}}, ("c",)),
        ({"volume": {"pools": ["x"]}}, ()),
        ({"volume": "x"}, ()),
    ],
)
def test_pools(values: Object, expected: tuple[str, ...]) -> None:
    assert items.pools(obj(spec={"values": values})) == expected
    assert items.pools(obj(spec=None)) == ()


@pytest.mark.parametrize(("storage", "expected"), [("5Gi", "5Gi"), (None, "1Gi"), (7, "7"), ([], "1Gi"), ([1], "")])
def test_the_size_of_a_disk(storage: object, expected: str) -> None:
    assert items.disk_size(obj(spec={"values": {"storage": storage}}), "1Gi") == expected


@pytest.mark.parametrize(("kind", "expected"), [("Redis", "Redis"), ("", None), (1, None)])
def test_the_kind_of_a_definition(kind: object, expected: str | None) -> None:
    assert items.application_kind(obj(spec={"application": {"kind": kind}})) == expected


def test_the_default_class() -> None:
    annotated = {"metadata": {"name": "x", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    assert items.is_default_class(annotated)
    assert not items.is_default_class(obj())
