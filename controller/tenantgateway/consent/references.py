"""The objects that a route refers to: its backends, and those of its filters. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from apiserver.meta.resource import Object
from controller.tenantgateway.model import WHOLE_HOST
from controller.tenantgateway.names import LISTENER_SET, VERTEX_LABEL, is_platform, redirect_name
from controller.tenantgateway.parse import mapping, mappings, parent_refs, parent_target, path_matches, string

CORE = ""


class Reference(NamedTuple):
    """An object that another one refers to; `group` is empty for Kubernetes' core."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def references(route: Object) -> Sequence[Reference]:
    """All objects that the rules of a route refer to, sorted, each once. Malformed entries are left out."""
    namespace = route["metadata"]["namespace"]
    found = (_reference(each, namespace) for rule in _rules(route) for each in _of_rule(rule))
    return sorted({each for each in found if each.name})


def is_foreign(reference: Reference, namespace: str) -> bool:
    """True if an object of `namespace` needs the consent of another namespace to refer so."""
    return reference.namespace != namespace


def slim_route(obj: Object) -> Object:
    """The route as the informer stores it, to save memory: of its rules, only what they refer to, and that only if
    some of it is in another namespace, and the paths of the platform's routes. Our redirects and flat routes are
    compared with their rules as a whole, and the rules of routes that delegate, or are delegated to, are copied."""
    spec, metadata = mapping(obj.get("spec")), obj["metadata"]
    if "rules" not in spec or metadata["name"].endswith(redirect_name("")) or _needs_rules(obj):
        return obj
    slim = {field: value for field, value in spec.items() if field != "rules"}
    found = references(obj)
    rule: dict[str, Any] = {}
    if is_platform(metadata["namespace"]) and (paths := path_matches(obj)) != WHOLE_HOST:
        rule["matches"] = [{"path": each._asdict()} for each in paths]
    if any(is_foreign(each, metadata["namespace"]) for each in found):
        rule["backendRefs"] = [each._asdict() for each in found]
    return {**obj, "spec": {**slim, "rules": [rule]} if rule else slim}


def _needs_rules(route: Object) -> bool:
    labels = mapping(route["metadata"].get("labels"))
    return VERTEX_LABEL in labels or any(
        parent_target(each, "").kind not in ("Gateway", LISTENER_SET) for each in parent_refs(route)
    )


def _rules(route: Object) -> Iterator[Mapping[str, Any]]:
    return mappings(mapping(route.get("spec")).get("rules"))


def _of_rule(rule: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from _of_filters(rule)
    for backend in mappings(rule.get("backendRefs")):
        yield backend
        yield from _of_filters(backend)


def _of_filters(holder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """`requestMirror.backendRef`, `externalAuth.backendRef`, and those of filters to come. An extensionRef names no
    namespace."""
    for each in mappings(holder.get("filters")):
        for settings in each.values():
            backend = mapping(settings).get("backendRef")
            if isinstance(backend, Mapping):
                yield backend


def _reference(backend: Mapping[str, Any], namespace: str) -> Reference:
    group = string(backend, "group")
    kind = string(backend, "kind") or "Service"
    return Reference(group, kind, string(backend, "namespace") or namespace, string(backend, "name"))
