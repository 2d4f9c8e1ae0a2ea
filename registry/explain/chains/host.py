"""The facts of a hostname: whose domain it is in, the Gateway, the listener, the certificate and the routes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apiserver.meta.resource import Object
from registry.explain.chains.route import attaches_to, is_accepted, is_refused, route_facts, route_name
from registry.explain.chains.serving import gateway_state_facts, serving_facts
from registry.explain.chains.tenant import gateway_fact, host_fact, tenant_object
from registry.explain.hostnames import has_own_listener, is_passthrough, within
from registry.explain.known import TENANT, KnownHost
from registry.explain.types import Fact, deciding_fact, explanation, fact_object, hidden_object
from registry.tenant.cluster_roles import TENANT_ROUTES

_GATEWAYS, _SPEC = "gateways.md", "tenants.md#spec"
_MOST_NAMED = 3
_MOST_ROUTES, _MOST_PARENTS = 20, 8
_HOST_POLICY = "Only the groups that the platform trusts set spec.host of a tenant."


class HostChain(NamedTuple):
    """`deciding` are the facts that the verdict is made of, in their order. `served_by` are the routes that serve the
    host."""

    facts: Sequence[Fact]
    deciding: Sequence[Fact]
    served_by: Sequence[str] = ()


def explain_host(known: KnownHost, about: str) -> Object:
    """The answer about a hostname, asked of a Tenant."""
    chain = host_chain(known)
    by = f", by {' and '.join(chain.served_by)}" if chain.served_by else ""
    return explanation(known.tenant.key, about, chain.facts, f"{known.host} is served{by}", deciding=chain.deciding)


def host_chain(known: KnownHost) -> HostChain:
    """The facts of a hostname. Where a route serves it, others that do not are facts that decide nothing."""
    facts = [host_fact(known.tenant)]
    outside = _domain_facts(known)
    facts += outside
    if any(each.status != "True" for each in outside):
        return HostChain(facts, facts)
    facts += _gateway_facts(known)
    gateway = known.gateway.key if known.gateway is not None else None
    claiming = _nearest_first(known, list(_claiming_routes(known)))
    by_route = [
        (route_name(each), list(route_facts(each, gateway, most=_MOST_PARENTS))) for each in claiming[:_MOST_ROUTES]
    ]
    served_by = [name for name, found in by_route if not deciding_fact(found)]
    of_routes = [fact for _, found in by_route for fact in found] or [_missing_route(known)]
    idle = [fact for name, found in by_route if served_by and name not in served_by for fact in found]
    remedy = _create_remedy(known, alone=bool(by_route) or _known_to_be_missing(known))
    serving = list(serving_facts(known, has_route=bool(by_route), remedy=remedy))
    counting = of_routes if not idle else [fact for name, found in by_route if name in served_by for fact in found]
    more = [_more_routes(known, len(claiming) - _MOST_ROUTES)] if len(claiming) > _MOST_ROUTES else []
    if known.left_out:
        others = _other_routes(known, is_served=bool(served_by))
        more.append(others)
        # one of those may serve the host, whatever keeps these from it
        counting = counting if served_by or not by_route else [others]
    return HostChain([*facts, *of_routes, *more, *serving], [*facts, *counting, *serving], served_by)


def _nearest_first(known: KnownHost, routes: Sequence[Object]) -> Sequence[Object]:
    """The routes in their order if an answer tells of all, or else those that are accepted on the Gateway first, then
    the Tenant's own."""
    if len(routes) <= _MOST_ROUTES:
        return routes
    gateway = known.gateway.key.namespace if known.gateway is not None else ""

    def distance(route: Object) -> tuple[bool, bool]:
        serves = is_accepted(route) and attaches_to(route, gateway)
        return not serves, route["metadata"]["namespace"] != known.tenant.namespace

    return sorted(routes, key=distance)


def _more_routes(known: KnownHost, count: int) -> Fact:
    return Fact(
        object=tenant_object(known.tenant, "status.namespace"),
        status="True",
        value=f"{count} more routes with the hostname are left out",
        rule=f"An answer tells of at most {_MOST_ROUTES} routes, those that serve the hostname first.",
        link="explain.md#hostnames",
    )


def _other_routes(known: KnownHost, *, is_served: bool) -> Fact:
    """The fact that there may be routes that nobody has looked at."""
    where = _alternatives(known.left_out)
    fact = Fact(
        object=tenant_object(known.tenant, "status.namespace"),
        status="True",
        value=f"routes {where} were not all looked at",
        rule="An answer looks at no more routes than other requests can wait for.",
        link="explain.md#who-may-ask",
    )
    if is_served:
        return fact
    told = {
        "message": f"no route that was looked at serves {known.host}, and those {where} were not all looked at",
        "remedy": f"look for the hostname there: kubectl get httproutes,grpcroutes -n {known.left_out[0]}",
    }
    return fact.model_copy(update={"status": "Unknown", **told})


