"""When no replica of ours runs any more. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Object

_DURATION = 15


@dataclass(frozen=True, slots=True)
class LeaseSighting:
    """The Lease of the leader: `version` changes with each renewal. `first_seen` is in seconds of a monotonic clock."""

    version: str
    first_seen: float


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


def sighting(lease: Object | None, last: LeaseSighting | None, now: float) -> LeaseSighting | None:
    """None if nobody holds the Lease. Times in it are of other clocks, so only its changes count."""
    if lease is None or not (lease.get("spec") or {}).get("holderIdentity"):
        return None
    version = lease["metadata"]["resourceVersion"]
    return last if last is not None and last.version == version else LeaseSighting(version, now)


def lease_ends(lease: Object | None, seen: LeaseSighting | None, now: float) -> str:
    """The replica that may still lead; empty if none, because the Lease was not renewed for its whole duration."""
    if lease is None or seen is None:
        return ""
    spec = lease.get("spec") or {}
    if now - seen.first_seen > (spec.get("leaseDurationSeconds") or _DURATION):
        return ""
    return f"the Lease of {spec.get('holderIdentity')}"
