"""The condition ResolvedRefs of routes that refer to other namespaces (R-366).

False is told as soon as a grant is missing. True is told only in place of our own False, and only of backends that were
known to exist: everything else about them is for the data plane to judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding, find_condition, join_limited
from controller.tenantgateway.consent.reference_grants import ReferenceGrants, Referrer
from controller.tenantgateway.consent.references import CORE, Reference, is_foreign, references
from controller.tenantgateway.model import RouteId
from controller.tenantgateway.names import GATEWAY_API_GROUP, REF_NOT_PERMITTED, RESOLVED_REFS
from controller.tenantgateway.parse import own_status_entries
from controller.tenantgateway.watched_kinds import WatchedKind

RESOLVED = Finding(RESOLVED_REFS, "True", RESOLVED_REFS, "ReferenceGrants permit the references to other namespaces")


class Backends(Protocol):
    def exists(self, reference: Reference) -> bool: ...


class ReferenceJudge:
    """Judges the references of a route by the ReferenceGrants and Services as they are now."""

    def __init__(self, *, kind: WatchedKind, grants: ReferenceGrants, backends: Backends) -> None:
        """`kind` is that of the grants."""
        self._kind = kind
        self._grants = grants
        self._backends = backends

    def judge(self, route: RouteId, obj: Object) -> Finding | None:
        """The condition for every parentRef of the route; None if it is not ours to write."""
        found = references(obj)
        if not self._kind.synced or not any(is_foreign(each, route.namespace) for each in found):
            return None
        if refused := refuse(route, found, self._grants):
            return refused
        return RESOLVED if _was_judged(obj) and all(map(self._backends.exists, found)) else None


def refuse(route: RouteId, found: Sequence[Reference], grants: ReferenceGrants) -> Finding | None:
    """The condition of a route with references that no grant permits; None if each is permitted."""
    referrer = Referrer(route.kind, route.namespace)
    missing = [missing_grant(referrer, each) for each in found if not grants.permit(referrer, each)]
    return Finding(RESOLVED_REFS, "False", REF_NOT_PERMITTED, join_limited(missing)) if missing else None


def missing_grant(referrer: Referrer, reference: Reference) -> str:
    """Says which grant a reference needs, for which object, and in which namespace."""
    group = f'group: "{reference.group}", ' if reference.group not in (CORE, GATEWAY_API_GROUP) else ""
    return (
        f"{reference}: namespace {reference.namespace} has no ReferenceGrant from {referrer.kind} of namespace "
        f"{referrer.namespace} to {group}{reference.kind} {reference.name}"
    )


def _was_judged(obj: Object) -> bool:
    return any(_condition(each) is not None for each in own_status_entries(obj))


def _condition(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return find_condition(entry.get("conditions"), RESOLVED_REFS)
