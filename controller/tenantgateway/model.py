"""What the TenantGateway controller decides on: small frozen values, and where they come from. Pure.

A hostname is kept in its one canonical form (FACT-5); as it was written it does not reach a decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from apiserver.meta.resource import Key, Object

CertMode = Literal["http01", "dns01", "existingSecret"]
RouteKind = Literal["HTTPRoute", "TLSRoute"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantGateway:
    """A TenantGateway. `dns01` is the block as it was written; `wildcard_secret` is for existingSecret."""

    key: Key
    uid: str
    generation: int
    apex: str
    cert_mode: CertMode = "http01"
    issuer_name: str = "letsencrypt-prod"
    dns01: Mapping[str, object] | None = None
    wildcard_secret: str = ""
    attached: tuple[str, ...] = ()
    passthrough: tuple[str, ...] = ()
    class_name: str = "cilium"
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class InheritingNamespace:
    """A namespace whose gateway label names the owner, other than the owner itself, with its host label (R-175)."""

    namespace: str
    host: str


class RouteId(NamedTuple):
    """Ordered as ownership is decided inside a tier (R-200, CHOICE-11): namespace, then name, then kind."""

    namespace: str
    name: str
    kind: RouteKind

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ParentRef:
    """One reference of a route to the Gateway. `section` and `port` are empty and None where it names none."""

    section: str = ""
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route as far as it concerns one Gateway: `parents` are its references to that Gateway alone, at least one."""

    id: RouteId
    hostnames: tuple[str, ...]
    parents: tuple[ParentRef, ...]


class HostnameConflict(NamedTuple):
    """A hostname that a route may not have: `held`, which is the same or overlaps it, is the winner's."""

    hostname: str
    winner: RouteId
    winning_hostname: str


@dataclass(frozen=True, slots=True)
class HostnameOwnership:
    """Whose hostnames are: `owners` of those that are served, `refused` by loser. A route that claims nothing is in
    neither."""

    owners: Mapping[str, RouteId] = field(default_factory=dict)
    conflicts: Mapping[RouteId, Sequence[HostnameConflict]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedListener:
    """`certificate` is the name of the Secret with the certificate, which is the name of its Certificate too."""

    name: str
    protocol: Literal["HTTP", "HTTPS", "TLS"]
    port: int
    hostname: str = ""
    certificate: str = ""


@dataclass(frozen=True, slots=True)
class PlannedCertificate:
    """`per_listener` marks a certificate of one hostname (R-153)."""

    name: str
    dns_names: tuple[str, ...]
    per_listener: bool


@dataclass(frozen=True, slots=True)
class OmittedHostname:
    """What is not rendered, so that the rest can be: `reason` is a constant of plan.py, `message` says what to do.

    `route` is the route that asked for it, `namespace` the heir; both are empty for what the TenantGateway itself asks.
    """

    hostname: str
    reason: str
    message: str
    route: RouteId | None = None
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a TenantGateway comes to. `listeners` never holds more than Gateway API admits (FACT-7).

    `plaintext` are the routes that port 80 serves without TLS, since they name neither section nor port (GW-12).
    """

    listeners: tuple[PlannedListener, ...]
    certificates: tuple[PlannedCertificate, ...]
    ownership: HostnameOwnership
    omitted: tuple[OmittedHostname, ...] = ()
    plaintext: tuple[RouteId, ...] = ()


@dataclass(frozen=True, slots=True)
class ParentRefVerdict:
    """What one parentRef of a route comes to: `parent` is the reference as the route writes it."""

    parent: Object
    accepted: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Attachments:
    """`owners` tells by namespace which gateway's namespace it is attached to, `lost` by TenantGateway the namespaces
    that it lists and another one has, with that one's namespace."""

    owners: Mapping[str, str] = field(default_factory=dict)
    attached_elsewhere: Mapping[Key, Mapping[str, str]] = field(default_factory=dict)
