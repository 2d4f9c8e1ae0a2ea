"""Lays out the listeners and certificates of a Gateway within the limits of Gateway API and certificate authorities.

If not everything fits, hostnames that the Gateway already serves stay, and the rest is admitted in a fixed order. Pure.
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

# the limit for one Gateway (FACT-7)
MAX_LISTENERS = 64
# the limit for one certificate, at Let's Encrypt and most other authorities
MAX_DNS_NAMES = 100
# the length limit for the name of a Certificate or Secret
MAX_NAME = 253

HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class Layout:
    """`dropped` are the listeners that could not be placed, by hostname, with the reason."""

    listeners: tuple[PlannedListener, ...]
    certificates: tuple[PlannedCertificate, ...]
    dropped: Mapping[str, HostnameRejection]


def served_hostnames(current: Object | None) -> frozenset[str]:
    """The hostnames of the listeners on port 443 of an existing Gateway."""
    listeners = ((current or {}).get("spec") or {}).get("listeners") or ()
    return frozenset(each["hostname"] for each in listeners if each.get("hostname") and each.get("port") == HTTPS_PORT)


def per_hostname(
    gateway: TenantGateway, passthrough: Mapping[str, str], owners: Mapping[str, RouteId], served: frozenset[str]
) -> Layout:
    """HTTP-01: one listener and one certificate for each hostname (R-109 to R-113, R-151).

    `passthrough` are services by hostname, `owners` the highest ranking route of each hostname, `served` the hostnames
    that the Gateway already serves.
    """
    builder = _LayoutBuilder()
    _place_passthrough(builder, passthrough, served)
    certificates = []
    for hostname in _in_admission_order(owners, served):
        certificate = names.certificate_name(gateway.key.name, hostname)
        if _too_long(certificate):
            builder.drop(
                hostname,
                UNSUPPORTED_VALUE,
                f"needs a Certificate named {certificate}, which is longer than {MAX_NAME} characters",
            )
        elif builder.place(_https(names.listener_name(hostname), hostname, certificate)):
            certificates.append(PlannedCertificate(certificate, (hostname,), per_listener=True))
    return builder.layout(certificates)


def wildcards(
    gateway: TenantGateway, apex: str, passthrough: Mapping[str, str], children: Iterable[str], served: frozenset[str]
) -> Layout:
    """DNS-01 and existingSecret: listeners for the apex, `*.` below it, and `*.` below each child host (R-114, R-115,
    R-174)."""
    builder = _LayoutBuilder()
    ours = gateway.cert_mode == "dns01"
    secret = names.wildcard_certificate_name(gateway.key.name) if ours else gateway.wildcard_secret
    if not secret or _too_long(secret):
        cause = "metadata.name is too long" if ours else "spec.wildcardSecretRef.name must name a Secret"
        builder.drop(apex, SECRET_MISSING, f"has no certificate: {cause}")
        _place_passthrough(builder, passthrough, served)
        return builder.layout(())
    builder.place(_https(names.APEX_LISTENER, apex, secret))
    builder.place(_https(names.WILDCARD_LISTENER, WILDCARD + apex, secret))
    _place_passthrough(builder, passthrough, served)
    dns_names = [apex, WILDCARD + apex]
    placed: list[str] = []
    for child in sorted(set(children) - {apex}, key=lambda each: (WILDCARD + each not in served, each)):
        if ours and len(dns_names) + 2 * len(placed) + 2 > MAX_DNS_NAMES:
            why = f"does not fit: one certificate holds at most {MAX_DNS_NAMES} hostnames"
            builder.drop(WILDCARD + child, CERTIFICATE_FULL, f"{why}; give one of the tenants a gateway of its own")
        elif builder.place(_https(names.child_listener_name(child), WILDCARD + child, secret)):
            placed.append(child)
    for child in sorted(placed):
        dns_names += [child, WILDCARD + child]
    valid = tuple(each for each in dns_names if not hostname_errors(each))
    return builder.layout((PlannedCertificate(secret, valid, per_listener=False),) if ours else ())


@dataclass(slots=True)
class _LayoutBuilder:
    """Collects listeners, starting with the one on port 80, and the hostnames that could not be placed."""

    listeners: dict[str, PlannedListener] = field(
        default_factory=lambda: {
            names.HTTP_LISTENER: PlannedListener(name=names.HTTP_LISTENER, protocol="HTTP", port=names.HTTP_PORT)
        }
    )
    dropped: dict[str, HostnameRejection] = field(default_factory=dict)

    def place(self, listener: PlannedListener) -> bool:
        """Adds the listener and returns True, or drops its hostname with a reason."""
        hostname = listener.hostname
        if problems := hostname_errors(hostname):
            self.drop(hostname, UNSUPPORTED_VALUE, "; ".join(problems))
        elif (other := self.listeners.get(listener.name)) is not None:
            why = f"needs the listener name {listener.name}, which {other.hostname} already has"
            self.drop(hostname, HOSTNAME_CONFLICT, f"{why}: choose another hostname")
        elif len(self.listeners) == MAX_LISTENERS:
            why = f"does not fit: a Gateway has at most {MAX_LISTENERS} listeners"
            self.drop(
                hostname, LISTENERS_TRUNCATED, f"{why}; use certMode dns01, or give a tenant a gateway of its own"
            )
        else:
            self.listeners[listener.name] = listener
            return True
        return False

    def drop(self, hostname: str, reason: str, why: str) -> None:
        self.dropped[hostname] = HostnameRejection(reason, f'"{hostname}" {why}')

    def layout(self, certificates: Iterable[PlannedCertificate]) -> Layout:
        """The result in an order that does not depend on the order of placement, so that no Gateway changes
        needlessly."""
        return Layout(
            listeners=tuple(self.listeners[name] for name in sorted(self.listeners)),
            certificates=tuple(sorted(certificates, key=lambda each: each.name)),
            dropped=self.dropped,
        )


def _place_passthrough(builder: _LayoutBuilder, passthrough: Mapping[str, str], served: frozenset[str]) -> None:
    for hostname in sorted(passthrough, key=lambda each: (each not in served, each)):
        name = names.passthrough_listener_name(passthrough[hostname])
        builder.place(PlannedListener(name=name, protocol="TLS", port=HTTPS_PORT, hostname=hostname))


def _in_admission_order(owners: Mapping[str, RouteId], served: frozenset[str]) -> Iterator[str]:
    """Yields served hostnames first, then those of `cozy-*`, then one of each other namespace in turn, so that a
    namespace with a thousand hostnames does not crowd out the first hostname of the others."""
    by_namespace: dict[str, list[str]] = {}
    for hostname in sorted(owners, key=lambda each: (each not in served, each)):
        by_namespace.setdefault(owners[hostname].namespace, []).append(hostname)
    rounds = {hostname: number for own in by_namespace.values() for number, hostname in enumerate(own)}

    def order(hostname: str) -> tuple[bool, bool, int, str]:
        is_tenant, _ = rank(owners[hostname])
        return hostname not in served, is_tenant, rounds[hostname], hostname

    return iter(sorted(owners, key=order))


def _https(name: str, hostname: str, certificate: str) -> PlannedListener:
    return PlannedListener(name=name, protocol="HTTPS", port=HTTPS_PORT, hostname=hostname, certificate=certificate)


def _too_long(name: str) -> bool:
    return len(name) > MAX_NAME
