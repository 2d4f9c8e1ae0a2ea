"""Hostnames, domains and listeners: which contains which. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from registry.explain.known import KnownGateway

_SHARED_LISTENERS = ("https", "https-apex")


def within(domain: str, host: str) -> bool:
    """True if the host, possibly a wildcard, is the domain or below it."""
    host = host.removeprefix("*.")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def hostname_matches(pattern: str, host: str) -> bool:
    """True if a hostname of a route or listener, which may be a wildcard, includes the host; empty includes all."""
    pattern = pattern.lower()
    return not pattern or pattern == host or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def domains_around(host: str) -> Iterator[str]:
    """Yields `a.b.c`, `b.c` and `c` for `a.b.c`, and `b.c` and `c` for `*.b.c`."""
    labels = host.removeprefix("*.").split(".")
    for at in range(len(labels)):
        yield ".".join(labels[at:])


def is_passthrough(gateway: KnownGateway | None, host: str) -> bool:
    """True if the Gateway is known to have a TLS passthrough listener for the host, which is for TLSRoutes alone."""
    if gateway is None:
        return False
    spec = (gateway.tenantgateway or {}).get("spec") or {}
    services = [str(each).lower() for each in spec.get("tlsPassthroughServices") or ()]
    return host in [f"{each}.{str(spec.get('apex') or '').lower()}" for each in services] or any(
        each.get("protocol") == "TLS" and each.get("hostname") == host for each in _listeners(gateway.gateway, "spec")
    )


def has_own_listener(gateway: KnownGateway | None, host: str) -> bool:
    """True if the Gateway is known to have a listener for the host alone, which it has only for one that a route
    has."""
    if gateway is None or is_passthrough(gateway, host):
        return False
    if gateway.tenantgateway is not None:
        mode = (gateway.tenantgateway.get("spec") or {}).get("certMode") or "http01"
        listeners = _listeners(gateway.tenantgateway, "status") if mode == "http01" else ()
    else:
        listeners = _listeners(gateway.gateway, "spec")
    return any(each.get("hostname") == host and each.get("name") not in _SHARED_LISTENERS for each in listeners)


def certificate_name(tenantgateway: Mapping[str, Any] | None, host: str) -> str:
    """The name of the Certificate of the host's listener; empty if it is not known, or it has none."""
    for each in _listeners(tenantgateway, "status"):
        if each.get("hostname") and each.get("certificateName") and hostname_matches(str(each["hostname"]), host):
            return str(each["certificateName"])
    return ""


def mappings(value: object) -> Sequence[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()


def _listeners(obj: Mapping[str, Any] | None, part: str) -> Sequence[Mapping[str, Any]]:
    return mappings(((obj or {}).get(part) or {}).get("listeners"))
