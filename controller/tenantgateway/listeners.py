"""Lays out the listeners and certificates of a Gateway within the limits of Gateway API and certificate authorities.

If not everything fits, hostnames that the Gateway already serves stay, and the rest is admitted in a fixed order. Those
that do not fit on the Gateway go to ListenerSets, if they may grow; nothing that is served ever moves. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from apiserver.meta.resource import Object
from controller.tenantgateway import names
from controller.tenantgateway.certificate_budget import BudgetsOf, HostnameLedger, no_budgets
from controller.tenantgateway.hostname_ownership import WILDCARD, rank
from controller.tenantgateway.hostname_validation import (
    CERTIFICATE_FULL,
    HOSTNAME_CONFLICT,
    LISTENERS_TRUNCATED,
    QUOTA_EXCEEDED,
    SECRET_MISSING,
    UNSUPPORTED_VALUE,
    HostnameRejection,
    hostname_errors,
)
from controller.tenantgateway.listenersets.existing_sets import NO_SETS, ExistingSets, remedy_for_truncation
from controller.tenantgateway.model import (
    PlannedCertificate,
    PlannedListener,
    PlannedListenerSet,
    RouteId,
    TenantGateway,
)

# the limit for one Gateway (FACT-7), and for one ListenerSet
MAX_LISTENERS = 64
# the limit for one certificate, at Let's Encrypt and most other authorities
MAX_DNS_NAMES = 100
# the length limit for the name of a Certificate or Secret
MAX_NAME = 253

HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class Layout:
    """`listeners` are those of the Gateway itself. `dropped` are the listeners that could not be placed, by hostname,
    with the reason. `held` are the hostnames whose listeners keep a Secret of before."""

    listeners: tuple[PlannedListener, ...]
    certificates: tuple[PlannedCertificate, ...]
    dropped: Mapping[str, HostnameRejection]
    sets: tuple[PlannedListenerSet, ...] = ()
    held: tuple[str, ...] = ()

    def hold(self, hold: Callable[[PlannedListener], PlannedListener]) -> Layout:
        """The layout in which listeners keep Secrets of before, all in their places."""
        sets = tuple(replace(each, listeners=tuple(map(hold, each.listeners))) for each in self.sets)
        listeners = tuple(map(hold, self.listeners))
        planned = {*self.listeners, *(each for found in self.sets for each in found.listeners)}
        now = (*listeners, *(each for found in sets for each in found.listeners))
        held = tuple(sorted(each.hostname for each in now if each not in planned))
        return replace(self, listeners=listeners, sets=sets, held=held)


def served_hostnames(current: Object | None, sets: ExistingSets = NO_SETS) -> frozenset[str]:
    """The hostnames of the listeners on port 443 of an existing Gateway, and of those of its ListenerSets that a
    controller has looked at."""
    listeners = ((current or {}).get("spec") or {}).get("listeners") or ()
    own = {each["hostname"] for each in listeners if each.get("hostname") and each.get("port") == HTTPS_PORT}
    return frozenset(own | sets.served())


def per_hostname(
    gateway: TenantGateway,
    passthrough: Mapping[str, str],
    owners: Mapping[str, RouteId],
    served: frozenset[str],
    budgets_of: BudgetsOf = no_budgets,
    sets: ExistingSets = NO_SETS,
) -> Layout:
    """HTTP-01: one listener and one certificate for each hostname (R-109 to R-113, R-151).

    `passthrough` are services by hostname, `owners` the highest ranking route of each hostname, `served` the hostnames
    that the Gateway and its `sets` already serve. Each hostname is charged to the budgets of its namespace.
    """
    ledger = HostnameLedger(budgets_of)
    builder = _LayoutBuilder(gateway.key.name, sets)
    _place_passthrough(builder, passthrough, served)
    certificates = []
    for hostname in _in_admission_order(owners, served):
        certificate, namespace = names.certificate_name(gateway.key.name, hostname), owners[hostname].namespace
        if _too_long(certificate):
            builder.drop(
                hostname,
                UNSUPPORTED_VALUE,
                f"needs a Certificate named {certificate}, which is longer than {MAX_NAME} characters",
            )
        elif why := ledger.refuse(namespace, served=hostname in served):
            builder.drop(hostname, QUOTA_EXCEEDED, why)
        elif builder.place(_https(names.listener_name(hostname), hostname, certificate)):
            certificates.append(PlannedCertificate(certificate, (hostname,), per_listener=True))
            ledger.spend(namespace)
    return builder.layout(certificates)


def wildcards(
    gateway: TenantGateway,
    apex: str,
    passthrough: Mapping[str, str],
    children: Iterable[str],
    served: frozenset[str],
    sets: ExistingSets = NO_SETS,
) -> Layout:
    """DNS-01 and existingSecret: listeners for the apex, `*.` below it, and `*.` below each child host (R-114, R-115,
    R-174)."""
    if gateway.wildcard_secret_namespace:
        # a grant for the Gateway says nothing about its ListenerSets
        sets = replace(sets, may_grow=False, withheld=False)
    builder = _LayoutBuilder(gateway.key.name, sets)
    ours = gateway.cert_mode == "dns01"
    secret = names.wildcard_certificate_name(gateway.key.name) if ours else gateway.wildcard_secret
    https = partial(_https, namespace="" if ours else gateway.wildcard_secret_namespace)
    if not secret or _too_long(secret):
        cause = "metadata.name is too long" if ours else "spec.wildcardSecretRef.name must name a Secret"
        builder.drop(apex, SECRET_MISSING, f"has no certificate: {cause}")
        _place_passthrough(builder, passthrough, served)
        return builder.layout(())
    builder.place(https(names.APEX_LISTENER, apex, secret))
    builder.place(https(names.WILDCARD_LISTENER, WILDCARD + apex, secret))
    _place_passthrough(builder, passthrough, served)
    dns_names = [apex, WILDCARD + apex]
    placed: list[str] = []
    for child in sorted(set(children) - {apex}, key=lambda each: (WILDCARD + each not in served, each)):
        if ours and len(dns_names) + 2 * len(placed) + 2 > MAX_DNS_NAMES:
            why = f"does not fit: one certificate holds at most {MAX_DNS_NAMES} hostnames"
            builder.drop(WILDCARD + child, CERTIFICATE_FULL, f"{why}; give one of the tenants a gateway of its own")
        elif builder.place(https(names.child_listener_name(child), WILDCARD + child, secret)):
            placed.append(child)
    for child in sorted(placed):
        dns_names += [child, WILDCARD + child]
    valid = tuple(each for each in dns_names if not hostname_errors(each))
    return builder.layout((PlannedCertificate(secret, valid, per_listener=False),) if ours else ())


def unchanged(
    gateway: TenantGateway,
    passthrough: Mapping[str, str],
    current: Object | None,
    is_wanted: Callable[[str], bool],
    sets: ExistingSets = NO_SETS,
    more: Iterable[PlannedListener] = (),
) -> Layout:
    """The HTTPS listeners that an existing Gateway has, with their certificates, as far as their hostnames are still
    wanted: for as long as nobody consents to those that the TenantGateway asks for, or they are not there. `more`
    listeners have room on the Gateway."""
    builder = _LayoutBuilder(gateway.key.name, sets)
    _place_passthrough(builder, passthrough, served_hostnames(current, sets))
    existing = (current or {}, *sets.owned.values())
    for each in (each for obj in existing for each in (obj.get("spec") or {}).get("listeners") or ()):
        references = (each.get("tls") or {}).get("certificateRefs") or ()
        if each.get("protocol") == "HTTPS" and references and is_wanted(each.get("hostname") or ""):
            certificate, namespace = references[0].get("name") or "", references[0].get("namespace") or ""
            builder.place(_https(each["name"], each["hostname"], certificate, namespace=namespace))
    for listener in more:
        builder.place(listener)
    return builder.layout(())


_GATEWAY = 0
"""The place on the Gateway itself; the other places are the numbers of ListenerSets."""


class _LayoutBuilder:
    """Collects listeners by place, starting with the one on port 80, and the hostnames that could not be placed.

    Those that are served must come before others, so that the others find out what room is left.
    """

    def __init__(self, tenantgateway: str, sets: ExistingSets) -> None:
        self._tenantgateway = tenantgateway
        self._sets = sets
        self._homes = sets.homes()
        http = PlannedListener(name=names.HTTP_LISTENER, protocol="HTTP", port=names.HTTP_PORT)
        self._by_name = {http.name: http}
        self._places: dict[int, list[PlannedListener]] = {_GATEWAY: [http], **{each: [] for each in sorted(sets.owned)}}
        self.dropped: dict[str, HostnameRejection] = {}

    def place(self, listener: PlannedListener) -> bool:
        """Adds the listener and returns True, or drops its hostname with a reason."""
        hostname = listener.hostname
        if problems := hostname_errors(hostname):
            self.drop(hostname, UNSUPPORTED_VALUE, "; ".join(problems))
        elif (other := self._by_name.get(listener.name)) is not None:
            why = f"needs the listener name {listener.name}, which {other.hostname} already has"
            self.drop(hostname, HOSTNAME_CONFLICT, f"{why}: choose another hostname")
        elif (place := self._place_for(hostname)) is None:
            why = f"does not fit: a Gateway has at most {MAX_LISTENERS} listeners"
            remedy = remedy_for_truncation(withheld=self._sets.withheld)
            self.drop(hostname, LISTENERS_TRUNCATED, f"{why}; {remedy}")
        else:
            self._by_name[listener.name] = listener
            self._places.setdefault(place, []).append(listener)
            return True
        return False

    def _place_for(self, hostname: str) -> int | None:
        """The place that a hostname has; or else the first one with room, after which further sets are made. From a set
        that nobody looks at, hostnames move to the Gateway as soon as it has room."""
        home = self._homes.get(hostname)
        is_home = home is not None and self._has_room(home)
        if home is not None and is_home and self._sets.is_attended(home):
            return home
        if self._has_room(_GATEWAY):
            return _GATEWAY
        if is_home:
            return home
        if not self._sets.may_grow:
            return None
        existing = next((each for each in sorted(self._places) if self._has_room(each)), None)
        return existing or next(each for each in count(1) if each not in self._places and not self._sets.is_taken(each))

    def _has_room(self, place: int) -> bool:
        return len(self._places[place]) < MAX_LISTENERS

    def drop(self, hostname: str, reason: str, why: str) -> None:
        self.dropped[hostname] = HostnameRejection(reason, f'"{hostname}" {why}')

    def layout(self, certificates: Iterable[PlannedCertificate]) -> Layout:
        """The result in an order that does not depend on the order of placement, so that no Gateway changes
        needlessly."""
        return Layout(
            listeners=_sorted(self._places[_GATEWAY]),
            certificates=tuple(sorted(certificates, key=lambda each: each.name)),
            dropped=self.dropped,
            sets=tuple(
                PlannedListenerSet(names.listener_set_name(self._tenantgateway, number), _sorted(self._places[number]))
                for number in sorted(self._places)
                if number != _GATEWAY and self._places[number]
            ),
        )


def _sorted(listeners: Iterable[PlannedListener]) -> tuple[PlannedListener, ...]:
    return tuple(sorted(listeners, key=lambda each: each.name))


def _place_passthrough(builder: _LayoutBuilder, passthrough: Mapping[str, str], served: frozenset[str]) -> None:
    for hostname in sorted(passthrough, key=lambda each: (each not in served, each)):
        name = names.passthrough_listener_name(passthrough[hostname])
        builder.place(PlannedListener(name=name, protocol="TLS", port=HTTPS_PORT, hostname=hostname))


def _in_admission_order(owners: Mapping[str, RouteId], served: frozenset[str]) -> Iterator[str]:
    """Yields served hostnames first, then those of `cozy-*`, then one of each other namespace in turn, so that a
    namespace with a thousand hostnames does not crowd out the first hostname of the others."""
    by_namespace: dict[str, list[str]] = {}
    for hostname in sorted(owners, key=lambda each: (each not in served, each)):
        by_namespace.setdefault(owners[hostname].namespace, []).append(hostname)
    rounds = {hostname: number for own in by_namespace.values() for number, hostname in enumerate(own)}

    def order(hostname: str) -> tuple[bool, bool, int, str]:
        is_tenant, _ = rank(owners[hostname])
        return hostname not in served, is_tenant, rounds[hostname], hostname

    return iter(sorted(owners, key=order))


def _https(name: str, hostname: str, certificate: str, *, namespace: str = "") -> PlannedListener:
    return PlannedListener(
        name=name,
        protocol="HTTPS",
        port=HTTPS_PORT,
        hostname=hostname,
        certificate=certificate,
        certificate_namespace=namespace,
    )


def _too_long(name: str) -> bool:
    return len(name) > MAX_NAME
