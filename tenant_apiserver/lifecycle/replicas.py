"""When no replica of ours runs any more. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Object

_DURATION = 15


@dataclass(frozen=True, slots=True)
class LeaseSighting:
    """The Lease of a leader: `version` changes with each renewal. `first_seen` is in seconds of a monotonic clock."""

    version: str
    first_seen: float


LeaseSightings = dict[str, LeaseSighting]
"""By the names of the Leases that somebody holds."""


def deployment_ends(deployment: Object | None, pods: Sequence[Object]) -> str:
    """The replicas that still have to end, empty if none. A Deployment does not count Pods that are shutting down."""
    if deployment is not None:
        status, generation = deployment.get("status") or {}, deployment["metadata"].get("generation", 0)
        if deployment["spec"].get("replicas", 1) != 0:
            return "the Deployment is scaled up again"
        if status.get("observedGeneration", generation) < generation:
            return "the Deployment's controller has not seen the change"
        if count := status.get("replicas", 0):
            return f"{count} replicas of the Deployment"
    names = sorted(each["metadata"]["name"] for each in pods)
    return f"Pods {', '.join(names)}" if names else ""


def sightings(leases: Sequence[Object], last: LeaseSightings, now: float) -> LeaseSightings:
    """Without those that nobody holds. Times in a Lease are of other clocks, so only its changes count."""
    found = LeaseSightings()
    for lease in leases:
        if not (lease.get("spec") or {}).get("holderIdentity"):
            continue
        name, version = lease["metadata"]["name"], lease["metadata"]["resourceVersion"]
        before = last.get(name)
        found[name] = before if before is not None and before.version == version else LeaseSighting(version, now)
    return found


def leases_end(leases: Sequence[Object], seen: LeaseSightings, now: float) -> str:
    """The replicas that may still lead; empty if none, because no Lease was renewed for its whole duration."""
    holders: list[str] = []
    for lease in leases:
        spec, sighting = lease.get("spec") or {}, seen.get(lease["metadata"]["name"])
        if sighting is not None and now - sighting.first_seen <= (spec.get("leaseDurationSeconds") or _DURATION):
            holders.append(str(spec.get("holderIdentity")))
    return f"the Lease of {' and '.join(dict.fromkeys(holders))}" if holders else ""
