"""Finds the hostnames of routes that do not name the object with the listener. Pure.

A route attaches only to the listeners of the objects that its parentRefs name: to the Gateway's own through the
Gateway, to those of a ListenerSet through the ListenerSet (GEP-1713, "Gateway parents and sectionName").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from controller.tenantgateway.hostname_ownership import binds_plain_http
from controller.tenantgateway.hostname_validation import NO_MATCHING_PARENT
from controller.tenantgateway.listeners import Layout
from controller.tenantgateway.listenersets.place_of_hostname import GATEWAY_ITSELF, place_of
from controller.tenantgateway.model import OmittedHostname, Route, RouteId, TenantGateway
from controller.tenantgateway.names import LISTENER_SET


def detached_hostnames(
    gateway: TenantGateway, routes: Sequence[Route], owned: Iterable[tuple[str, RouteId]], laid_out: Layout
) -> Iterator[OmittedHostname]:
    """The pairs of a hostname and a route among `owned` whose listener the route does not attach to."""
    named = {
        each.id: {parent.listener_set for parent in each.parents if not binds_plain_http(parent)} for each in routes
    }
    if not laid_out.sets and not any(each - {""} for each in named.values()):
        return
    places = _places(laid_out)
    for hostname, route in owned:
        place = place_of(hostname, places)
        if place is not None and place not in named[route]:
            yield OmittedHostname(hostname, NO_MATCHING_PARENT, _describe(gateway, hostname, place), route=route)


def _places(laid_out: Layout) -> Mapping[str, str]:
    """The ListenerSet of each hostname with a listener; empty for the Gateway itself."""
    own = {each.hostname: GATEWAY_ITSELF for each in laid_out.listeners if each.hostname}
    return own | {listener.hostname: each.name for each in laid_out.sets for listener in each.listeners}


def _describe(gateway: TenantGateway, hostname: str, place: str) -> str:
    kind, name = (LISTENER_SET, place) if place else ("Gateway", gateway.key.name)
    return (
        f'"{hostname}" is a listener of {kind} {gateway.key.namespace}/{name}, which the route does not refer to: '
        f"add a parentRef with kind {kind}, namespace {gateway.key.namespace} and name {name}"
    )
