"""Frozen value types of the TenantGateway controller: the parsed input, and the plan that it results in. Pure.

Decisions use hostnames in canonical form only, never as the user wrote them (FACT-5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding

CertMode = Literal["http01", "dns01", "existingSecret"]
RouteKind = Literal["HTTPRoute", "GRPCRoute", "TLSRoute"]
ROUTE_KINDS: tuple[RouteKind, ...] = ("HTTPRoute", "GRPCRoute", "TLSRoute")


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantGateway:
    """A TenantGateway. `dns01` is the block of the spec unchanged; `wildcard_secret` is used by existingSecret only,
    and is in the TenantGateway's own namespace if `wildcard_secret_namespace` is empty."""

    key: Key
    uid: str
    generation: int
    apex: str
    cert_mode: CertMode = "http01"
    issuer_name: str = "letsencrypt-prod"
    dns01: Mapping[str, object] | None = None
    wildcard_secret: str = ""
    wildcard_secret_namespace: str = ""
    attached: tuple[str, ...] = ()
    passthrough: tuple[str, ...] = ()
    class_name: str = "cilium"
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class InheritingNamespace:
    """A namespace that uses the Gateway of another namespace, which its gateway label names; with its host label
    (R-175)."""

    namespace: str
    host: str


@dataclass(frozen=True, slots=True)
class RouteNamespace:
    """The labels of a Namespace that decide what its routes may claim: the Gateway that admits them and, in the
    namespace of a tenant, the host that their hostnames belong to. Both are empty if the label is missing."""

    name: str
    gateway: str = ""
    host: str = ""


class RouteId(NamedTuple):
    """Sorts by namespace, name and kind, as ownership is decided among platform or tenant routes (R-200, CHOICE-11)."""

    namespace: str
    name: str
    kind: RouteKind

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ParentRef:
    """One reference of a route to the Gateway; `section` is empty and `port` None if the reference has none. It is to
    the Gateway's own listeners, or to those of `listener_set`, the name of a ListenerSet of the Gateway (GEP-1713)."""

    section: str = ""
    port: int | None = None
    listener_set: str = ""


class PathMatch(NamedTuple):
    """A path that a route matches. `Any` stands for patterns that are not understood, such as regular expressions."""

    type: Literal["Exact", "PathPrefix", "Any"]
    value: str


WHOLE_HOST = (PathMatch("PathPrefix", "/"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route as seen by one Gateway: `parents` holds its references to that Gateway only, at least one. `paths` are
    known of HTTPRoutes of the platform only."""

    id: RouteId
    hostnames: tuple[str, ...]
    parents: tuple[ParentRef, ...]
    paths: tuple[PathMatch, ...] = WHOLE_HOST


class HostnameConflict(NamedTuple):
    """A hostname that a route may not use, because the winner owns `winning_hostname`, equal to it or overlapping. If
    the route could share it, `path` is the path that the winner has."""

    hostname: str
    winner: RouteId
    winning_hostname: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class HostnameOwnership:
    """The route that owns each claimed hostname, and the conflicts of each losing route."""

    owners: Mapping[str, RouteId] = field(default_factory=dict)
    conflicts: Mapping[RouteId, Sequence[HostnameConflict]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedListener:
    """`certificate` is the name of the Secret with the certificate; a Certificate of ours has the same name. The Secret
    is in the Gateway's own namespace if `certificate_namespace` is empty."""

    name: str
    protocol: Literal["HTTP", "HTTPS", "TLS"]
    port: int
    hostname: str = ""
    certificate: str = ""
    certificate_namespace: str = ""


@dataclass(frozen=True, slots=True)
class PlannedListenerSet:
    """A ListenerSet with the listeners that do not fit on the Gateway."""

    name: str
    listeners: tuple[PlannedListener, ...]


@dataclass(frozen=True, slots=True)
class PlannedCertificate:
    """`per_listener` is true for the certificate of a single hostname (R-153)."""

    name: str
    dns_names: tuple[str, ...]
    per_listener: bool


@dataclass(frozen=True, slots=True)
class OmittedHostname:
    """A hostname that is not rendered: `reason` is a constant of hostname_validation.py, `message` names the remedy.

    `route` or `namespace` is the object that requests it; both are empty if it is the TenantGateway itself.
    """

    hostname: str
    reason: str
    message: str
    route: RouteId | None = None
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The desired state for a TenantGateway. `listeners` are those of the Gateway itself, which never exceed the limit
    of Gateway API (FACT-7); the others are in `sets`.

    `plaintext` are routes that port 80 serves without TLS because they name neither section nor port (GW-12).
    `unproven_secret` is the reason and the message why certificates stay as they are; empty if they do not.
    `held` are hostnames that keep the certificate of before until their own is issued.
    """

    listeners: tuple[PlannedListener, ...]
    certificates: tuple[PlannedCertificate, ...]
    ownership: HostnameOwnership
    omitted: tuple[OmittedHostname, ...] = ()
    plaintext: tuple[RouteId, ...] = ()
    sets: tuple[PlannedListenerSet, ...] = ()
    unproven_secret: tuple[str, str] = ("", "")
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParentRefVerdict:
    """The decision on one parentRef of a route; `parent` is the parentRef from the route, unchanged.

    `references` is the condition ResolvedRefs, None if it is not ours to write. It `is_sole` if no other controller
    judges such a parentRef, so that acceptance is told, too. `more` are further conditions of ours.
    """

    parent: Object
    accepted: bool
    reason: str
    message: str
    references: Finding | None = None
    is_sole: bool = False
    more: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Attachments:
    """`owners` maps an attached namespace to the namespace of its gateway; `attached_elsewhere` maps a TenantGateway to
    the namespaces that it lists but does not get, each with the namespace of the gateway that has it: empty for one of
    the platform that only the publisher's gateway may have."""

    owners: Mapping[str, str] = field(default_factory=dict)
    attached_elsewhere: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)
