"""The condition WorkloadsReady of applications, from the WorkloadMonitors that their labels name, kept in an annotation
of the HelmRelease (T39): clients see it change with a new resourceVersion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import orjson

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding, build_conditions
from controller.tenant.workloads_ready_step import is_operational, workloads_finding
from registry.application.identity import application_of
from registry.application.release_metadata import stored_status
from registry.cluster.event_handlers import ProjectionStore
from registry.cluster.interface import HELMRELEASES
from registry.cluster.object_store import ObjectLister
from registry.names import APPLICATION_STATUS_ANNOTATION

_CHECKED = "WorkloadMonitorCheck"
_MAX_MESSAGE = 2048


class ApplicationKey(NamedTuple):
    """An application, as the labels of its HelmRelease and its WorkloadMonitors name it."""

    namespace: str
    kind: str
    name: str


def application_key_of(obj: Object) -> ApplicationKey | None:
    """None if the labels name no application."""
    found = application_of(obj)
    if found is None or not found.name:
        return None
    return ApplicationKey(str(obj["metadata"].get("namespace", "")), found.kind, found.name)


class _MonitorOfApplication(NamedTuple):
    application: ApplicationKey
    operational: str


def _project(monitor: Object) -> _MonitorOfApplication | None:
    application = application_key_of(monitor)
    operational = is_operational(monitor)
    if application is None:
        return None
    return _MonitorOfApplication(application, "Unknown" if operational is None else str(operational))


class _MonitorStore(ProjectionStore[_MonitorOfApplication]):
    """Tells when the first complete list has been processed, too."""

    def __init__(
        self,
        *,
        on_change: Callable[[Key, _MonitorOfApplication | None, _MonitorOfApplication | None], None],
        on_listed: Callable[[], None],
    ) -> None:
        super().__init__(project=_project, on_change=on_change)
        self._on_listed = on_listed

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        await super().replace(items, rv)
        self._on_listed()


class MonitoredApplications:
    """The applications that WorkloadMonitors are about, and those whose HelmReleases say what monitors have said.

    `handler` is that of the informer of WorkloadMonitors; `observe` gets each HelmRelease and its changes. `on_change`
    is called with each application that has to be looked at.
    """

    def __init__(self, *, on_change: Callable[[ApplicationKey], None]) -> None:
        self.handler = _MonitorStore(on_change=self._changed, on_listed=self._list)
        self.listed = False
        """False while the cluster serves no WorkloadMonitors."""
        self._on_change = on_change
        self._monitors: dict[ApplicationKey, dict[str, str]] = {}
        self._with_status: set[ApplicationKey] = set()

    def of(self, application: ApplicationKey) -> Mapping[str, str]:
        """By name: "True", "False", or "Unknown" until Cozystack's controller has looked."""
        return self._monitors.get(application, {})

    def all(self) -> Iterable[ApplicationKey]:
        return {*self._monitors, *self._with_status}

    def observe(self, release: Object, deleted: bool) -> None:
        """Called for every HelmRelease of 40,000, and cheap for one that nothing monitors."""
        has_status = _stored_text(release) is not None
        if not has_status and not self._monitors:
            return
        application = application_key_of(release)
        if application is None:
            return
        if deleted:
            self._with_status.discard(application)
            return
        if has_status:
            self._with_status.add(application)
        if has_status or application in self._monitors:
            self._on_change(application)

    def _changed(self, key: Key, before: _MonitorOfApplication | None, after: _MonitorOfApplication | None) -> None:
        if before is not None:
            monitors = self._monitors[before.application]
            del monitors[key.name]
            if not monitors:
                del self._monitors[before.application]
        if after is not None:
            self._monitors.setdefault(after.application, {})[key.name] = after.operational
        for application in {each.application for each in (before, after) if each is not None}:
            self._on_change(application)

    def _list(self) -> None:
        self.listed = True
        for application in self.all():
            self._on_change(application)


def _stored_text(release: Object) -> str | None:
    annotations = release["metadata"].get("annotations")
    return annotations.get(APPLICATION_STATUS_ANNOTATION) if isinstance(annotations, dict) else None


def workloads_ready(monitors: Mapping[str, str]) -> Finding | None:
    """As cozystack-api reports it, with the names of what is not operational."""
    found = workloads_finding(monitors)
    return replace(found, reason=_CHECKED) if found is not None and found.status != "Unknown" else found


class WorkloadsReconciler:
    """Writes the annotation when the condition changes. `release_name` returns the name of the HelmRelease of an
    application, None if its kind is not served. While the cluster serves no WorkloadMonitors, what they said last
    stays."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        monitored: MonitoredApplications,
        releases: ObjectLister,
        release_name: Callable[[ApplicationKey], str | None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._writer = writer
        self._monitored = monitored
        self._releases = releases
        self._release_name = release_name
        self._now = now

    async def reconcile(self, key: ApplicationKey) -> None:
        name = self._release_name(key)
        release = self._releases.get(Key(key.namespace, name)) if name is not None else None
        if release is None or application_key_of(release) != key or not self._monitored.listed:
            return
        text = self._render(release, workloads_ready(self._monitored.of(key)))
        if text != _stored_text(release):
            changes = {"metadata": {"annotations": {APPLICATION_STATUS_ANNOTATION: text}}}
            await self._writer.patch(HELMRELEASES, release, changes)

    def _render(self, release: Object, finding: Finding | None) -> str | None:
        """The annotation, None for none. It has no generation: nothing of it is about the spec."""
        if finding is None:
            return None
        previous = stored_status(release["metadata"]).get("conditions")
        time = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = build_conditions([finding], previous, generation=0, now=time, max_message=_MAX_MESSAGE)
        for each in conditions:
            del each["observedGeneration"]
        return orjson.dumps({"conditions": conditions}).decode()
