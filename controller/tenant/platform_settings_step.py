"""The step that reports wrong platform settings on the root Tenant, and as Events about the objects that have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from apiserver.meta.resource import Object
from controller.platform.package import PACKAGE, PACKAGES
from controller.platform.sources import CONFIGMAP_WORDS
from controller.runtime.conditions import Finding, find_condition
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.tenant.observe import ObservedTenant
from registry.cluster.interface import CONFIGMAPS, ClusterResource
from registry.tenant.summary import TenantSummary

SETTINGS_INVALID = "PlatformSettingsInvalid"
_ACTION = "ApplySettings"
# a longer message is truncated in the condition
_COMPARED = 1000


class SettingsProblems(Protocol):
    """The errors in the objects that the settings come from."""

    @property
    def problems(self) -> Sequence[str]:
        """Sentences that name each object and its wrong fields."""
        ...

    @property
    def package_problem(self) -> str:
        """The wrong fields of the Package; empty if it is in force or there is none."""
        ...

    @property
    def package(self) -> Object | None:
        """The Package, None if there is none."""
        ...

    @property
    def configmap_problem(self) -> str:
        """The wrong keys of Cozystack's ConfigMap; empty if it is in force or there is none."""
        ...

    @property
    def configmap(self) -> Object | None:
        """The ConfigMap, None if there is none."""
        ...

    def subscribe_to_problems(self, callback: Callable[[], None]) -> None:
        """Call `callback` when `problems` has changed."""
        ...


class PlatformSettingsStep:
    """Events are recorded only when the written condition changes, so that neither a restart nor a write that fails
    repeats them."""

    name = "platform settings"
    condition = SETTINGS_INVALID

    def __init__(self, *, problems: SettingsProblems, recorder: Recorder) -> None:
        self._problems = problems
        self._recorder = recorder
        # what is wrong with the Package and with the ConfigMap, as the last run found it
        self._found = ("", "")

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        if not observed.tenant.is_root:
            return ()
        self._found = self._problems.package_problem, self._problems.configmap_problem
        message = "; ".join(f"{each}; the previous settings stay in force" for each in self._problems.problems)
        return [Finding(SETTINGS_INVALID, "True", "WrongValue", message)] if message else ()

    def on_status_written(self, tenant: TenantSummary, before: object, conditions: Sequence[Object]) -> None:
        said = _message(before)
        if not tenant.is_root or said == _message(conditions):
            return
        # those of the condition: the objects may have changed while it was written
        package_problem, configmap_problem = self._found
        self._report(PACKAGES, self._problems.package, _event(said, PACKAGE, package_problem))
        self._report(CONFIGMAPS, self._problems.configmap, _event(said, CONFIGMAP_WORDS, configmap_problem))

    def _report(self, resource: ClusterResource, regarding: Object | None, event: Event | None) -> None:
        if event is not None and regarding is not None:
            self._recorder.record(Regarding.of(resource, regarding), event)


def deletion_event(changed: Sequence[str]) -> Event:
    """The Event about a Package that was deleted; `changed` has a phrase for each setting that changed with it."""
    note = "the Package was deleted, and the settings of the file are in force"
    if not changed:
        return Event("Normal", "SettingsOfFile", _ACTION, f"{note}: none is another one")
    return Event("Warning", "SettingsOfFile", _ACTION, f"{note}: {'; '.join(changed)}")


def _message(conditions: object) -> str:
    found = find_condition(conditions, SETTINGS_INVALID)
    return str(found.get("message", "")) if found is not None else ""


def _event(said: str, subject: str, problem: str) -> Event | None:
    """The Event about a change of the subject, as the condition `said` something else; `problem` is that of now."""
    if problem and problem[:_COMPARED] not in said:
        return Event("Warning", "InvalidSettings", _ACTION, f"{problem}; the previous settings stay in force")
    if not problem and subject in said:
        return Event("Normal", "SettingsInForce", _ACTION, "the settings are valid again and in force")
    return None
