"""Decides what becomes of the route of one service: written, left, offered to the charts, or deleted. Pure.

A route that is no longer needed stays until something else publishes its hostname, but only for a limited time: the
charts need a while to bring the Ingresses back (R-302).
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.meta.resource import Object
from controller.publishing.routes.marks import offered_marks, route_owner, unneeded_mark, unneeded_since
from controller.publishing.routes.render import render_route
from controller.publishing.services import PlatformService
from controller.publishing.verdicts import PublishingFacts, is_asked_for


@dataclass(frozen=True, slots=True)
class Moment:
    """`now` is the time since the epoch, `wait` the time that an unneeded route stays, both in seconds."""

    now: float
    wait: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteDecision:
    """`desired` is to be written, `again` the number of seconds after which to decide again."""

    desired: Object | None = None
    delete: bool = False
    again: float | None = None


_NOTHING = RouteDecision()
_DELETE = RouteDecision(delete=True)


def decide(service: PlatformService, facts: PublishingFacts, current: Object | None, moment: Moment) -> RouteDecision:
    """A route of Helm's or of another client is never touched. Without a publishing tenant, no route is written: the
    setting that names it may have a typing error, and a written route would lose its Gateway."""
    if current is not None and not route_owner(current).is_ours:
        return _NOTHING
    desired = render_route(service, facts)
    if desired is not None:
        return RouteDecision(desired=desired) if facts.has_publisher else _NOTHING
    if current is None:
        return _NOTHING
    return _decide_unneeded(service, facts, current, moment)


def _decide_unneeded(
    service: PlatformService, facts: PublishingFacts, current: Object, moment: Moment
) -> RouteDecision:
    has_ingress = not facts.enabled and service.hostname(facts.host) in facts.ingress_hosts
    unlisted = service.listed and not is_asked_for(service, facts)
    if has_ingress or unlisted:
        return _DELETE
    since = unneeded_since(current)
    left = moment.wait - (moment.now - since) if since is not None else moment.wait
    if left <= 0:
        return _DELETE
    return RouteDecision(desired=_marked(service, facts, since, moment), again=left)


def _marked(service: PlatformService, facts: PublishingFacts, since: float | None, moment: Moment) -> Object:
    """With the flag, the charts have a route of the same name: ours is offered to them."""
    marks: Object = offered_marks(service) if facts.enabled and not facts.platform_routes else {}
    if since is None:
        marks["annotations"] = {**marks.get("annotations", {}), **unneeded_mark(moment.now)}
    return {"metadata": {"name": service.route, "namespace": service.namespace, **marks}}
