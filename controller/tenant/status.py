"""Writes the status of a Tenant into one annotation of its HelmRelease, from which registry.tenant.convert reads it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Protocol, runtime_checkable

import orjson

from apiserver.meta.errors import StatusError
from apiserver.meta.object_meta import ANNOTATIONS_LIMIT
from apiserver.meta.resource import Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding, build_conditions, conditions_by_type, find_condition
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.tenant.event_messages import events_for_tenant_conditions
from controller.tenant.observe import ObservedTenant
from controller.tenant.quota.first_limits import SEEN_FIELD
from controller.tenant.readiness.parts import REFUSED, ready_finding
from controller.tenant.readiness.stored_status import read_status
from registry.cluster.interface import HELMRELEASES
from registry.names import FINDINGS_ANNOTATION, KIND, MAX_HOST, UNCONFIRMED_ANNOTATION
from registry.tenant.convert import API_VERSION
from registry.tenant.readiness import READY, reported_release, shown_conditions, with_release
from registry.tenant.summary import TenantSummary

COMPUTEPLANE = "computeplane"
# All conditions together share one annotation with a limited size.
_MAX_MESSAGE = 2048
_TIME = "lastTransitionTime"

# the second one is removed: the Tenant is confirmed before any controller acts on it
_WRITTEN = (FINDINGS_ANNOTATION, UNCONFIRMED_ANNOTATION)

_logger = logging.getLogger(__name__)


def render_tenant_status(
    observed: ObservedTenant,
    findings: Sequence[Finding],
    now: datetime,
    *,
    external_ips: int = 0,
    quotas_in_effect: bool = False,
) -> Object:
    """The JSON document of the annotation: the effective host, gateway and services with the namespaces that provide
    them, the number of external addresses if there are any, and the conditions. Ready does not count ReleaseReady:
    both are combined when the Tenant is read. `quotas_in_effect` is kept for later leaders, and not shown."""
    release = observed.release
    previous = read_status(release)
    status: Object = {"gateway": observed.gateway.as_object()}
    # a longer one, from a host that was written to a HelmRelease, is no domain, and would take the room of conditions
    if observed.host is not None and len(observed.host.value) <= MAX_HOST:
        status["host"] = observed.host.as_object()
    if services := _services(observed):
        status["services"] = services
    if external_ips:
        status["externalIPsCount"] = external_ips
    if quotas_in_effect:
        status[SEEN_FIELD] = True
    time = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = build_conditions(
        [*findings, ready_finding(observed, findings)],
        previous.get("conditions"),
        generation=release["metadata"].get("generation", 0),
        now=time,
        max_message=_MAX_MESSAGE,
    )
    status["conditions"] = with_shown_transition(conditions, previous.get("conditions"), release, time)
    return status


def with_shown_transition(conditions: list[Object], previous: object, release: Object, now: str) -> list[Object]:
    """The conditions, with the lastTransitionTime of Ready that clients shall see: `now` if its status is another one
    for them, and else that of before. They see it Unknown for a new generation, and lowered by what Flux reports."""
    before, after = _shown_ready(previous, release), _shown_ready(conditions, release)
    is_new = before.get("status") != after.get("status")
    time = now if is_new else before.get(_TIME)
    if not time or time == after.get(_TIME):
        return conditions
    return [{**each, _TIME: time} if each["type"] == READY else each for each in conditions]


def _shown_ready(conditions: object, release: Object) -> Mapping[str, Any]:
    return shown_conditions(conditions_by_type(conditions), release, _reported_by_flux(release))[READY]


def _reported_by_flux(release: Object) -> Mapping[str, Any] | None:
    return find_condition((release.get("status") or {}).get("conditions"), READY)


def fit_beside(status: Object, annotations: Mapping[str, str]) -> Object | None:
    """The status, without messages if that is necessary for the cluster to accept it beside the other annotations of
    the HelmRelease, which are the user's; None if there is no room for it at all."""
    others = {key: value for key, value in annotations.items() if key not in _WRITTEN}
    used = sum(len(key.encode()) + len(value.encode()) for key, value in others.items())
    room = ANNOTATIONS_LIMIT - used - len(FINDINGS_ANNOTATION)
    silent = {**status, "conditions": [{**each, "message": ""} for each in status["conditions"]]}
    return next((each for each in (status, silent) if len(_to_text(each).encode()) <= room), None)


def _to_text(status: Object) -> str:
    return orjson.dumps(status, option=orjson.OPT_SORT_KEYS).decode()


