"""The parts of hostnames that roots of one namespace may compete for: a match below a hostname. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.tenantgateway.delegation.model import DelegatedMatch, Participant
from controller.tenantgateway.model import RouteKind


class DelegatedPart(NamedTuple):
    """A match below a hostname that a root of the namespace delegates. Between namespaces, the hostname as a whole has
    one owner (hostname_ownership.py)."""

    namespace: str
    kind: RouteKind
    hostname: str
    match: DelegatedMatch


def claims(root: Participant) -> Iterator[DelegatedPart]:
    """Nothing for routes that refer to no TenantGateway: what they delegate is a part of what they have."""
    if not root.gateways:
        return
    matches = {match for rule in root.rules if rule.targets for match in rule.matches}
    for hostname in root.hostnames:
        for match in matches:
            if match.hostname not in ("", hostname):
                continue
            yield DelegatedPart(root.id.namespace, root.id.kind, hostname, match)
