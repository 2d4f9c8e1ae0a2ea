"""Parses the cluster's objects into the value types of model.py. Pure.

Parsing never fails: an invalid TenantGateway has a `problem`, which is shown in its status and affects no other object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.model import (
    CertMode,
    InheritingNamespace,
    ParentRef,
    Route,
    RouteId,
    RouteKind,
    TenantGateway,
)
from controller.tenantgateway.names import CONTROLLER_NAME, GATEWAY_API_GROUP, redirect_name
from registry.cluster.interface import is_terminating
from registry.names import GATEWAY_LABEL, HOST_LABEL, canonical_host
from registry.tenantgateway.types import TenantGatewaySpec

_MODES: Mapping[object, CertMode] = {"http01": "http01", "dns01": "dns01", "existingSecret": "existingSecret"}


class ParsedTenantGateway(NamedTuple):
    """A TenantGateway. If its spec is invalid, `problem` is the reason, and nothing is rendered from it."""

    gateway: TenantGateway
    problem: str


def tenantgateway(obj: Object) -> ParsedTenantGateway:
    """Parses and validates a TenantGateway. The cluster's CRD may be older than ours and admit invalid specs."""
    metadata, spec = obj["metadata"], _mapping(obj.get("spec"))
    gateway = TenantGateway(
        key=Key(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        generation=metadata.get("generation") or 0,
        apex=_string(spec, "apex"),
        cert_mode=_MODES.get(_string(spec, "certMode"), "http01"),
        issuer_name=_string(spec, "issuerName") or "letsencrypt-prod",
        dns01=_mapping(spec.get("dns01")) or None,
        wildcard_secret=_string(_mapping(spec.get("wildcardSecretRef")), "name"),
        attached=_strings(spec, "attachedNamespaces"),
        passthrough=_strings(spec, "tlsPassthroughServices"),
        class_name=_string(spec, "gatewayClassName") or "cilium",
        terminating=is_terminating(obj),
    )
    return ParsedTenantGateway(gateway, _problem(spec))


def _problem(spec: Mapping[str, Any]) -> str:
    # the apex is case-insensitive (FACT-5)
    apex = {"apex": canonical_host(_string(spec, "apex"))} if _string(spec, "apex") else {}
    try:
        TenantGatewaySpec.model_validate({**spec, **apex})
    except ValidationError as e:
        return "; ".join(f"{'.'.join(map(str, ('spec', *each['loc'])))}: {each['msg']}" for each in e.errors())
    return ""


def route_id(obj: Object, kind: RouteKind) -> RouteId:
    metadata = obj["metadata"]
    return RouteId(metadata["namespace"], metadata["name"], kind)


def routes_by_gateway(obj: Object, kind: RouteKind) -> Mapping[Key, Route]:
    """The route as seen by each Gateway that it refers to."""
    identity, hostnames = route_id(obj, kind), _strings(_mapping(obj.get("spec")), "hostnames")
    parents: dict[Key, list[ParentRef]] = {}
    for parent in parent_refs(obj):
        gateway = parent_gateway(parent, identity.namespace)
        if gateway is not None:
            port = parent.get("port")
            found = ParentRef(section=_string(parent, "sectionName"), port=port if isinstance(port, int) else None)
            parents.setdefault(gateway, []).append(found)
    return {
        gateway: Route(id=identity, hostnames=hostnames, parents=tuple(found)) for gateway, found in parents.items()
    }


def parent_refs(obj: Object) -> Iterator[Mapping[str, Any]]:
    return _mappings(_mapping(obj.get("spec")).get("parentRefs"))


def parent_gateway(parent: Mapping[str, Any], namespace: str) -> Key | None:
    """The Gateway that a parentRef of a route in `namespace` refers to; None if it refers to another kind (R-100)."""
    if parent.get("group", GATEWAY_API_GROUP) != GATEWAY_API_GROUP or parent.get("kind", "Gateway") != "Gateway":
        return None
    name = _string(parent, "name")
    return Key(_string(parent, "namespace") or namespace, name) if name else None


def own_status_entries(obj: Object) -> Iterator[Mapping[str, Any]]:
    """The entries of a route's status.parents that this controller wrote."""
    for entry in _mappings(_mapping(obj.get("status")).get("parents")):
        if entry.get("controllerName") == CONTROLLER_NAME:
            yield entry


def gateways_in_status(obj: Object) -> Iterator[Key]:
    """The Gateways that our entries in the status of a route refer to."""
    namespace = obj["metadata"]["namespace"]
    for entry in own_status_entries(obj):
        gateway = parent_gateway(_mapping(entry.get("parentRef")), namespace)
        if gateway is not None:
            yield gateway


def inheriting_namespace(namespace: Object) -> tuple[str, InheritingNamespace] | None:
    """The owner that the Namespace's gateway label names, and the Namespace; None without a label, and for the owner
    itself (R-104)."""
    metadata = namespace["metadata"]
    labels = _mapping(metadata.get("labels"))
    owner = _string(labels, GATEWAY_LABEL)
    if not owner or owner == metadata["name"] or is_terminating(namespace):
        return None
    return owner, InheritingNamespace(metadata["name"], _string(labels, HOST_LABEL))


def slim_route(obj: Object) -> Object:
    """The route without its rules, which are needed for our redirects only; saves memory in the informer."""
    spec = _mapping(obj.get("spec"))
    if "rules" not in spec or obj["metadata"]["name"].endswith(redirect_name("")):
        return obj
    return {**obj, "spec": {field: value for field, value in spec.items() if field != "rules"}}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    return (each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else iter(())


def _string(holder: Mapping[str, Any], field: str) -> str:
    value = holder.get(field)
    return value if isinstance(value, str) else ""


def _strings(holder: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = holder.get(field)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