def _services(observed: ObservedTenant) -> Object:
    own = {COMPUTEPLANE: observed.tenant.namespace} if COMPUTEPLANE in observed.tenant.flags else {}
    return {name: owner for name, owner in {**observed.services.by_name(), **own}.items() if owner}


def _reported(status: Object, release: Object) -> Sequence[Object]:
    """The conditions of a document, which Events are about, with what Flux reports."""
    found = conditions_by_type(status.get("conditions"))
    return list(with_release(found, reported_release(release, _reported_by_flux(release))).values())


@runtime_checkable
class StatusListener(Protocol):
    def on_status_written(self, tenant: TenantSummary, before: object, conditions: Sequence[Object]) -> None:
        """Called after these conditions have been written. `before` are those of before, possibly malformed."""
        ...


class TenantStatusWriter:
    """`external_ips` counts the external addresses of a namespace. `recorder` gets events of changed conditions, and
    `listeners` record those about other objects. Both are called after the status has been written: a write that fails
    is repeated, and would repeat them. `quotas_in_effect` returns what the status of the root Tenant keeps."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        now: Callable[[], datetime],
        external_ips: Callable[[str], int] = lambda namespace: 0,
        recorder: Recorder | None = None,
        listeners: Sequence[StatusListener] = (),
        quotas_in_effect: Callable[[], bool] = lambda: False,
    ) -> None:
        self._writer = writer
        self._now = now
        self._external_ips = external_ips
        self._recorder = recorder or Recorder()
        self._listeners = tuple(listeners)
        self._quotas_in_effect = quotas_in_effect
        # statuses of before writes that have not been answered, by the uid of the HelmRelease
        self._unanswered: dict[str, Object] = {}

    async def write(self, observed: ObservedTenant, findings: Sequence[Finding]) -> None:
        """Write the status if it differs from the stored one. Raises Conflict if the HelmRelease has changed since."""
        count = self._external_ips(observed.tenant.namespace)
        rendered = render_tenant_status(
            observed,
            findings,
            self._now(),
            external_ips=count,
            quotas_in_effect=observed.tenant.is_root and self._quotas_in_effect(),
        )
        previous = read_status(observed.release)
        if rendered == previous:
            self._report_unanswered(observed, rendered, rendered)
            return
        present = observed.release["metadata"].get("annotations") or {}
        status = fit_beside(rendered, present)
        if status is None:
            _logger.warning("tenant %s/%s: its annotations leave no room for its status", *observed.tenant.key)
            return
        if status == previous:
            self._report_unanswered(observed, rendered, status)
            return
        annotations: Object = {FINDINGS_ANNOTATION: _to_text(status)}
        if UNCONFIRMED_ANNOTATION in present:
            annotations[UNCONFIRMED_ANNOTATION] = None
        uid = observed.release["metadata"].get("uid", "")
        try:
            await self._writer.patch(HELMRELEASES, observed.release, {"metadata": {"annotations": annotations}})
        except StatusError as e:
            if e.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                self._unanswered.setdefault(uid, previous)
            raise
        self._report(observed, self._unanswered.pop(uid, previous), rendered, status)

    def _report_unanswered(self, observed: ObservedTenant, rendered: Object, stored: Object) -> None:
        """Reports a status that is stored, although the cluster has not answered when it was written."""
        before = self._unanswered.pop(observed.release["metadata"].get("uid", ""), None)
        if before is not None:
            self._report(observed, before, rendered, stored)

    def _report(self, observed: ObservedTenant, previous: Object, rendered: Object, stored: Object) -> None:
        """`stored` is `rendered`, without messages if there was no room for them."""
        before, after = (_reported(each, observed.release) for each in (previous, rendered))
        for event in events_for_tenant_conditions(before, after):
            self._recorder.record(_regarding(observed), event)
        for listener in self._listeners:
            listener.on_status_written(observed.tenant, previous.get("conditions"), stored["conditions"])

    def report(self, observed: ObservedTenant, problem: str) -> None:
        """Records an Event about a problem for which no condition can be written."""
        self._recorder.record(_regarding(observed), Event("Warning", REFUSED, "Reconcile", problem))


def _regarding(observed: ObservedTenant) -> Regarding:
    """The Tenant as the object of an Event. Its uid is that of its HelmRelease."""
    key = observed.tenant.key
    uid = observed.release["metadata"].get("uid", "")
    return Regarding(api_version=API_VERSION, kind=KIND, namespace=key.namespace, name=key.name, uid=uid)
