"""Every hostname: whose it is, which route has it, whether it is served, and how long its certificate lasts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from apiserver.meta.resource import Object
from tenant_apiserver.kubectl_tenant.tables import table


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """`served` is True, False, or Unknown while no controller has reported; `days` is None without a certificate."""

    hostname: str
    tenant: str
    route: str
    served: str
    reason: str
    certificate: str
    days: int | None

    def as_object(self) -> Object:
        return asdict(self)


def host_rows(
    tenants: Sequence[Object],
    routes: Sequence[Object],
    gateways: Sequence[Object],
    certificates: Sequence[Object],
    now: datetime,
) -> Sequence[HostRow]:
    """A row for each hostname of each route, sorted. `gateways` are TenantGateways."""
    owners = {
        (each.get("status") or {}).get("namespace"): f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in tenants
    }
    listeners = _listeners(gateways)
    ends = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): (each.get("status") or {}).get("notAfter")
        for each in certificates
    }
    rows = []
    for route in routes:
        served, reason = _state(route)
        for hostname in (route.get("spec") or {}).get("hostnames") or ():
            namespace, certificate = listeners.get(hostname, ("", ""))
            rows.append(
                HostRow(
                    hostname=hostname,
                    tenant=owners.get(route["metadata"]["namespace"], ""),
                    route=f"{route['metadata']['namespace']}/{route['metadata']['name']}",
                    served=served,
                    reason=reason,
                    certificate=certificate,
                    days=_days(ends.get((namespace, certificate)), now),
                )
            )
    return sorted(rows, key=lambda each: (each.hostname, each.route))


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
            each.certificate,
            "" if each.days is None else str(each.days),
        )
        for each in rows
    ]
    return table(("HOSTNAME", "TENANT", "ROUTE", "SERVED", "CERTIFICATE", "DAYS LEFT"), cells)


def _listeners(gateways: Sequence[Object]) -> Mapping[str, tuple[str, str]]:
    """The namespace and the name of the Certificate of each hostname."""
    return {
        each["hostname"]: (gateway["metadata"]["namespace"], each.get("certificateName") or "")
        for gateway in gateways
        for each in (gateway.get("status") or {}).get("listeners") or ()
        if each.get("hostname")
    }


def _state(route: Object) -> tuple[str, str]:
    """Accepted by every controller that has reported, and the first reason why not."""
    conditions = list(_accepted(route))
    for each in conditions:
        if each.get("status") != "True":
            return str(each.get("status")), str(each.get("reason") or "")
    return ("True", "") if conditions else ("Unknown", "not reported")


def _accepted(route: Object) -> Iterator[Mapping[str, Any]]:
    for parent in (route.get("status") or {}).get("parents") or ():
        yield from (each for each in parent.get("conditions") or () if each.get("type") == "Accepted")


def _days(not_after: str | None, now: datetime) -> int | None:
    if not not_after:
        return None
    try:
        return (datetime.fromisoformat(not_after).astimezone(UTC) - now).days
    except ValueError:
        return None
