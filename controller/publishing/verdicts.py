"""Decides whether each of the platform's services is served, and if not, which is the first reason. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.meta.resource import Key
from controller.publishing.facts import PublishedListener, PublishedRoute, ServicePorts
from controller.publishing.services import SERVICES, PlatformService
from controller.tenantgateway.hostname_ownership import WILDCARD
from controller.tenantgateway.listener_status import CERTIFICATE_NOT_READY
from controller.tenantgateway.model import RouteId
from controller.tenantgateway.names import passthrough_listener_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingFacts:
    """The settings, beside the objects of the cluster that they concern.

    `host` is the domain of the platform, `gateway` the Gateway of the publishing tenant, which `publisher` names by
    its namespace. `listeners` are those of the Gateway by name, None if there is no Gateway. `ingress_hosts` are the
    hosts of Ingresses whose class is the publisher. With `platform_routes`, the routes are ours, else the charts'.
    Without `has_publisher`, the settings name the namespace of no tenant.
    """

    enabled: bool
    exposed: Sequence[str]
    host: str
    gateway: Key
    platform_routes: bool = False
    listeners: Mapping[str, PublishedListener] | None = None
    routes: Mapping[RouteId, PublishedRoute] = field(default_factory=dict)
    backends: Mapping[Key, ServicePorts] = field(default_factory=dict)
    ingress_hosts: Collection[str] = ()
    has_publisher: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingVerdict:
    """`reason` is CamelCase and empty if the service is served; `subject` is the object that it is about. `left` is a
    route that would be ours if another had not made it."""

    service: str
    reason: str = ""
    subject: str = ""
    left: str = ""

    @property
    def served(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        about = f" ({self.subject})" if self.subject else ""
        return f"{self.service}: {self.reason}{about}"


def verdicts(facts: PublishingFacts) -> Sequence[PublishingVerdict]:
    """One verdict for each listed service, known or not, and for each other one that is installed."""
    installed = [each.name for each in SERVICES.values() if not each.listed and is_asked_for(each, facts)]
    return [_verdict(name, facts) for name in dict.fromkeys((*facts.exposed, *installed))]


def is_asked_for(service: PlatformService, facts: PublishingFacts) -> bool:
    """True if the list has the service, or for one that no list decides on, if it is installed."""
    if service.listed:
        return service.name in facts.exposed
    return Key(service.namespace, service.backend) in facts.backends


def _verdict(name: str, facts: PublishingFacts) -> PublishingVerdict:
    service = SERVICES.get(name)
    if service is None:
        return PublishingVerdict(service=name, reason="Unknown")
    if not facts.enabled:
        hostname = service.hostname(facts.host)
        if hostname in facts.ingress_hosts:
            return PublishingVerdict(service=name)
        subject = f"Ingress of class {facts.gateway.namespace} for {hostname}"
        return PublishingVerdict(service=name, reason="IngressMissing", subject=subject)
    # we render no route without its Service
    checks = (_gateway, _backend, _route, _listener) if facts.platform_routes else _CHECKS
    found = next((each for check in checks for each in check(service, facts)), None)
    reason, subject = found or ("", "")
    return PublishingVerdict(service=name, reason=reason, subject=subject, left=_left(service, facts))


def _left(service: PlatformService, facts: PublishingFacts) -> str:
    found = facts.routes.get(service.route_id)
    if not facts.platform_routes or found is None or found.owner.is_ours:
        return ""
    return f"{service.kind} {service.namespace}/{service.route} of {found.owner.value}"


_Problems = Iterator[tuple[str, str]]


def _gateway(service: PlatformService, facts: PublishingFacts) -> _Problems:
    if facts.listeners is None:
        yield "GatewayMissing", f"Gateway {facts.gateway.namespace}/{facts.gateway.name}"


def _route(service: PlatformService, facts: PublishingFacts) -> _Problems:
    name = f"{service.kind} {service.namespace}/{service.route}"
    found = facts.routes.get(service.route_id)
    hostname = service.hostname(facts.host)
    if found is None:
        yield "RouteMissing", name
        return
    if hostname not in found.hostnames:
        yield "RouteMissing", f"{name} has no hostname {hostname}"
    parent = found.parents.get(facts.gateway)
    if parent is None:
        yield "RouteMissing", f"{name} does not refer to Gateway {facts.gateway.namespace}/{facts.gateway.name}"
        return
    if not parent.accepted:
        yield "NotAccepted", f"{name}: {parent.problem or 'no controller has accepted it yet'}"
    if parent.conflict:
        yield "HostnameConflict", name


def _listener(service: PlatformService, facts: PublishingFacts) -> _Problems:
    hostname = service.hostname(facts.host)
    found = _listener_of(service, hostname, facts.listeners or {})
    if found is None:
        yield "ListenerNotReady", f"no listener for {hostname}"
    elif not found.ready:
        reason = CERTIFICATE_NOT_READY if found.reason == CERTIFICATE_NOT_READY else "ListenerNotReady"
        detail = f": {found.reason}" if found.reason and reason != found.reason else ""
        yield reason, f"{hostname}{detail}"


def _listener_of(
    service: PlatformService, hostname: str, listeners: Mapping[str, PublishedListener]
) -> PublishedListener | None:
    if service.kind == "TLSRoute":
        return listeners.get(passthrough_listener_name(service.name))
    wildcard = f"{WILDCARD}{hostname.partition('.')[2]}"
    by_hostname = {each.hostname: each for each in listeners.values()}
    return by_hostname.get(hostname) or by_hostname.get(wildcard)


def _backend(service: PlatformService, facts: PublishingFacts) -> _Problems:
    found = facts.backends.get(Key(service.namespace, service.backend))
    name = f"Service {service.namespace}/{service.backend}"
    if found is None:
        yield "BackendMissing", name
    elif service.port not in found.ports and service.port_name not in found.names:
        yield "BackendMissing", f"{name} has no port {service.port}"


_CHECKS: Sequence[Callable[[PlatformService, PublishingFacts], _Problems]] = (_gateway, _route, _listener, _backend)
"""In the order in which a service is published."""
