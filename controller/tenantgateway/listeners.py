"""The listeners and certificates of a Gateway, within what Gateway API and certificate authorities admit. Pure.

Where not everything fits, what the Gateway serves already stays, and the rest has its place in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from apiserver.meta.resource import Object
from controller.tenantgateway import names
from controller.tenantgateway.hostname_ownership import WILDCARD, rank
from controller.tenantgateway.hostname_validation import (
    CERTIFICATE_FULL,
    HOSTNAME_CONFLICT,
    LISTENERS_TRUNCATED,
    SECRET_MISSING,
    UNSUPPORTED_VALUE,
    HostnameRejection,
    hostname_errors,
)
from controller.tenantgateway.model import PlannedCertificate, PlannedListener, RouteId, TenantGateway

# FACT-7
MAX_LISTENERS = 64
# of Let's Encrypt, and of most others
MAX_DNS_NAMES = 100
# of the names of Certificates and Secrets
MAX_NAME = 253

HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class Layout:
    """`dropped` is what did not fit, by the hostname that its listener would have had."""

    listeners: tuple[PlannedListener, ...]
    certificates: tuple[PlannedCertificate, ...]
    dropped: Mapping[str, HostnameRejection]


def served_hostnames(current: Object | None) -> frozenset[str]:
    """What a Gateway has listeners for on port 443."""
    listeners = ((current or {}).get("spec") or {}).get("listeners") or ()
    return frozenset(each["hostname"] for each in listeners if each.get("hostname") and each.get("port") == HTTPS_PORT)


def per_hostname(
    gateway: TenantGateway, passthrough: Mapping[str, str], holders: Mapping[str, RouteId], served: frozenset[str]
) -> Layout:
    """HTTP-01: a listener and a certificate a hostname (R-109 to R-113, R-151).

    `passthrough` are services by hostname, `holders` the best route of each hostname, `served` what works already.
    """
    builder = _LayoutBuilder()
    _place_passthrough(builder, passthrough, served)
    certificates = []
    for hostname in _in_turn(holders, served):
        certificate = names.certificate_name(gateway.key.name, hostname)
        if _too_long(certificate):
            builder.drop(hostname, UNSUPPORTED_VALUE, f"would need a Certificate of the name {certificate}, too long")
        elif builder.place(_https(names.listener_name(hostname), hostname, certificate)):
            certificates.append(PlannedCertificate(certificate, (hostname,), per_listener=True))
    return builder.layout(certificates)


def wildcards(
    gateway: TenantGateway, apex: str, passthrough: Mapping[str, str], children: Iterable[str], served: frozenset[str]
) -> Layout:
    """DNS-01 and existingSecret: the domain, what is below it, and what is below each child (R-114, R-115, R-174)."""
    builder = _LayoutBuilder()
    ours = gateway.cert_mode == "dns01"
    secret = names.wildcard_certificate_name(gateway.key.name) if ours else gateway.wildcard_secret
    if not secret or _too_long(secret):
        field_name = "metadata.name is too long" if ours else "spec.wildcardSecretRef.name must name a Secret"
        builder.drop(apex, SECRET_MISSING, f"has no certificate: {field_name}")
        _place_passthrough(builder, passthrough, served)
        return builder.layout(())
    builder.place(_https(names.APEX_LISTENER, apex, secret))
    builder.place(_https(names.WILDCARD_LISTENER, WILDCARD + apex, secret))
    _place_passthrough(builder, passthrough, served)
    dns_names = [apex, WILDCARD + apex]
    placed: list[str] = []
    for child in sorted(set(children) - {apex}, key=lambda each: (WILDCARD + each not in served, each)):
        if ours and len(dns_names) + 2 * len(placed) + 2 > MAX_DNS_NAMES:
            why = f"would have the certificate name more than {MAX_DNS_NAMES} hostnames"
            builder.drop(WILDCARD + child, CERTIFICATE_FULL, f"{why}: give a tenant a gateway of its own")
        elif builder.place(_https(names.child_listener_name(child), WILDCARD + child, secret)):
            placed.append(child)
    for child in sorted(placed):
        dns_names += [child, WILDCARD + child]
    admitted = tuple(each for each in dns_names if not hostname_errors(each))
    return builder.layout((PlannedCertificate(secret, admitted, per_listener=False),) if ours else ())


@dataclass(slots=True)
class _LayoutBuilder:
    """Listeners as they find their place, beginning with that on port 80, and what finds none."""

    listeners: dict[str, PlannedListener] = field(
        default_factory=lambda: {
            names.HTTP_LISTENER: PlannedListener(name=names.HTTP_LISTENER, protocol="HTTP", port=names.HTTP_PORT)
        }
    )
    dropped: dict[str, HostnameRejection] = field(default_factory=dict)

    def place(self, listener: PlannedListener) -> bool:
        """Whether there is room for it; otherwise its hostname is dropped."""
        hostname = listener.hostname
        if problems := hostname_errors(hostname):
            self.drop(hostname, UNSUPPORTED_VALUE, "; ".join(problems))
        elif (other := self.listeners.get(listener.name)) is not None:
            why = f"would have a listener of the same name as {other.hostname}"
            self.drop(hostname, HOSTNAME_CONFLICT, f"{why}, {listener.name}: take another hostname")
        elif len(self.listeners) == MAX_LISTENERS:
            why = f"has no place: a Gateway has no more than {MAX_LISTENERS} listeners"
            self.drop(hostname, LISTENERS_TRUNCATED, f"{why}; use certMode dns01, or a gateway of a tenant's own")
        else:
            self.listeners[listener.name] = listener
            return True
        return False

    def drop(self, hostname: str, reason: str, why: str) -> None:
        self.dropped[hostname] = HostnameRejection(reason, f'"{hostname}" {why}')

    def layout(self, certificates: Iterable[PlannedCertificate]) -> Layout:
        """In an order that tells nothing of how it came about, so that a Gateway changes only where it must."""
        return Layout(
            listeners=tuple(self.listeners[name] for name in sorted(self.listeners)),
            certificates=tuple(sorted(certificates, key=lambda each: each.name)),
            dropped=self.dropped,
        )


def _place_passthrough(builder: _LayoutBuilder, passthrough: Mapping[str, str], served: frozenset[str]) -> None:
    for hostname in sorted(passthrough, key=lambda each: (each not in served, each)):
        name = names.passthrough_listener_name(passthrough[hostname])
        builder.place(PlannedListener(name=name, protocol="TLS", port=HTTPS_PORT, hostname=hostname))


def _in_turn(holders: Mapping[str, RouteId], served: frozenset[str]) -> Iterator[str]:
    """Hostnames as they get their places: those that are served, the platform's, then namespace by namespace one each,
    so that nobody's thousand hostnames keep out everybody else's first."""
    by_namespace: dict[str, list[str]] = {}
    for hostname in sorted(holders, key=lambda each: (each not in served, each)):
        by_namespace.setdefault(holders[hostname].namespace, []).append(hostname)
    turns = {hostname: turn for own in by_namespace.values() for turn, hostname in enumerate(own)}

    def order(hostname: str) -> tuple[bool, bool, int, str]:
        others_first, _ = rank(holders[hostname])
        return hostname not in served, others_first, turns[hostname], hostname

    return iter(sorted(holders, key=order))


def _https(name: str, hostname: str, certificate: str) -> PlannedListener:
    return PlannedListener(name=name, protocol="HTTPS", port=HTTPS_PORT, hostname=hostname, certificate=certificate)


def _too_long(name: str) -> bool:
    return len(name) > MAX_NAME
