"""The plan of a TenantGateway that is not served any more: what it has, as it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from apiserver.meta.resource import Object
from controller.tenantgateway.listenersets.existing_sets import NO_SETS, ExistingSets
from controller.tenantgateway.model import (
    HostnameOwnership,
    Plan,
    PlannedCertificate,
    PlannedListener,
    PlannedListenerSet,
)
from controller.tenantgateway.parse import mapping, mappings, string

_PROTOCOLS: Mapping[str, Literal["HTTP", "HTTPS", "TLS"]] = {"HTTP": "HTTP", "HTTPS": "HTTPS", "TLS": "TLS"}


def remaining_plan(current: Object | None, sets: ExistingSets = NO_SETS) -> Plan:
    """The listeners and certificates of an existing Gateway and its ListenerSets, so that the status keeps telling
    their state."""
    listeners = tuple(_listeners(current))
    planned = tuple(PlannedListenerSet(name, tuple(_listeners(obj))) for name, obj in sorted(sets.by_name().items()))
    hostnames: dict[str, list[str]] = {}
    for each in (*listeners, *(each for found in planned for each in found.listeners)):
        if each.certificate and not each.certificate_namespace:
            hostnames.setdefault(each.certificate, []).append(each.hostname)
    certificates = tuple(
        PlannedCertificate(name, tuple(found), per_listener=len(found) == 1) for name, found in hostnames.items()
    )
    return Plan(listeners=listeners, certificates=certificates, ownership=HostnameOwnership(), sets=planned)


def _listeners(current: Object | None) -> Iterator[PlannedListener]:
    for each in mappings(mapping((current or {}).get("spec")).get("listeners")):
        protocol = _PROTOCOLS.get(string(each, "protocol"))
        if protocol is not None:
            yield _listener(each, protocol)


def _listener(found: Mapping[str, Any], protocol: Literal["HTTP", "HTTPS", "TLS"]) -> PlannedListener:
    secret = next(mappings(mapping(found.get("tls")).get("certificateRefs")), {})
    return PlannedListener(
        name=string(found, "name"),
        protocol=protocol,
        port=int(found.get("port") or 0),
        hostname=string(found, "hostname"),
        certificate=string(secret, "name"),
        certificate_namespace=string(secret, "namespace"),
    )
