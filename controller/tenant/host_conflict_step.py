"""The step that reports problems of a Tenant's host that admission could not prevent. It writes no objects."""

from __future__ import annotations

from collections.abc import Sequence

from controller.runtime.conditions import Finding
from controller.tenant.observe import ObservedTenant
from registry.names import MAX_LABEL_VALUE, host_errors


def host_conflict_findings(observed: ObservedTenant) -> list[Finding]:
    """HostTooLongForLabel, HostInvalid and HostConflict while they hold. Messages do not name other Tenants
    (ATTACK-15)."""
    host = observed.host
    if host is None:
        return []
    findings = []
    if len(host.value) > MAX_LABEL_VALUE:
        message = (
            f"{host.value} has {len(host.value)} characters; a label value has at most {MAX_LABEL_VALUE}; "
            "set a shorter spec.host"
        )
        findings.append(Finding("HostTooLongForLabel", "True", "TooLong", message))
    if problems := host_errors(host.value):
        findings.append(Finding("HostInvalid", "True", "NotADomain", f"{host.value}: {'; '.join(problems)}"))
    if observed.shares_host:
        message = f"another tenant has the host {host.value} as well; choose another one"
        findings.append(Finding("HostConflict", "True", "Duplicate", message))
    return findings


class HostConflictStep:
    name = "host"
    condition = "HostReady"

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        return host_conflict_findings(observed)
