"""What was found of a Tenant, in one annotation of its HelmRelease; registry.tenant.convert reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from apiserver.meta.resource import Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding, build_conditions, find_condition, is_stale
from controller.runtime.event_recorder import Recorder, Regarding
from controller.tenant.event_messages import events_for_conditions
from controller.tenant.finalizer import TERMINATING
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.namespace_step import NAMESPACE_READY
from controller.tenant.observe import ObservedTenant
from registry.cluster.interface import HELMRELEASES
from registry.names import FINDINGS_ANNOTATION, KIND
from registry.tenant.convert import API_VERSION

REFUSED = "Refused"


def render_status(
    observed: ObservedTenant,
    findings: Sequence[Finding],
    now: datetime,
    *,
    chart: ChartMode = "none",
    external_ips: int = 0,
) -> Object:
    """The document: effective host and gateway with the namespaces that provide them, the number of external
    addresses where there are any, and conditions."""
    release = observed.release
    before = read_status(release)
    status: Object = {"gateway": observed.gateway.model_dump(by_alias=True)}
    if observed.host is not None:
        status["host"] = observed.host.model_dump(by_alias=True)
    if external_ips:
        status["externalIPsCount"] = external_ips
    status["conditions"] = build_conditions(
        [*findings, *_ready(findings, release, chart)],
        before.get("conditions"),
        generation=release["metadata"].get("generation", 0),
        now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    return status


def _ready(findings: Sequence[Finding], release: Object, chart: ChartMode) -> list[Finding]:
    """Not ready if the Namespace is not, or if the host refused something. With Flux, what is not our fault is Flux's
    to say, in its own condition."""
    by_type = {each.type: each for each in findings}
    if (ending := by_type.get(TERMINATING)) is not None:
        return [Finding("Ready", "False", TERMINATING, ending.message)]
    if (namespace := by_type.get(NAMESPACE_READY)) is not None and namespace.status != "True":
        return [Finding("Ready", namespace.status, namespace.reason, namespace.message)]
    if refused := [each for each in findings if (each.status, each.reason) == ("False", REFUSED)]:
        return [Finding("Ready", "False", REFUSED, "; ".join(each.message for each in refused))]
    if chart == "none":
        return [Finding("Ready", "True", "Reconciled", "the tenant is as wanted")]
    said = find_condition((release.get("status") or {}).get("conditions"), "Ready")
    if said is None:
        return [Finding("Ready", "Unknown", "Pending", "Flux has not said yet whether the chart is installed")]
    if is_stale(said, release):
        return [Finding("Ready", "Unknown", "Pending", "Flux has not yet seen the tenant as it is now")]
    return []


def read_status(release: Object) -> dict[str, Any]:
    """What was written before; empty for what is damaged."""
    text = (release["metadata"].get("annotations") or {}).get(FINDINGS_ANNOTATION)
    try:
        document = orjson.loads(text) if text else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


class TenantStatusWriter:
    """`external_ips` counts the external addresses of a namespace. What became of the conditions is told to
    `recorder`, once it is written."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        now: Callable[[], datetime],
        chart: Callable[[], ChartMode] = lambda: "none",
        external_ips: Callable[[str], int] = lambda namespace: 0,
        recorder: Recorder | None = None,
    ) -> None:
        self._writer = writer
        self._now = now
        self._chart = chart
        self._external_ips = external_ips
        self._recorder = recorder or Recorder()

    async def write(self, observed: ObservedTenant, findings: Sequence[Finding]) -> None:
        """Write what was found, if it is not what is there. Raises Conflict if the HelmRelease moved on."""
        count = self._external_ips(observed.tenant.namespace)
        status = render_status(observed, findings, self._now(), chart=self._chart(), external_ips=count)
        before = read_status(observed.release)
        if status == before:
            return
        text = orjson.dumps(status, option=orjson.OPT_SORT_KEYS).decode()
        changes = {"metadata": {"annotations": {FINDINGS_ANNOTATION: text}}}
        await self._writer.patch(HELMRELEASES, observed.release, changes)
        for occurrence in events_for_conditions(before.get("conditions"), status["conditions"]):
            self._recorder.record(_regarding(observed), occurrence)


def _regarding(observed: ObservedTenant) -> Regarding:
    """The Tenant, whose uid is its HelmRelease's."""
    key = observed.tenant.key
    uid = observed.release["metadata"].get("uid", "")
    return Regarding(api_version=API_VERSION, kind=KIND, namespace=key.namespace, name=key.name, uid=uid)
