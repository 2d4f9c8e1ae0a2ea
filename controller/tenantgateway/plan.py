"""What a TenantGateway comes to: listeners, certificates, whose hostnames are, and what is left out. Pure.

One bad thing never stops the others: what Gateway API or cert-manager would refuse is left out, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from apiserver.meta.resource import Object
from controller.tenantgateway import listeners as layout
from controller.tenantgateway.hostname_ownership import WILDCARD, claims, judge, rank
from controller.tenantgateway.hostname_validation import UNSUPPORTED_VALUE, claim_fault, domain_fault
from controller.tenantgateway.model import GatewayFacts, Heir, Judgement, LeftOut, Plan, Route, RouteId
from controller.tenantgateway.names import CERT_MANAGER_NAMESPACE
from registry.names import canonical_host, host_errors


def plan(gateway: GatewayFacts, heirs: Sequence[Heir], routes: Sequence[Route], *, current: Object | None) -> Plan:
    """The same for any order of `heirs` and `routes`, which are those of this gateway.

    `current` is the Gateway as it is: where not everything fits, what it serves stays.
    """
    apex = canonical_host(gateway.apex)
    left_out: list[LeftOut] = []
    passthrough = _passthrough(gateway, apex, left_out)
    claimed = _claimed(gateway, apex, passthrough, routes, left_out)
    judgement = _judgement(claimed, passthrough)
    served = layout.served_hostnames(current)
    if problems := host_errors(apex):
        left_out.append(LeftOut(apex, UNSUPPORTED_VALUE, f'spec.apex "{apex}" {"; ".join(problems)}'))
        made = layout.per_hostname(gateway, {}, {}, served)
    elif gateway.cert_mode == "http01":
        held = _held(claimed, judgement)
        made = layout.per_hostname(gateway, passthrough, _best(held), served)
        left_out += [LeftOut(each, *made.dropped[each], route=route) for each, route in held if each in made.dropped]
    else:
        children = _children(apex, heirs, left_out)
        made = layout.wildcards(gateway, apex, passthrough, children, served)
        left_out += _dropped_children(children, made)
        left_out += [LeftOut(each, *made.dropped[each]) for each in (apex, WILDCARD + apex) if each in made.dropped]
    left_out += [LeftOut(each, *made.dropped[each]) for each in passthrough if each in made.dropped]
    return Plan(
        listeners=made.listeners,
        certificates=made.certificates,
        judgement=judgement,
        left_out=tuple(sorted(set(left_out), key=_order)),
        plaintext=_plaintext(gateway, routes),
    )


def _passthrough(gateway: GatewayFacts, apex: str, left_out: list[LeftOut]) -> Mapping[str, str]:
    """Services by hostname (R-118); an entry that makes no hostname is left out."""
    services = {}
    for service in sorted({each.lower() for each in gateway.passthrough}):
        hostname = f"{service}.{apex}"
        if problems := host_errors(hostname):
            message = f'spec.tlsPassthroughServices: "{service}" makes no hostname: "{hostname}" {"; ".join(problems)}'
            left_out.append(LeftOut(hostname, UNSUPPORTED_VALUE, message))
        else:
            services[hostname] = service
    return services


def _claimed(
    gateway: GatewayFacts,
    apex: str,
    passthrough: Collection[str],
    routes: Iterable[Route],
    left_out: list[LeftOut],
) -> list[Route]:
    """The routes that claim hostnames, with those that this Gateway can serve."""
    claimed = []
    for route in filter(claims, routes):
        hostnames = []
        for hostname in sorted({canonical_host(each) for each in route.hostnames}):
            fault = claim_fault(hostname, route.id.kind, apex=apex, mode=gateway.cert_mode, passthrough=passthrough)
            if fault is None:
                hostnames.append(hostname)
            else:
                left_out.append(LeftOut(hostname, *fault, route=route.id))
        claimed.append(replace(route, hostnames=tuple(hostnames)))
    return claimed


def _judgement(claimed: Sequence[Route], passthrough: Collection[str]) -> Judgement:
    """What passthrough listeners serve is judged apart: a wildcard that covers it does not take it (PEER-08)."""
    apart = judge([_restricted(route, lambda each: each in passthrough) for route in claimed])
    rest = judge([_restricted(route, lambda each: each not in passthrough) for route in claimed])
    refused = {
        loser: (*apart.refused.get(loser, ()), *rest.refused.get(loser, ()))
        for loser in {*apart.refused, *rest.refused}
    }
    return Judgement(owners={**apart.owners, **rest.owners}, refused=refused)


def _restricted(route: Route, wanted: Callable[[str], bool]) -> Route:
    return replace(route, hostnames=tuple(filter(wanted, route.hostnames)))


def _held(claimed: Iterable[Route], judgement: Judgement) -> list[tuple[str, RouteId]]:
    """Every hostname with every HTTPRoute that has it: a TLSRoute's alone makes no listener for HTTPS (PEER-08,
    GW-2)."""
    held = []
    for route in claimed:
        if route.id.kind == "HTTPRoute":
            lost = {each.hostname for each in judgement.refused.get(route.id, ())}
            held += [(hostname, route.id) for hostname in route.hostnames if hostname not in lost]
    return held


def _best(held: Iterable[tuple[str, RouteId]]) -> Mapping[str, RouteId]:
    best: dict[str, RouteId] = {}
    for hostname, route in sorted(held, key=lambda each: rank(each[1])):
        best.setdefault(hostname, route)
    return best


def _children(apex: str, heirs: Iterable[Heir], left_out: list[LeftOut]) -> Mapping[str, Sequence[str]]:
    """Namespaces by the host that they have (R-175 to R-178); one without a host is no child, but a system's."""
    children: dict[str, list[str]] = {}
    for heir in heirs:
        host = canonical_host(heir.host)
        fault = domain_fault(host, apex)
        if fault is not None and host:
            left_out.append(LeftOut(host, *fault, namespace=heir.namespace))
        elif host and host != apex:
            children.setdefault(host, []).append(heir.namespace)
    return children


def _dropped_children(children: Mapping[str, Sequence[str]], made: layout.Layout) -> list[LeftOut]:
    return [
        LeftOut(host, *made.dropped[WILDCARD + host], namespace=namespace)
        for host, namespaces in children.items()
        if WILDCARD + host in made.dropped
        for namespace in namespaces
    ]


def _plaintext(gateway: GatewayFacts, routes: Iterable[Route]) -> tuple[RouteId, ...]:
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


def _order(left_out: LeftOut) -> tuple[str, ...]:
    route = left_out.route or ("", "", "")
    return left_out.hostname, *route, left_out.namespace, left_out.reason, left_out.message
