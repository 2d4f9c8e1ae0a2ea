"""What a TenantGateway comes to: listeners, certificates, whose hostnames are, and what is left out. Pure.

One bad thing never stops the others: what Gateway API or cert-manager would refuse is left out, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from apiserver.meta.resource import Object
from controller.tenantgateway import listeners as layout
from controller.tenantgateway.hostname_ownership import WILDCARD, claims, rank, resolve_ownership
from controller.tenantgateway.hostname_validation import UNSUPPORTED_VALUE, check_claim, check_domain
from controller.tenantgateway.model import (
    HostnameOwnership,
    InheritingNamespace,
    OmittedHostname,
    Plan,
    Route,
    RouteId,
    TenantGateway,
)
from controller.tenantgateway.names import CERT_MANAGER_NAMESPACE
from registry.names import canonical_host, host_errors


def plan(
    gateway: TenantGateway,
    inheriting: Sequence[InheritingNamespace],
    routes: Sequence[Route],
    *,
    current: Object | None,
) -> Plan:
    """The same for any order of `inheriting` and `routes`, which are those of this gateway.

    `current` is the Gateway as it is: where not everything fits, what it serves stays.
    """
    apex = canonical_host(gateway.apex)
    omitted: list[OmittedHostname] = []
    passthrough = _passthrough(gateway, apex, omitted)
    claimed = _claiming_routes(gateway, apex, passthrough, routes, omitted)
    ownership = _resolve_ownership(claimed, passthrough)
    served = layout.served_hostnames(current)
    if problems := host_errors(apex):
        omitted.append(OmittedHostname(apex, UNSUPPORTED_VALUE, f'spec.apex "{apex}" {"; ".join(problems)}'))
        laid_out = layout.per_hostname(gateway, {}, {}, served)
    elif gateway.cert_mode == "http01":
        owned = _owned_hostnames(claimed, ownership)
        laid_out = layout.per_hostname(gateway, passthrough, _best_routes(owned), served)
        omitted += [
            OmittedHostname(each, *laid_out.dropped[each], route=route)
            for each, route in owned
            if each in laid_out.dropped
        ]
    else:
        children = _children(apex, inheriting, omitted)
        laid_out = layout.wildcards(gateway, apex, passthrough, children, served)
        omitted += _omitted_children(children, laid_out)
        omitted += [
            OmittedHostname(each, *laid_out.dropped[each])
            for each in (apex, WILDCARD + apex)
            if each in laid_out.dropped
        ]
    omitted += [OmittedHostname(each, *laid_out.dropped[each]) for each in passthrough if each in laid_out.dropped]
    return Plan(
        listeners=laid_out.listeners,
        certificates=laid_out.certificates,
        ownership=ownership,
        omitted=tuple(sorted(set(omitted), key=_order)),
        plaintext=_plaintext(gateway, routes),
    )


def _passthrough(gateway: TenantGateway, apex: str, omitted: list[OmittedHostname]) -> Mapping[str, str]:
    """Services by hostname (R-118); an entry that makes no hostname is left out."""
    services = {}
    for service in sorted({each.lower() for each in gateway.passthrough}):
        hostname = f"{service}.{apex}"
        if problems := host_errors(hostname):
            message = f'spec.tlsPassthroughServices: "{service}" makes no hostname: "{hostname}" {"; ".join(problems)}'
            omitted.append(OmittedHostname(hostname, UNSUPPORTED_VALUE, message))
        else:
            services[hostname] = service
    return services


def _claiming_routes(
    gateway: TenantGateway,
    apex: str,
    passthrough: Collection[str],
    routes: Iterable[Route],
    omitted: list[OmittedHostname],
) -> list[Route]:
    """The routes that claim hostnames, with those that this Gateway can serve."""
    claimed = []
    for route in filter(claims, routes):
        hostnames = []
        for hostname in sorted({canonical_host(each) for each in route.hostnames}):
            rejection = check_claim(hostname, route.id.kind, apex=apex, mode=gateway.cert_mode, passthrough=passthrough)
            if rejection is None:
                hostnames.append(hostname)
            else:
                omitted.append(OmittedHostname(hostname, *rejection, route=route.id))
        claimed.append(replace(route, hostnames=tuple(hostnames)))
    return claimed


def _resolve_ownership(claimed: Sequence[Route], passthrough: Collection[str]) -> HostnameOwnership:
    """What passthrough listeners serve is judged apart: a wildcard that covers it does not take it (PEER-08)."""
    apart = resolve_ownership([_restricted(route, lambda each: each in passthrough) for route in claimed])
    rest = resolve_ownership([_restricted(route, lambda each: each not in passthrough) for route in claimed])
    conflicts = {
        loser: (*apart.conflicts.get(loser, ()), *rest.conflicts.get(loser, ()))
        for loser in {*apart.conflicts, *rest.conflicts}
    }
    return HostnameOwnership(owners={**apart.owners, **rest.owners}, conflicts=conflicts)


def _restricted(route: Route, wanted: Callable[[str], bool]) -> Route:
    return replace(route, hostnames=tuple(filter(wanted, route.hostnames)))


def _owned_hostnames(claimed: Iterable[Route], ownership: HostnameOwnership) -> list[tuple[str, RouteId]]:
    """Every hostname with every HTTPRoute that has it: a TLSRoute's alone makes no listener for HTTPS (PEER-08,
    GW-2)."""
    owned = []
    for route in claimed:
        if route.id.kind == "HTTPRoute":
            lost = {each.hostname for each in ownership.conflicts.get(route.id, ())}
            owned += [(hostname, route.id) for hostname in route.hostnames if hostname not in lost]
    return owned


def _best_routes(owned: Iterable[tuple[str, RouteId]]) -> Mapping[str, RouteId]:
    best: dict[str, RouteId] = {}
    for hostname, route in sorted(owned, key=lambda each: rank(each[1])):
        best.setdefault(hostname, route)
    return best


def _children(
    apex: str, inheriting: Iterable[InheritingNamespace], omitted: list[OmittedHostname]
) -> Mapping[str, Sequence[str]]:
    """Namespaces by the host that they have (R-175 to R-178); one without a host is no child, but a system's."""
    children: dict[str, list[str]] = {}
    for inheriting_namespace in inheriting:
        host = canonical_host(inheriting_namespace.host)
        rejection = check_domain(host, apex)
        if rejection is not None and host:
            omitted.append(OmittedHostname(host, *rejection, namespace=inheriting_namespace.namespace))
        elif host and host != apex:
            children.setdefault(host, []).append(inheriting_namespace.namespace)
    return children


def _omitted_children(children: Mapping[str, Sequence[str]], laid_out: layout.Layout) -> list[OmittedHostname]:
    return [
        OmittedHostname(host, *laid_out.dropped[WILDCARD + host], namespace=namespace)
        for host, namespaces in children.items()
        if WILDCARD + host in laid_out.dropped
        for namespace in namespaces
    ]


def _plaintext(gateway: TenantGateway, routes: Iterable[Route]) -> tuple[RouteId, ...]:
    """Routes of the two namespaces that port 80 admits, which do not say that they mean port 443 (GW-12)."""
    admitted = (gateway.key.namespace, CERT_MANAGER_NAMESPACE)
    return tuple(
        sorted(
            route.id
            for route in routes
            if route.id.kind == "HTTPRoute"
            and route.id.namespace in admitted
            and any(not parent.section and parent.port is None for parent in route.parents)
        )
    )


def _order(omitted: OmittedHostname) -> tuple[str, ...]:
    route = omitted.route or ("", "", "")
    return omitted.hostname, *route, omitted.namespace, omitted.reason, omitted.message
