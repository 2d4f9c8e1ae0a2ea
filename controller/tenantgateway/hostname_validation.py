"""Validates the hostnames that routes and TenantGateways request. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from controller.tenantgateway.hostname_ownership import WILDCARD
from controller.tenantgateway.model import CertMode, RouteKind
from registry.names import MAX_HOST, host_errors

# Reasons for omitting a hostname or a route, also shown in the status of routes; the first four are Gateway API's own.
UNSUPPORTED_VALUE = "UnsupportedValue"
NO_MATCHING_LISTENER = "NoMatchingListenerHostname"
NO_MATCHING_PARENT = "NoMatchingParent"
NOT_ALLOWED_BY_LISTENERS = "NotAllowedByListeners"
ORPHANED = "Orphaned"
HOSTNAME_CONFLICT = "HostnameConflict"
QUOTA_EXCEEDED = "QuotaExceeded"
LISTENERS_TRUNCATED = "ListenersTruncated"
CERTIFICATE_FULL = "CertificateFull"
SECRET_MISSING = "SecretMissing"
NOT_IN_CERTIFICATE = "NotInCertificate"


class HostnameRejection(NamedTuple):
    """The reason why a hostname is not served, in CamelCase, and a message that names the hostname."""

    reason: str
    message: str


def within(apex: str, hostname: str) -> bool:
    """True if the hostname, possibly a wildcard, is the apex or below it; `evilfoo.org` is not below `foo.org`."""
    return hostname.removeprefix(WILDCARD) == apex or hostname.endswith(f".{apex}")


def hostname_errors(hostname: str) -> list[str]:
    """Reasons why a canonical hostname, possibly a wildcard, is invalid for listeners and certificates; empty if
    none."""
    problems = host_errors(hostname.removeprefix(WILDCARD))
    if not problems and len(hostname) > MAX_HOST:
        problems.append(f"must be no more than {MAX_HOST} characters")
    return problems


def check_domain(domain: str, apex: str) -> HostnameRejection | None:
    """Returns the reason why a canonical hostname or domain cannot be on the Gateway of this apex; None if it can.

    The admission policy for Gateways rejects a whole Gateway that has one foreign hostname (FACT-2, PEER-22).
    """
    if problems := hostname_errors(domain):
        return HostnameRejection(UNSUPPORTED_VALUE, f'"{domain}" {"; ".join(problems)}')
    if not within(apex, domain):
        return HostnameRejection(
            NO_MATCHING_LISTENER,
            f'"{domain}" is outside "{apex}", the domain of this gateway: choose a name below it, '
            "or set spec.gateway of the tenant whose domain it is",
        )
    return None


def check_claim(
    hostname: str, kind: RouteKind, *, apex: str, mode: CertMode, passthrough: Collection[str]
) -> HostnameRejection | None:
    """Returns the reason why a route may not claim a canonical hostname; None if it may.

    `passthrough` are the hostnames of the TLS passthrough listeners, which belong to the Gateway itself and accept
    TLSRoutes only.
    """
    if rejection := check_domain(hostname, apex):
        return rejection
    wildcard = hostname.startswith(WILDCARD)
    if kind == "TLSRoute" and wildcard:
        why = "is a wildcard, but a TLS passthrough listener serves exactly one hostname: list the hostname itself"
        return HostnameRejection(UNSUPPORTED_VALUE, f'"{hostname}" {why}')
    if kind != "TLSRoute" and hostname in passthrough:
        why = "belongs to a TLS passthrough listener of this gateway: attach a TLSRoute, or choose another hostname"
        return HostnameRejection(HOSTNAME_CONFLICT, f'"{hostname}" {why}')
    if mode == "http01" and wildcard:
        why = "is a wildcard, which HTTP-01 cannot issue a certificate for: list the hostnames, or use certMode dns01"
        return HostnameRejection(UNSUPPORTED_VALUE, f'"{hostname}" {why}')
    return None


def check_certificate(hostname: str, dns_names: Collection[str]) -> HostnameRejection | None:
    """Returns the reason why clients would reject the Gateway's shared certificate for a canonical hostname; None if
    it has the name. A wildcard stands for one label in a certificate, and for several in a listener (RFC 6125)."""
    _, _, domain = hostname.partition(".")
    if not dns_names or hostname in dns_names or WILDCARD + domain in dns_names:
        return None
    why = "is not in the certificate of this gateway, whose wildcards stand for one label: choose a name with one label"
    return HostnameRejection(NOT_IN_CERTIFICATE, f'"{hostname}" {why} before the domain of its tenant')
