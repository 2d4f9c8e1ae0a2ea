"""Which hostnames a Gateway can serve, and why it cannot serve the others. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from controller.tenantgateway.hostname_ownership import WILDCARD
from controller.tenantgateway.model import CertMode, RouteKind
from registry.names import MAX_HOST, host_errors

# Reasons of what is left out, also on a route's status; the first two are Gateway API's own words.
UNSUPPORTED_VALUE = "UnsupportedValue"
NO_MATCHING_LISTENER = "NoMatchingListenerHostname"
HOSTNAME_CONFLICT = "HostnameConflict"
LISTENERS_TRUNCATED = "ListenersTruncated"
CERTIFICATE_FULL = "CertificateFull"
SECRET_MISSING = "SecretMissing"


class HostnameRejection(NamedTuple):
    """Why something is left out: a CamelCase reason, and a sentence that names it."""

    reason: str
    message: str


def within(apex: str, hostname: str) -> bool:
    """Whether the hostname, which may be a wildcard, is the apex or below it; `evilfoo.org` is not below `foo.org`."""
    return hostname.removeprefix(WILDCARD) == apex or hostname.endswith(f".{apex}")


def hostname_errors(hostname: str) -> list[str]:
    """What keeps a canonical hostname, which may be a wildcard, off a listener and out of a certificate."""
    problems = host_errors(hostname.removeprefix(WILDCARD))
    if not problems and len(hostname) > MAX_HOST:
        problems.append(f"must be no more than {MAX_HOST} characters")
    return problems


def check_domain(domain: str, apex: str) -> HostnameRejection | None:
    """Why a canonical hostname or domain has no place on the Gateway of this apex, None if it has.

    The policy of Gateways refuses the whole of one that has a foreign hostname (FACT-2, PEER-22).
    """
    if problems := hostname_errors(domain):
        return HostnameRejection(UNSUPPORTED_VALUE, f'"{domain}" {"; ".join(problems)}')
    if not within(apex, domain):
        return HostnameRejection(
            NO_MATCHING_LISTENER,
            f'"{domain}" is outside "{apex}", the domain of this gateway: take a name below it, '
            "or set spec.gateway of the tenant whose domain it is",
        )
    return None


def check_claim(
    hostname: str, kind: RouteKind, *, apex: str, mode: CertMode, passthrough: Collection[str]
) -> HostnameRejection | None:
    """Why a route may not even claim a canonical hostname, None if it may.

    `passthrough` are the hostnames of the TLS passthrough listeners: they are the Gateway's own, and only a TLSRoute
    comes to be served there.
    """
    if rejection := check_domain(hostname, apex):
        return rejection
    wildcard = hostname.startswith(WILDCARD)
    if kind == "TLSRoute" and wildcard:
        why = "is a wildcard, and a TLS passthrough listener has one hostname: name the hostname"
        return HostnameRejection(UNSUPPORTED_VALUE, f'"{hostname}" {why}')
    if kind == "HTTPRoute" and hostname in passthrough:
        why = "is the hostname of a TLS passthrough listener of this gateway, which takes TLSRoutes only"
        return HostnameRejection(HOSTNAME_CONFLICT, f'"{hostname}" {why}')
    if mode == "http01" and wildcard:
        why = "is a wildcard, for which HTTP-01 gives no certificate: name the hostnames, or use certMode dns01"
        return HostnameRejection(UNSUPPORTED_VALUE, f'"{hostname}" {why}')
    return None
