"""Parses the cluster's objects into the value types of model.py. Pure.

Parsing never fails: an invalid TenantGateway has a `problem`, which is shown in its status and affects no other object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.model import (
    WHOLE_HOST,
    CertMode,
    InheritingNamespace,
    ParentRef,
    PathMatch,
    Route,
    RouteId,
    RouteKind,
    TenantGateway,
)
from controller.tenantgateway.names import (
    CONTROLLER_NAME,
    GATEWAY_API_GROUP,
    LISTENER_SET,
    is_platform,
    split_listener_set,
)
from registry.cluster.interface import is_terminating
from registry.names import GATEWAY_LABEL, HOST_LABEL, canonical_host
from registry.tenantgateway.types import GROUP, KIND, TenantGatewaySpec

_MODES: Mapping[object, CertMode] = {"http01": "http01", "dns01": "dns01", "existingSecret": "existingSecret"}


class ParsedTenantGateway(NamedTuple):
    """A TenantGateway. If its spec is invalid, `problem` is the reason, and nothing is rendered from it."""

    gateway: TenantGateway
    problem: str


def tenantgateway(obj: Object) -> ParsedTenantGateway:
    """Parses and validates a TenantGateway. The cluster's CRD may be older than ours and admit invalid specs."""
    metadata, spec = obj["metadata"], mapping(obj.get("spec"))
    secret = mapping(spec.get("wildcardSecretRef"))
    elsewhere = string(secret, "namespace")
    gateway = TenantGateway(
        key=Key(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        generation=metadata.get("generation") or 0,
        apex=string(spec, "apex"),
        cert_mode=_MODES.get(string(spec, "certMode"), "http01"),
        issuer_name=string(spec, "issuerName") or "letsencrypt-prod",
        dns01=mapping(spec.get("dns01")) or None,
        wildcard_secret=string(secret, "name"),
        wildcard_secret_namespace=elsewhere if elsewhere != metadata["namespace"] else "",
        attached=_strings(spec, "attachedNamespaces"),
        passthrough=_strings(spec, "tlsPassthroughServices"),
        class_name=string(spec, "gatewayClassName") or "cilium",
        terminating=is_terminating(obj),
    )
    return ParsedTenantGateway(gateway, _problem(spec))


def _problem(spec: Mapping[str, Any]) -> str:
    # the apex is case-insensitive (FACT-5)
    apex = {"apex": canonical_host(string(spec, "apex"))} if string(spec, "apex") else {}
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
    identity, names = route_id(obj, kind), hostnames(obj)
    parents: dict[Key, list[ParentRef]] = {}
    for parent in parent_refs(obj):
        gateway = parent_gateway(parent, identity.namespace)
        if gateway is not None:
            parents.setdefault(gateway, []).append(parent_ref(parent))
    paths = path_matches(obj) if parents and kind == "HTTPRoute" and is_platform(identity.namespace) else WHOLE_HOST
    return {
        gateway: Route(id=identity, hostnames=names, parents=tuple(found), paths=paths)
        for gateway, found in parents.items()
    }


def path_matches(route: Object) -> tuple[PathMatch, ...]:
    """The paths that the rules of an HTTPRoute match, sorted, each once. Without a path they match every one."""
    rules = mappings(mapping(route.get("spec")).get("rules"))
    found = [_path_match(mapping(match.get("path"))) for rule in rules for match in _matches(rule)]
    return tuple(sorted(set(found))) or WHOLE_HOST


def _matches(rule: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return iter([*mappings(rule.get("matches"))] or [{}])


def _path_match(path: Mapping[str, Any]) -> PathMatch:
    """An escape may be another spelling of a path, so that one with an escape is not understood."""
    type_, value = string(path, "type") or "PathPrefix", string(path, "value") or "/"
    if type_ not in ("Exact", "PathPrefix") or "%" in value or not value.startswith("/"):
        return PathMatch("Any", value)
    return PathMatch("Exact" if type_ == "Exact" else "PathPrefix", value)


def hostnames(route: Object) -> tuple[str, ...]:
    return _strings(mapping(route.get("spec")), "hostnames")


def parent_refs(obj: Object) -> Iterator[Mapping[str, Any]]:
    return mappings(mapping(obj.get("spec")).get("parentRefs"))


class ParentTarget(NamedTuple):
    """The object that a parentRef refers to."""

    group: str
    kind: str
    namespace: str
    name: str


def parent_target(parent: Mapping[str, Any], namespace: str) -> ParentTarget:
    """The object that a parentRef of an object in `namespace` refers to. Every field but the name has a default, which
    the cluster may have filled in or not (Gateway API, ParentReference); the group "" is Kubernetes' core."""
    group, kind = parent.get("group"), string(parent, "kind")
    return ParentTarget(
        group if isinstance(group, str) else GATEWAY_API_GROUP,
        kind or "Gateway",
        string(parent, "namespace") or namespace,
        string(parent, "name"),
    )


def parent_identity(parent: Mapping[str, Any], namespace: str) -> tuple[object, ...]:
    """The fields that tell the parentRefs of an object in `namespace` apart, with defaults filled in."""
    return (*parent_target(parent, namespace), parent.get("sectionName") or "", parent.get("port"))


def parent_ref(parent: Mapping[str, Any]) -> ParentRef:
    port = parent.get("port")
    _, kind, _, name = parent_target(parent, "")
    listener_set = name if kind == LISTENER_SET else ""
    return ParentRef(string(parent, "sectionName"), port if isinstance(port, int) else None, listener_set)


def parent_gateway(parent: Mapping[str, Any], namespace: str) -> Key | None:
    """The Gateway that a parentRef of a route in `namespace` refers to, itself or one of its ListenerSets, which are
    named after it; None if it refers to another kind (R-100)."""
    group, kind, namespace, name = parent_target(parent, namespace)
    if group != GATEWAY_API_GROUP or kind not in ("Gateway", LISTENER_SET):
        return None
    if kind == LISTENER_SET:
        name, _ = split_listener_set(name) or ("", 0)
    return Key(namespace, name) if name else None


def is_of_tenantgateway(gateway: Object) -> bool:
    """True if a TenantGateway owns the Gateway, or owned it before it was deleted."""
    owners = mappings(gateway["metadata"].get("ownerReferences"))
    return any(each.get("kind") == KIND and str(each.get("apiVersion")).startswith(f"{GROUP}/") for each in owners)


def own_status_entries(obj: Object) -> Iterator[Mapping[str, Any]]:
    """The entries of a route's status.parents that this controller wrote."""
    for entry in mappings(mapping(obj.get("status")).get("parents")):
        if entry.get("controllerName") == CONTROLLER_NAME:
            yield entry


def gateways_in_status(obj: Object) -> Iterator[Key]:
    """The Gateways that our entries in the status of a route refer to."""
    namespace = obj["metadata"]["namespace"]
    for entry in own_status_entries(obj):
        gateway = parent_gateway(mapping(entry.get("parentRef")), namespace)
        if gateway is not None:
            yield gateway


def inheriting_namespace(namespace: Object) -> tuple[str, InheritingNamespace] | None:
    """The owner that the Namespace's gateway label names, and the Namespace; None without a label, and for the owner
    itself (R-104)."""
    metadata = namespace["metadata"]
    labels = mapping(metadata.get("labels"))
    owner = string(labels, GATEWAY_LABEL)
    if not owner or owner == metadata["name"] or is_terminating(namespace):
        return None
    return owner, InheritingNamespace(metadata["name"], string(labels, HOST_LABEL))


def mapping(value: object) -> Mapping[str, Any]:
    """The value, or an empty mapping if it is of another type."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """The items of a list that are mappings."""
    return (each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else iter(())


def string(holder: Mapping[str, Any], field: str) -> str:
    """The value of a field, or "" if it is of another type."""
    value = holder.get(field)
    return value if isinstance(value, str) else ""


def _strings(holder: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = holder.get(field)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
