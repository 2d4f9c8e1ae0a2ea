"""Every hostname: whose it is, which route has it, whether it is served, and how long its certificate lasts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from apiserver.meta.resource import Key, Object
from registry.explain.chains.host import host_chain
from registry.explain.chains.route import route_facts
from registry.explain.hostnames import certificate_name
from registry.explain.known import KnownGateway, KnownHost, KnownTenant
from registry.explain.types import Fact, deciding_fact
from registry.names import canonical_host
from registry.tenantgateway.types import TENANTGATEWAY_NAME
from tenant_apiserver.kubectl_tenant.lists import Listed
from tenant_apiserver.kubectl_tenant.tables import printable, table

HIDDEN = "not visible to you"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSources:
    """The objects that the user may list, for the table of hostnames."""

    tenants: Sequence[Object]
    routes: Sequence[Object]
    tenantgateways: Listed
    gateways: Listed
    certificates: Listed


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """`served` is the verdict of explain. `gateway` is the namespace of the Gateway. `certificate` is None, or `days`
    where only its name is known, if it is `hidden` from the user; without a certificate, the one is empty and the other
    None."""

    hostname: str
    tenant: str
    route: str
    gateway: str
    served: str
    reason: str
    certificate: str | None
    days: int | None
    hidden: bool

    def as_object(self) -> Object:
        return asdict(self)


def host_rows(sources: HostSources, now: datetime) -> Sequence[HostRow]:
    """A row for each hostname of each route, sorted."""
    table_of = _HostTable(sources, now)
    rows = [
        table_of.row(route, hostname)
        for route in sources.routes
        for hostname in (route.get("spec") or {}).get("hostnames") or ()
    ]
    return sorted(rows, key=lambda each: (each.hostname, each.route))


class _HostTable:
    def __init__(self, sources: HostSources, now: datetime) -> None:
        self._sources = sources
        self._now = now
        self._tenants = {(each.get("status") or {}).get("namespace"): each for each in sources.tenants}
        self._tenantgateways = sources.tenantgateways.by_key()
        self._gateways = sources.gateways.by_key()
        self._certificates = sources.certificates.by_key()

    def row(self, route: Object, hostname: str) -> HostRow:
        metadata = route["metadata"]
        tenant = self._tenants.get(metadata["namespace"])
        gateway = self._gateway(route, tenant)
        place = gateway.key.namespace if gateway is not None else ""
        name = certificate_name(gateway.tenantgateway, hostname) if gateway is not None else ""
        certificate = self._certificates.get(Key(place, name))
        problem = self._problem(route, hostname, tenant, gateway, certificate)
        is_named = not place or self._sources.tenantgateways.sees(place)
        return HostRow(
            hostname=hostname,
            tenant=f"{tenant['metadata']['namespace']}/{tenant['metadata']['name']}" if tenant is not None else "",
            route=f"{metadata['namespace']}/{metadata['name']}",
            gateway=place,
            served=problem.status if problem is not None else "True",
            reason=(problem.reason or problem.message or "") if problem is not None else "",
            certificate=name if is_named else None,
            days=_days(((certificate or {}).get("status") or {}).get("notAfter"), self._now),
            hidden=not is_named or bool(name and not self._sources.certificates.sees(place)),
        )

    def _gateway(self, route: Object, tenant: Object | None) -> KnownGateway | None:
        """The Gateway of the tenant, or that which a route of no tenant names first."""
        if tenant is not None:
            namespace = str((tenant["status"].get("gateway") or {}).get("namespace") or "")
        else:
            references = (route.get("spec") or {}).get("parentRefs") or ()
            named = references[0].get("namespace") if references else None
            namespace = str(named or route["metadata"]["namespace"])
        key = Key(namespace, TENANTGATEWAY_NAME)
        if not namespace:
            return None
        return KnownGateway(key=key, tenantgateway=self._tenantgateways.get(key), gateway=self._gateways.get(key))

    def _problem(
        self,
        route: Object,
        hostname: str,
        tenant: Object | None,
        gateway: KnownGateway | None,
        certificate: Object | None,
    ) -> Fact | None:
        """The fact that decides why the route does not serve the hostname, as explain tells it, or else the one with
        the reason that the route is told."""
        told = deciding_fact(list(route_facts(route)))
        if tenant is None:
            return told
        known = KnownHost(
            tenant=KnownTenant(obj=tenant),
            host=canonical_host(hostname),
            gateway=gateway,
            routes=[route],
            certificate=certificate,
        )
        problem = deciding_fact(host_chain(known).deciding)
        if problem is None or problem.reason or told is None or told.status != problem.status:
            return problem
        return told


def render_hosts(rows: Sequence[HostRow]) -> str:
    """Empty if there are no rows."""
    if not rows:
        return ""
    cells = [
        (
            each.hostname,
            each.tenant,
            each.route,
            f"{each.served}{f' ({each.reason})' if each.served != 'True' and each.reason else ''}",
            HIDDEN if each.certificate is None else each.certificate,
            (HIDDEN if each.hidden and each.certificate else "") if each.days is None else str(each.days),
        )
        for each in rows
    ]
    return table(("HOSTNAME", "TENANT", "ROUTE", "SERVED", "CERTIFICATE", "DAYS LEFT"), cells)


def render_hidden_certificates(rows: Sequence[HostRow]) -> str:
    """A note for stderr about certificates that the user may not see; empty if there are none."""
    hidden = [each for each in rows if each.hidden]
    if not hidden:
        return ""
    places = sorted({each.gateway for each in hidden})
    others = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return (
        f"note: certificates in {places[0]}{others} are {HIDDEN}: you may not list tenantgateways or certificates "
        "there; the status of the tenant tells of them, too: "
        f"kubectl tenant explain host {printable(hidden[0].hostname)}\n"
    )


def _days(not_after: str | None, now: datetime) -> int | None:
    if not not_after:
        return None
    try:
        return (datetime.fromisoformat(not_after).astimezone(UTC) - now).days
    except ValueError:
        return None
