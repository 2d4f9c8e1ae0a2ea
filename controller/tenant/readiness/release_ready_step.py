"""The condition ReleaseReady of a Tenant that asks for something that a chart installs.

The report of Flux is not stored: it is read from the HelmRelease with the Tenant (`registry.tenant.readiness`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding, find_condition
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.observe import ObservedTenant
from controller.tenant.readiness.stored_status import read_status
from controller.tenant.readiness.unanswered import PATIENCE_SECONDS, Unanswered, loop_time
from registry.names import SERVICE_FLAGS
from registry.tenant.readiness import RELEASE_READY, is_suspended, reported_release
from registry.tenant.summary import TenantSummary

NO_CONTROLLER = "NoController"
_CHART = "the chart of the tenant"


def wanted_of_release(tenant: TenantSummary, chart: ChartMode) -> Sequence[str]:
    """The things that the release has to install: the enabled services, or with `flux` at least the Tenant's chart."""
    flags = [flag for flag in SERVICE_FLAGS if flag in tenant.flags]
    return flags or ([_CHART] if chart == "flux" else [])


def release_finding(wanted: Sequence[str], release: Object, *, overdue: bool) -> Finding:
    """The finding that the reconciler stores. `overdue`: no controller has looked at the HelmRelease for a minute."""
    what, name = ", ".join(wanted), f"HelmRelease {release['metadata']['namespace']}/{release['metadata']['name']}"
    flags = " and ".join(f"spec.{flag}" for flag in wanted if flag != _CHART)
    otherwise = f", or set {flags} to false" if flags else ""
    if is_suspended(release):
        why, remedy = f"{name} is suspended", "resume it where Flux and the charts of Cozystack are"
    elif overdue:
        why = f"no controller has looked at {name} for {PATIENCE_SECONDS:.0f} s"
        remedy = "install Flux's helm-controller and the charts of Cozystack"
    else:
        message = f"waits for Flux to install {what}: {name} has not been looked at since its last change"
        return Finding(RELEASE_READY, "Unknown", "Pending", message)
    return Finding(RELEASE_READY, "False", NO_CONTROLLER, f"nobody installs {what}: {why}; {remedy}{otherwise}")


def is_reported(release: Object) -> bool:
    """True if Flux has reported on the current generation of the HelmRelease, which is not suspended."""
    ready = find_condition((release.get("status") or {}).get("conditions"), "Ready")
    return reported_release(release, ready) is not None


class ReleaseReadyStep:
    """Finding: ReleaseReady. The step writes no objects; `enqueue_after` makes it look again after some seconds."""

    name = "release"
    condition = RELEASE_READY

    def __init__(
        self,
        *,
        chart: Callable[[], ChartMode],
        enqueue_after: Callable[[Key, float], None],
        clock: Callable[[], float] = loop_time,
    ) -> None:
        self._chart = chart
        self._enqueue_after = enqueue_after
        self._unanswered = Unanswered(clock=clock)

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        wanted = wanted_of_release(observed.tenant, self._chart())
        if not wanted:
            self._unanswered.forget(observed.tenant.key)
            return []
        return [release_finding(wanted, observed.release, overdue=self._is_overdue(observed))]

    def _is_overdue(self, observed: ObservedTenant) -> bool:
        key, release = observed.tenant.key, observed.release
        if is_suspended(release) or is_reported(release):
            self._unanswered.forget(key)
            return False
        if _was_found_overdue(release):
            self._unanswered.forget(key)
            return True
        version = observed.tenant.uid, release["metadata"].get("generation")
        left = PATIENCE_SECONDS - self._unanswered.seconds(key, version)
        if left > 0:
            self._enqueue_after(key, left)
            return False
        return True


def _was_found_overdue(release: Object) -> bool:
    """True if the current generation has been found to have no controller before."""
    found: Mapping[str, object] | None = find_condition(read_status(release).get("conditions"), RELEASE_READY)
    if found is None or found.get("reason") != NO_CONTROLLER:
        return False
    return bool(found.get("observedGeneration") == release["metadata"].get("generation", 0))
