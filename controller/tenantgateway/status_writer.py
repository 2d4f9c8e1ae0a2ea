"""Writes the status of TenantGateways if it changes, and records events for its conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import find_condition
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.tenantgateway.index import TenantGatewayIndex
from controller.tenantgateway.status import READY, ReconcileResult, render_tenantgateway_status
from registry.tenantgateway.types import TENANTGATEWAYS

_RECONCILE = "Reconcile"
# Conditions that require no action.
_INFORMATIONAL = frozenset(("AttachedElsewhere",))
# Reasons that a new Gateway normally has for a while.
_WAITING = frozenset(("GatewayNotAccepted", "GatewayNotProgrammed", "ListenersNotReady", "CertificatesNotReady"))


class StatusWriter:
    def __init__(
        self, *, writer: ClusterWriter, tenantgateways: TenantGatewayIndex, recorder: Recorder, now: Callable[[], str]
    ) -> None:
        self._writer = writer
        self._tenantgateways = tenantgateways
        self._recorder = recorder
        self._now = now

    async def write(self, obj: Object, result: ReconcileResult) -> None:
        """`obj` is the observed TenantGateway. Raises the cluster's StatusError."""
        status = render_tenantgateway_status(result, now=self._now())
        before = obj.get("status")
        if status == before:
            return
        written = await self._writer.write_status(TENANTGATEWAYS, obj, status)
        if written is None:
            return
        self._tenantgateways.record_write(written)
        regarding = Regarding.of(TENANTGATEWAYS, obj)
        for event in events_for_tenantgateway_conditions((before or {}).get("conditions"), status["conditions"]):
            self._recorder.record(regarding, event)


def events_for_tenantgateway_conditions(before: object, after: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
    """Yields an event for each condition that changed. `before` is the former value, which may be malformed."""
    for each in after:
        type_, status, reason, message = (str(each[field]) for field in ("type", "status", "reason", "message"))
        former = find_condition(before, type_)
        # the message of a waiting condition changes all the time
        compared = ("status", "reason") if reason in _WAITING else ("status", "reason", "message")
        if former is not None and all(former.get(field) == each[field] for field in compared):
            continue
        if type_ == READY:
            normal = status == "True" or reason in _WAITING
            yield Event("Normal" if normal else "Warning", reason, _RECONCILE, message)
        else:
            yield Event("Normal" if type_ in _INFORMATIONAL else "Warning", type_, _RECONCILE, message)