def _domain_facts(known: KnownHost) -> list[Fact]:
    """States if the host is in the domain of the Tenant, and not in that of another one."""
    tenant, owner = known.tenant, known.owner
    inside = within(tenant.host, known.host)
    if inside and owner is None:
        return [
            Fact(
                object=tenant_object(tenant, "status.host"),
                status="True",
                value=known.host if known.host == tenant.host else f"{tenant.host} contains {known.host}",
                rule="A tenant serves its domain and the names below it.",
                link=_GATEWAYS,
            )
        ]
    found = []
    if owner is not None:
        found.append(
            Fact(
                object=fact_object(*TENANT, owner.key, "status.host"),
                status="False",
                value=owner.host,
                rule="A name belongs to the tenant with the longest domain around it.",
                link=_GATEWAYS,
                message=f"{known.host} belongs to tenant {owner.key.namespace}/{owner.key.name}",
                remedy=f"ask about it there: kubectl tenant explain host {known.host} "
                f"--tenant {owner.key.name} -n {owner.key.namespace}",
            )
        )
    return found if inside else [*found, *_outside_facts(known)]


def _outside_facts(known: KnownHost) -> list[Fact]:
    """The domain that the host is not in, and who may change it."""
    tenant = known.tenant
    domain = tenant.host or "its domain"
    return [
        Fact(
            object=tenant_object(tenant, "status.host"),
            status="False",
            value=tenant.host or None,
            rule="A tenant serves its domain and the names below it.",
            link=_GATEWAYS,
            message=f"{known.host} is not below {domain}",
            remedy=f"use a name below {domain}, or {_host_remedy(known)}",
        ),
        Fact(
            object=tenant_object(tenant, "spec.host"),
            status="True",
            value="you may set it" if known.may_set_host else "you may not set it",
            rule=_HOST_POLICY,
            link=_SPEC,
        ),
    ]


def _host_remedy(known: KnownHost) -> str:
    """The root keeps its domain: a name outside of it is for another tenant."""
    tenant = known.tenant
    whose = " of the tenant that should have the name" if tenant.key.namespace == tenant.namespace else ""
    return f"{'' if known.may_set_host else 'ask a platform administrator to '}set spec.host{whose}"


def _gateway_facts(known: KnownHost) -> Iterator[Fact]:
    yield gateway_fact(known.tenant)
    if known.gateway is not None:
        yield from gateway_state_facts(known.gateway)
        return
    yield Fact(
        object=tenant_object(known.tenant, "spec.gateway"),
        status="False",
        value=str(known.tenant.spec.get("gateway") or False).lower(),
        rule="A hostname is served by a Gateway of the tenant or of an ancestor.",
        link=_GATEWAYS,
        message="no Gateway serves the tenant",
        remedy="set spec.gateway: true on the tenant, or have it set on an ancestor",
    )


def _claiming_routes(known: KnownHost) -> Iterator[Object]:
    """The routes of the Tenant, and those of others on its Gateway: one of those that is refused keeps nobody from
    having the host."""
    for each in known.routes:
        own = each["metadata"]["namespace"] == known.tenant.namespace
        if own or (
            known.gateway is not None and attaches_to(each, known.gateway.key.namespace) and not is_refused(each)
        ):
            yield each


def _missing_route(known: KnownHost) -> Fact:
    """The fact that no route is known. It is no advice to create one where one is that the user may not see."""
    known_to_be_missing = _known_to_be_missing(known)
    seen = "that was looked at" if known.left_out else "that you may see"
    where = _alternatives(known.searched) if known_to_be_missing else seen
    message = f"no route {where} has the hostname {known.host}"
    if has_own_listener(known.gateway, known.host):
        return Fact(
            object=hidden_object(),
            status="Unknown",
            rule="A Gateway has a listener for each hostname that a route uses.",
            link=_GATEWAYS,
            message=f"{message}, and the Gateway has a listener for it",
            remedy="ask those who administer the Gateway which route it is, unless one was just deleted",
        )
    return Fact(
        object=tenant_object(known.tenant, "status.namespace"),
        status="False" if known_to_be_missing else "Unknown",
        rule="A route says which backend a hostname has.",
        link=_GATEWAYS,
        message=message,
        remedy=_create_remedy(known, alone=known_to_be_missing),
    )


def _known_to_be_missing(known: KnownHost) -> bool:
    return bool(known.searched) and not known.incomplete


def _alternatives(namespaces: Sequence[str]) -> str:
    shown = namespaces[:_MOST_NAMED]
    more = [f"{len(namespaces) - len(shown)} more namespaces"] if len(namespaces) > len(shown) else []
    *others, last = [*shown, *more]
    return f"in {', '.join(others)} or {last}" if others else f"in {last}"


def _create_remedy(known: KnownHost, *, alone: bool = True) -> str:
    """Tenants' people may not create routes by default: the platform does that for the services that it publishes.
    Where it is not known to be `alone`, a route would lose to one that is hidden."""
    namespace, passthrough = known.tenant.namespace, is_passthrough(known.gateway, known.host)
    plural = "tlsroutes" if passthrough else "httproutes"
    if not (alone or known.may_list_routes):
        return f"ask for the right to list {plural} in {namespace}, which tells if one has the name"
    if known.may_create_routes:
        kind = "a TLSRoute" if passthrough else "an HTTPRoute"
        key = known.gateway.key if known.gateway is not None else None
        parent = f", whose parentRefs name Gateway {key.namespace}/{key.name}" if key is not None else ""
        unseen = "that was not looked at" if known.left_out else "that you may not see"
        hidden = "" if alone else f", unless a route {unseen} has it"
        return f"create {kind} with this hostname in {namespace}{parent}{hidden}"
    return (
        f"ask a platform administrator for the right to create {plural} in "
        f"{namespace}, which the ClusterRole {TENANT_ROUTES} has (docs/delegation.md)"
    )
