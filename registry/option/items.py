"""Computes the items of each source from what the cluster has. Pure.

An item has a `value`, which a form writes, and optionally `label`, `description` and `default`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Object
from registry.quantity import parse_bounded

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
IMAGE_PREFIX = "vm-default-images-"
_DEVICES = ("pciHostDevices", "mediatedDevices")

Items = Sequence[Object]


def named(names: Iterable[str]) -> Items:
    return [{"value": name} for name in sorted(set(names))]


def images(claims: Iterable[str]) -> Items:
    return named(name.removeprefix(IMAGE_PREFIX) for name in claims if name.startswith(IMAGE_PREFIX))


def storage_classes(is_default: Mapping[str, bool]) -> Items:
    return [
        {"value": name, "label": f"{name} (default)", "default": True} if is_default[name] else {"value": name}
        for name in sorted(is_default)
    ]


def disks(sizes: Mapping[str, str]) -> Items:
    """Disks by name, with their size, which may be unknown."""
    return [
        {"value": name, "label": f"{name} ({sizes[name]})"} if sizes[name] else {"value": name}
        for name in sorted(sizes)
    ]


def devices(permitted: Iterable[str], allocatable: Mapping[str, Mapping[str, str]]) -> Items:
    """The devices that virtual machines may have, with their number on the nodes, by the name of each node."""
    found = []
    for device in sorted(set(permitted)):
        counts = {node: _count(amounts.get(device, "0")) for node, amounts in allocatable.items()}
        nodes = sorted(node for node, count in counts.items() if count)
        total = sum(counts.values())
        text = f"{total} available on {', '.join(nodes)}" if nodes else "not currently available on any node"
        found.append({"value": device, "description": text})
    return found


def is_default_class(storage_class: Object) -> bool:
    annotations = _mapping(storage_class["metadata"].get("annotations"))
    return annotations.get(DEFAULT_CLASS_ANNOTATION) == "true"


def application_kind(definition: Object) -> str | None:
    kind = _at(definition, "spec", "application").get("kind")
    return kind if isinstance(kind, str) and kind else None


def permitted_devices(kubevirt: Object) -> tuple[str, ...]:
    permitted = _at(kubevirt, "spec", "configuration", "permittedHostDevices")
    listed = [each for field in _DEVICES for each in _objects(permitted.get(field))]
    return tuple(name for each in listed if isinstance(name := each.get("resourceName"), str) and name)


def extended_resources(node: Object) -> tuple[tuple[str, str], ...]:
    """The allocatable resources of a node that are not Kubernetes' own, as amounts by name."""
    allocatable = _at(node, "status", "allocatable")
    return tuple(sorted((name, str(amount)) for name, amount in allocatable.items() if "/" in name))


def pools(release: Object) -> tuple[str, ...]:
    """The pools of volumes in the values of a HelmRelease."""
    volume = _at(release, "spec", "values", "volume")
    zones = [_mapping(each) for each in _mapping(volume.get("zones")).values()]
    names = {name for each in (volume, *zones) for name in _mapping(each.get("pools"))}
    return tuple(sorted(names))


def disk_size(release: Object, default: str) -> str:
    size = _at(release, "spec", "values").get("storage") or default
    return str(size) if isinstance(size, str | int) else ""


def _count(amount: str) -> int:
    try:
        return int(parse_bounded(amount))
    except ValueError:
        return 0


def _at(obj: Object, *path: str) -> dict[str, Any]:
    found: Any = obj
    for field in path:
        found = found.get(field) if isinstance(found, dict) else None
    return _mapping(found)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> Sequence[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()
