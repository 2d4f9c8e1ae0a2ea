"""Writes the status of a Tenant into one annotation of its HelmRelease, from which registry.tenant.convert reads it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from apiserver.meta.object_meta import ANNOTATIONS_LIMIT
from apiserver.meta.resource import Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding, build_conditions, find_condition, is_stale
from controller.runtime.event_recorder import Recorder, Regarding
from controller.tenant.bound_roles import ACCESS_READY
from controller.tenant.event_messages import events_for_conditions
from controller.tenant.finalizer import TERMINATING
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.namespace_step import NAMESPACE_READY
from controller.tenant.observe import ObservedTenant
from registry.cluster.interface import HELMRELEASES
from registry.names import FINDINGS_ANNOTATION, KIND, MAX_HOST
from registry.tenant.convert import API_VERSION

REFUSED = "Refused"
# All conditions together share one annotation with a limited size.
_MAX_MESSAGE = 2048

_logger = logging.getLogger(__name__)


def render_status(
    observed: ObservedTenant,
    findings: Sequence[Finding],
    now: datetime,
    *,
    chart: ChartMode = "none",
    external_ips: int = 0,
) -> Object:
    """The JSON document of the annotation: the effective host and gateway with the namespaces that provide them, the
    number of external addresses if there are any, and the conditions."""
    release = observed.release
    previous = read_status(release)
    status: Object = {"gateway": observed.gateway.model_dump(by_alias=True)}
    # a longer one, from a host that was written to a HelmRelease, is no domain, and would take the room of conditions
    if observed.host is not None and len(observed.host.value) <= MAX_HOST:
        status["host"] = observed.host.model_dump(by_alias=True)
    if external_ips:
        status["externalIPsCount"] = external_ips
    status["conditions"] = build_conditions(
        [*findings, *_ready(findings, release, chart)],
        previous.get("conditions"),
        generation=release["metadata"].get("generation", 0),
        now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        max_message=_MAX_MESSAGE,
    )
    return status


def fit_beside(status: Object, annotations: Mapping[str, str]) -> Object | None:
    """The status, without messages if that is necessary for the cluster to accept it beside the other annotations of
    the HelmRelease, which are the user's; None if there is no room for it at all."""
    others = {key: value for key, value in annotations.items() if key != FINDINGS_ANNOTATION}
    used = sum(len(key.encode()) + len(value.encode()) for key, value in others.items())
    room = ANNOTATIONS_LIMIT - used - len(FINDINGS_ANNOTATION)
    silent = {**status, "conditions": [{**each, "message": ""} for each in status["conditions"]]}
    return next((each for each in (status, silent) if len(_to_text(each).encode()) <= room), None)


def _to_text(status: Object) -> str:
    return orjson.dumps(status, option=orjson.OPT_SORT_KEYS).decode()


def _ready(findings: Sequence[Finding], release: Object, chart: ChartMode) -> list[Finding]:
    """The condition Ready: False if the Namespace is not ready, the cluster has rejected a write, or a role is missing.
    If Flux installs the chart, there is no finding otherwise: Flux's own condition Ready is shown."""
    by_type = {each.type: each for each in findings}
    if (terminating := by_type.get(TERMINATING)) is not None:
        return [Finding("Ready", "False", TERMINATING, terminating.message)]
    if (namespace := by_type.get(NAMESPACE_READY)) is not None and namespace.status != "True":
        return [Finding("Ready", namespace.status, namespace.reason, namespace.message)]
    if rejected := [each for each in findings if (each.status, each.reason) == ("False", REFUSED)]:
        return [Finding("Ready", "False", REFUSED, "; ".join(each.message for each in rejected))]
    if (access := by_type.get(ACCESS_READY)) is not None and access.status == "False":
        return [Finding("Ready", "False", access.reason, access.message)]
    if chart == "none":
        return [Finding("Ready", "True", "Reconciled", "the tenant is up to date")]
    flux_ready = find_condition((release.get("status") or {}).get("conditions"), "Ready")
    if flux_ready is None:
        return [Finding("Ready", "Unknown", "Pending", "Flux has not reported yet whether the chart is installed")]
    if is_stale(flux_ready, release):
        return [
            Finding("Ready", "Unknown", "Pending", "Flux has not observed the current generation of the tenant yet")
        ]
    return []


def read_status(release: Object) -> dict[str, Any]:
    """The document that was written before; empty if there is none or it is malformed."""
    text = (release["metadata"].get("annotations") or {}).get(FINDINGS_ANNOTATION)
    try:
        document = orjson.loads(text) if text else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


class TenantStatusWriter:
    """`external_ips` counts the external addresses of a namespace. `recorder` gets the events of changed conditions,
    after the status has been written."""

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
        """Write the status if it differs from the stored one. Raises Conflict if the HelmRelease has changed since."""
        count = self._external_ips(observed.tenant.namespace)
        rendered = render_status(observed, findings, self._now(), chart=self._chart(), external_ips=count)
        previous = read_status(observed.release)
        if rendered == previous:
            return
        status = fit_beside(rendered, observed.release["metadata"].get("annotations") or {})
        if status is None:
            _logger.warning("tenant %s/%s: its annotations leave no room for its status", *observed.tenant.key)
            return
        if status == previous:
            return
        changes = {"metadata": {"annotations": {FINDINGS_ANNOTATION: _to_text(status)}}}
        await self._writer.patch(HELMRELEASES, observed.release, changes)
        for event in events_for_conditions(previous.get("conditions"), rendered["conditions"]):
            self._recorder.record(_regarding(observed), event)


def _regarding(observed: ObservedTenant) -> Regarding:
    """The Tenant as the object of an Event. Its uid is that of its HelmRelease."""
    key = observed.tenant.key
    uid = observed.release["metadata"].get("uid", "")
    return Regarding(api_version=API_VERSION, kind=KIND, namespace=key.namespace, name=key.name, uid=uid)
