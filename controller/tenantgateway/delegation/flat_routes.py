"""Renders flat routes, the routes that a Gateway serves in place of a root and a vertex, for `ClusterWriter`. Pure.

A flat route is in the namespace that owns the hostname, so that layer 5 admits it like any other route there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.delegation.model import FlatRoute, Participant
from controller.tenantgateway.listeners import HTTPS_PORT
from controller.tenantgateway.listenersets.place_of_hostname import GATEWAY_ITSELF
from controller.tenantgateway.model import RouteId, RouteKind
from controller.tenantgateway.names import (
    GATEWAY_API_GROUP,
    GATEWAY_MANAGED_BY_LABEL,
    LISTENER_SET,
    MANAGED_BY,
    VERTEX_LABEL,
    VERTEX_NAMESPACE_LABEL,
)
from controller.tenantgateway.parse import mapping, mappings, string

_MAX_NAME = 253
_OWN = "own-"
_BACKENDS_OF_FILTERS = ("requestMirror",)


class FlatRouteId(NamedTuple):
    """A flat route of the cluster: its root, by name and by uid, and the value of its VERTEX_LABEL, which is that of
    one route of its kind."""

    id: RouteId
    root: RouteId
    root_uid: str
    vertex: str


def flat_name(root: RouteId, content: RouteId) -> str:
    """`<root>-<8 hex digits of the vertex>`, and `<root>-own-<8 hex digits>` for the rules of the root itself. If that
    is too long for a name, the root's is cut, and the digits stand for both."""
    digits, infix = _digits(content)[:8], _OWN if content == root else ""
    if len(name := f"{root.name}-{infix}{digits}") <= _MAX_NAME:
        return name
    end = f"-{infix}{sha256(f'{root.name} {content}'.encode()).hexdigest()[:8]}"
    return root.name[: _MAX_NAME - len(end)].rstrip("-.") + end


def vertex_label(content: RouteId) -> str:
    return _digits(content)[:32]


PlacesOf = Callable[[Key, Sequence[str]], Sequence[str]]
"""The objects with the listeners of hostnames: names of ListenerSets of a Gateway, or GATEWAY_ITSELF."""


def on_gateway(gateway: Key, hostnames: Sequence[str]) -> Sequence[str]:
    """The places of listeners if there are no ListenerSets."""
    return (GATEWAY_ITSELF,)


def render_flat_route(flat: FlatRoute, *, api_version: str, places_of: PlacesOf = on_gateway) -> Object:
    """`api_version` is that of the root, its owner. A route attaches only to the listeners of the objects that its
    parentRefs name, so that they follow the listeners of its hostnames (GEP-1713)."""
    root, content = flat
    # a TLSRoute gets whole hostnames, of which it lists its own
    hostnames = content.hostnames or root.hostnames
    labels = {
        GATEWAY_MANAGED_BY_LABEL: MANAGED_BY,
        VERTEX_LABEL: vertex_label(content.id),
        VERTEX_NAMESPACE_LABEL: content.id.namespace,
    }
    owner = {
        "apiVersion": api_version,
        "kind": root.id.kind,
        "name": root.id.name,
        "uid": root.uid,
        "controller": True,
    }
    return {
        "metadata": {
            "name": flat_name(root.id, content.id),
            "namespace": root.id.namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {
            "hostnames": list(hostnames),
            "parentRefs": [
                _parent(each, place) for each in sorted(root.gateways) for place in places_of(each, hostnames)
            ],
            "rules": [_rule(each, content) for each in content.served],
        },
    }


def parse_flat_route(obj: Object, kind: RouteKind) -> FlatRouteId | None:
    """None if the object is no flat route."""
    metadata = obj["metadata"]
    labels = mapping(metadata.get("labels"))
    owners = (each for each in mappings(metadata.get("ownerReferences")) if is_root_reference(each, kind))
    owner = next(owners, None)
    if owner is None or labels.get(GATEWAY_MANAGED_BY_LABEL) != MANAGED_BY or not string(labels, VERTEX_LABEL):
        return None
    namespace = metadata["namespace"]
    root = RouteId(namespace, string(owner, "name"), kind)
    return FlatRouteId(
        RouteId(namespace, metadata["name"], kind), root, string(owner, "uid"), string(labels, VERTEX_LABEL)
    )


def is_root_reference(owner: Mapping[str, Any], kind: RouteKind) -> bool:
    return string(owner, "apiVersion").startswith(f"{GATEWAY_API_GROUP}/") and owner.get("kind") == kind


def _parent(tenantgateway: Key, place: str) -> Object:
    """The Gateway has the name and the namespace of its TenantGateway; on port 80 it redirects. ListenerSets have
    listeners on port 443 only, and Gateway API does not say what a port means for them."""
    parent: Object = {"group": GATEWAY_API_GROUP, "namespace": tenantgateway.namespace}
    if place == GATEWAY_ITSELF:
        return {**parent, "kind": "Gateway", "name": tenantgateway.name, "port": HTTPS_PORT}
    return {**parent, "kind": LISTENER_SET, "name": place}


def _rule(rule: Object, content: Participant) -> Object:
    """The rule with the namespace of each backend, which the flat route is not in."""
    copied = dict(rule)
    if "filters" in rule:
        copied["filters"] = [_filter(each, content) for each in mappings(rule["filters"])]
    if "backendRefs" in rule:
        copied["backendRefs"] = [_backend(each, content) for each in mappings(rule["backendRefs"])]
    return copied


def _backend(backend: Mapping[str, Any], content: Participant) -> Object:
    named = {**backend, "namespace": string(backend, "namespace") or content.id.namespace}
    if "filters" in backend:
        named["filters"] = [_filter(each, content) for each in mappings(backend["filters"])]
    return named


def _filter(filter_: Mapping[str, Any], content: Participant) -> Object:
    copied = dict(filter_)
    for field in _BACKENDS_OF_FILTERS:
        settings = mapping(filter_.get(field))
        if backend := mapping(settings.get("backendRef")):
            copied[field] = {**settings, "backendRef": _backend(backend, content)}
    return copied


def _digits(route: RouteId) -> str:
    return sha256(str(route).encode()).hexdigest()
