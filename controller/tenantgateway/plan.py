"""Plans the desired state of a TenantGateway: listeners, certificates, hostname ownership, omitted hostnames. Pure.

Hostnames that Gateway API or cert-manager would reject are omitted and reported; they never affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from apiserver.meta.resource import Object
from controller.tenantgateway import listeners as layout
from controller.tenantgateway.certificate_budget import BudgetsOf, no_budgets
from controller.tenantgateway.hostname_ownership import WILDCARD, claims, rank, resolve_ownership
from controller.tenantgateway.hostname_validation import (
    UNSUPPORTED_VALUE,
    check_certificate,
    check_claim,
    check_domain,
    within,
)
from controller.tenantgateway.listenersets.attachment_of_routes import detached_hostnames
from controller.tenantgateway.listenersets.existing_sets import NO_SETS, ExistingSets
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
from controller.tenantgateway.secrets.issuance import IsIssued, ServedSecrets, all_issued
from controller.tenantgateway.secrets.replacement import NO_TRIAL, Trial, trial
from registry.names import canonical_host, host_errors


def plan(
    gateway: TenantGateway,
    inheriting: Sequence[InheritingNamespace],
    routes: Sequence[Route],
    *,
    current: Object | None,
    permitted: bool = True,
    budgets_of: BudgetsOf = no_budgets,
    shared_hostnames: bool = False,
    sets: ExistingSets = NO_SETS,
    is_issued: IsIssued = all_issued,
) -> Plan:
    """Returns the same plan for any order of `inheriting` and `routes`, which are those of this gateway only.

    `current` is the existing Gateway, `sets` are its ListenerSets: the hostnames that they serve stay there. Unless
    it is `permitted` to use the Secret of another namespace that the spec names, and until the Gateway's controller can
    use it, certificates stay as they are. A served hostname keeps its certificate until the next `is_issued`.
    `budgets_of` limits namespaces with HTTP-01. With `shared_hostnames`, those of the platform share by disjoint paths.
    """
    apex = canonical_host(gateway.apex)
    passthrough = _passthrough(gateway, apex, omitted := list[OmittedHostname]())
    claiming = _claiming_routes(gateway, apex, passthrough, routes, omitted)
    ownership = _resolve_ownership(claiming, passthrough, shared=shared_hostnames)
    owned = _owned_hostnames(claiming, ownership)
    served = layout.served_hostnames(current, sets)
    trying = trial(gateway, current) if permitted else NO_TRIAL
    secrets = ServedSecrets(current, sets, is_issued)
    wanted = partial(_is_wanted, apex, ownership)
    if problems := host_errors(apex):
        omitted.append(OmittedHostname(apex, UNSUPPORTED_VALUE, f'spec.apex "{apex}" {"; ".join(problems)}'))
        laid_out = layout.per_hostname(gateway, {}, {}, served, sets=sets)
    elif gateway.cert_mode == "http01":
        best = _best_routes(owned)
        laid_out = layout.per_hostname(gateway, passthrough, best, served, budgets_of, sets).hold(secrets.hold)
        omitted += _dropped_of_routes(owned, laid_out)
    elif not permitted or trying.reason:
        laid_out = layout.unchanged(gateway, passthrough, current, wanted, sets, trying.listeners)
    else:
        laid_out = _wildcards(gateway, apex, passthrough, inheriting, owned, served, sets, omitted)
        if any(secrets.outlast(each.name) for each in laid_out.certificates):
            kept = layout.unchanged(gateway, passthrough, current, wanted, sets)
            laid_out = replace(kept, certificates=laid_out.certificates)
    omitted += _dropped(passthrough, laid_out)
    omitted += detached_hostnames(gateway, claiming, owned, laid_out)
    return _assemble(laid_out, ownership, omitted, _plaintext(gateway, routes), trying)


def _assemble(
    laid_out: layout.Layout,
    ownership: HostnameOwnership,
    omitted: Collection[OmittedHostname],
    plaintext: tuple[RouteId, ...],
    trying: Trial,
) -> Plan:
    return Plan(
        listeners=laid_out.listeners,
        certificates=laid_out.certificates,
        ownership=ownership,
        omitted=tuple(sorted(set(omitted), key=_sort_key)),
        plaintext=plaintext,
        sets=laid_out.sets,
        unproven_secret=(trying.reason, trying.message),
        held=laid_out.held,
    )


def _is_wanted(apex: str, ownership: HostnameOwnership, hostname: str) -> bool:
    return within(apex, hostname) and (
        hostname == apex or hostname.startswith(WILDCARD) or hostname in ownership.owners
    )


def _dropped(hostnames: Iterable[str], laid_out: layout.Layout) -> Iterator[OmittedHostname]:
    return (OmittedHostname(each, *laid_out.dropped[each]) for each in hostnames if each in laid_out.dropped)


def _passthrough(gateway: TenantGateway, apex: str, omitted: list[OmittedHostname]) -> Mapping[str, str]:
    """Services by hostname (R-118); an entry that does not form a valid hostname is omitted."""
    services = {}
    for service in sorted({each.lower() for each in gateway.passthrough}):
        hostname = f"{service}.{apex}"
        if problems := host_errors(hostname):
            message = f'spec.tlsPassthroughServices: "{service}" is invalid: "{hostname}" {"; ".join(problems)}'
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
    """The routes that claim hostnames, reduced to the hostnames that this Gateway can serve."""
    claiming = []
    for route in filter(claims, routes):
        hostnames = []
        for hostname in sorted({canonical_host(each) for each in route.hostnames}):
            rejection = check_claim(hostname, route.id.kind, apex=apex, mode=gateway.cert_mode, passthrough=passthrough)
            if rejection is None:
                hostnames.append(hostname)
            else:
                omitted.append(OmittedHostname(hostname, *rejection, route=route.id))
        claiming.append(replace(route, hostnames=tuple(hostnames)))
    return claiming


def _resolve_ownership(claiming: Sequence[Route], passthrough: Collection[str], *, shared: bool) -> HostnameOwnership:
    """Resolves passthrough hostnames separately, so that a wildcard that covers one does not win it (PEER-08)."""
    tls = resolve_ownership([_with_hostnames(route, lambda each: each in passthrough) for route in claiming])
    others = [_with_hostnames(route, lambda each: each not in passthrough) for route in claiming]
    rest = resolve_ownership(others, shared=shared)
    conflicts = {
        loser: (*tls.conflicts.get(loser, ()), *rest.conflicts.get(loser, ()))
        for loser in {*tls.conflicts, *rest.conflicts}
    }
    return HostnameOwnership(owners={**tls.owners, **rest.owners}, conflicts=conflicts)


def _with_hostnames(route: Route, condition: Callable[[str], bool]) -> Route:
    return replace(route, hostnames=tuple(filter(condition, route.hostnames)))


def _owned_hostnames(claiming: Iterable[Route], ownership: HostnameOwnership) -> list[tuple[str, RouteId]]:
    """All pairs of a hostname and a route that may use it. TLSRoutes need no HTTPS listener (PEER-08, GW-2)."""
    owned = []
    for route in claiming:
        if route.id.kind != "TLSRoute":
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
    """Inheriting namespaces by host (R-175 to R-178); those without a host are system namespaces and are skipped."""
    children: dict[str, list[str]] = {}
    for child in inheriting:
        host = canonical_host(child.host)
        rejection = check_domain(host, apex)
        if rejection is not None and host:
            omitted.append(OmittedHostname(host, *rejection, namespace=child.namespace))
        elif host and host != apex:
            children.setdefault(host, []).append(child.namespace)
    return children


def _wildcards(
    gateway: TenantGateway,
    apex: str,
    passthrough: Mapping[str, str],
    inheriting: Sequence[InheritingNamespace],
    owned: Sequence[tuple[str, RouteId]],
    served: frozenset[str],
    sets: ExistingSets,
    omitted: list[OmittedHostname],
) -> layout.Layout:
    """Listeners for the apex and the domains of its children, with one certificate. Adds what they leave out."""
    children = _children(apex, inheriting, omitted)
    laid_out = layout.wildcards(gateway, apex, passthrough, children, served, sets)
    omitted += _omitted_children(children, laid_out)
    omitted += _outside_certificate(owned, laid_out)
    omitted += _dropped((apex, WILDCARD + apex), laid_out)
    return laid_out


def _omitted_children(children: Mapping[str, Sequence[str]], laid_out: layout.Layout) -> list[OmittedHostname]:
    return [
        OmittedHostname(host, *laid_out.dropped[WILDCARD + host], namespace=namespace)
        for host, namespaces in children.items()
        if WILDCARD + host in laid_out.dropped
        for namespace in namespaces
    ]


def _dropped_of_routes(owned: Iterable[tuple[str, RouteId]], laid_out: layout.Layout) -> Iterator[OmittedHostname]:
    for hostname, route in owned:
        if hostname in laid_out.dropped:
            yield OmittedHostname(hostname, *laid_out.dropped[hostname], route=route)


def _outside_certificate(owned: Iterable[tuple[str, RouteId]], laid_out: layout.Layout) -> Iterator[OmittedHostname]:
    """The hostnames that a wildcard listener would serve with a certificate that clients reject.

    None with existingSecret: the names in that certificate are not known.
    """
    dns_names = {name for each in laid_out.certificates for name in each.dns_names}
    for hostname, route in owned:
        if rejection := check_certificate(hostname, dns_names):
            yield OmittedHostname(hostname, *rejection, route=route)


def _plaintext(gateway: TenantGateway, routes: Iterable[Route]) -> tuple[RouteId, ...]:
    """HTTPRoutes that port 80 admits and that name neither a section nor a port, so that they serve plain HTTP
    (GW-12)."""
    admitted = (gateway.key.namespace, CERT_MANAGER_NAMESPACE)
    return tuple(
        sorted(
            route.id
            for route in routes
            if route.id.kind == "HTTPRoute"
            and route.id.namespace in admitted
            and any(not (each.section or each.port or each.listener_set) for each in route.parents)
        )
    )


def _sort_key(omitted: OmittedHostname) -> tuple[str, ...]:
    route = omitted.route or ("", "", "")
    return omitted.hostname, *route, omitted.namespace, omitted.reason, omitted.message
