"""The step that reports on the publishing Tenant which of the platform's services are not served."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Object
from controller.platform.package import PACKAGES
from controller.publishing.guard import PublishingGuard
from controller.publishing.verdicts import PublishingVerdict
from controller.runtime.conditions import Finding, find_condition
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.tenant.observe import ObservedTenant
from registry.names import ROOT_NAMESPACE
from registry.tenant.summary import TenantSummary

PUBLISHING_READY = "PublishingReady"
NOT_SERVED = "NotServed"
_NO_TENANT = "NoPublishingTenant"
_ACTION = "Publish"


def publishing_finding(verdicts: Sequence[PublishingVerdict]) -> Finding | None:
    """None if no service is asked for. Names every service that is not served, with the reason, and every route of
    another that is in the place of one of ours."""
    if not verdicts:
        return None
    left = [each.left for each in verdicts if each.left]
    note = f"; not ours, and left as they are: {', '.join(left)}" if left else ""
    missing = [str(each) for each in verdicts if not each.served]
    if missing:
        return Finding(PUBLISHING_READY, "False", NOT_SERVED, "; ".join(missing) + note)
    served = ", ".join(each.service for each in verdicts)
    return Finding(PUBLISHING_READY, "True", "Served", f"served: {served}{note}")


class PublishingStep:
    """It does not count for Ready. The root Tenant also has the condition if a setting names a publisher that is no
    Tenant: charts read both, as `expose-ingress` and `expose-ingress-admin`. Events about the platform's Package are
    recorded when the condition changes."""

    name = "publishing"
    condition = PUBLISHING_READY

    def __init__(self, *, guard: PublishingGuard, package: Callable[[], Object | None], recorder: Recorder) -> None:
        self._guard = guard
        self._package = package
        self._recorder = recorder

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        found = self._finding(observed)
        return () if found is None else [found]

    def on_status_written(self, tenant: TenantSummary, before: object, conditions: Sequence[Object]) -> None:
        package, found = self._package(), find_condition(conditions, PUBLISHING_READY)
        if package is None or found is None:
            return
        event = _event(find_condition(before, PUBLISHING_READY) or {}, found)
        if event is not None:
            self._recorder.record(Regarding.of(PACKAGES, package), event)

    def _finding(self, observed: ObservedTenant) -> Finding | None:
        publisher = self._guard.tenant
        is_publisher = publisher is not None and observed.tenant.key == publisher.key
        found = publishing_finding(self._guard.verdicts()) if is_publisher else None
        problems = self._guard.wrong_publishers() if observed.tenant.namespace == ROOT_NAMESPACE else ()
        if not problems:
            return found
        missing = [found.message] if found is not None and found.status == "False" else []
        return Finding(PUBLISHING_READY, "False", _NO_TENANT, "; ".join([*problems, *missing]))


def _event(before: Mapping[str, Any], now: Mapping[str, Any]) -> Event | None:
    """The Event about a change of the condition: it is False, with another message than before, or no longer False."""
    if (before.get("status"), before.get("message")) == (now["status"], now["message"]):
        return None
    if now["status"] == "False":
        return Event("Warning", now["reason"], _ACTION, now["message"])
    return Event("Normal", now["reason"], _ACTION, now["message"]) if before.get("status") == "False" else None
