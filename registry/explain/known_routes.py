"""Leaves out of a route all that no answer tells: annotations, rules and filters take up to a megabyte. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from apiserver.meta.resource import Object
from registry.cluster.interface import ClusterResource
from registry.explain.hostnames import mappings

_MOST_TEXT: Final = 1_000
# Gateway API admits 16 hostnames, 32 parents and 8 conditions of each
_MOST_ENTRIES: Final = 64
_PARENT: Final = ("group", "kind", "namespace", "name", "sectionName", "port")
_CONDITION: Final = ("type", "status", "reason", "message")


def known_route(resource: ClusterResource, obj: Object) -> Object:
    """The identity of a route, its hostnames and parentRefs, and what controllers say of them; long texts are cut."""
    metadata = obj["metadata"]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"namespace": metadata.get("namespace") or "", "name": metadata["name"]},
        "spec": {
            "hostnames": [_cut(each) for each in islice(hostnames_of(obj), _MOST_ENTRIES)],
            "parentRefs": [_some(each, _PARENT) for each in _entries(obj.get("spec"), "parentRefs")],
        },
        "status": {
            "parents": [
                {
                    "parentRef": _some(_mapping(each.get("parentRef")), _PARENT),
                    "controllerName": _cut(each.get("controllerName")),
                    "conditions": [_some(told, _CONDITION) for told in _entries(each, "conditions")],
                }
                for each in _entries(obj.get("status"), "parents")
            ]
        },
    }


def hostnames_of(route: Object) -> Iterator[str]:
    found = _mapping(route.get("spec")).get("hostnames")
    return (each for each in found if isinstance(each, str)) if isinstance(found, list) else iter(())


def _entries(of: object, field: str) -> Iterator[Mapping[str, Any]]:
    return islice(mappings(_mapping(of).get(field)), _MOST_ENTRIES)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _some(entry: Mapping[str, Any], fields: tuple[str, ...]) -> Object:
    return {name: _cut(entry[name]) for name in fields if isinstance(entry.get(name), str | int)}


def _cut(value: object) -> object:
    return f"{value[:_MOST_TEXT]}…" if isinstance(value, str) and len(value) > _MOST_TEXT else value
