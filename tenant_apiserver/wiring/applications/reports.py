"""Tells which form of each ApplicationDefinition is served, and which HelmReleases no kind serves: by metrics, readyz,
the log, and Events about the definitions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily

from apiserver.meta.resource import Object
from controller.runtime.event_recorder import Event, Recorder, Regarding
from registry.application.catalogue import DefinitionState
from registry.application.feed import UnservedReleases
from registry.application.kinds import ApplicationKinds
from registry.cluster.interface import APPLICATIONDEFINITIONS

_logger = logging.getLogger("tenant_apiserver")
_ACTION = "Serve"


class ApplicationReports:
    """`unserved` returns what the router counts. The caller reports definitions as soon as they have been followed, and
    releases whenever they may have changed hands and are known."""

    def __init__(self, kinds: ApplicationKinds, unserved: Callable[[], Iterator[UnservedReleases]]) -> None:
        self._kinds = kinds
        self._unserved = unserved
        self._states: Mapping[str, DefinitionState] = {}
        self._told: Mapping[str, str | None] = {}
        self._regarding: dict[str, Regarding] = {}
        """By kind, so that an Event can be about a definition that is gone."""
        self.recorder = Recorder()

    def tell_states(self, definitions: Mapping[str, Object]) -> None:
        """Tells what has changed since the last call."""
        before = self._states
        self._states = {each.name: each for each in self._kinds.states}
        for state in self._kinds.states:
            definition = definitions.get(state.name)
            form = self._kinds.in_force.get(state.name)
            if definition is None:
                continue
            regarding = Regarding.of(APPLICATIONDEFINITIONS, definition)
            if form is not None:
                self._regarding[form.kind] = regarding
            self._tell(state, before.get(state.name), regarding)

    def _tell(self, state: DefinitionState, before: DefinitionState | None, regarding: Regarding) -> None:
        if state == before:
            return
        if state.why:
            _logger.warning('ApplicationDefinition "%s" %s', state.name, state)
            reason = "FormRefused" if state.state == "kept" else "NotServed"
            self.recorder.record(regarding, Event("Warning", reason, _ACTION, str(state)))
        elif before is not None and before.why:
            _logger.info('ApplicationDefinition "%s" %s again', state.name, state)
            self.recorder.record(regarding, Event("Normal", "Served", _ACTION, str(state)))

    def tell_unserved(self) -> None:
        """Tells of the kinds whose HelmReleases have ceased to be served, or are now for another reason."""
        found = {each.kind: each for each in self._unserved()}
        for kind, each in found.items():
            if kind in self._told and self._told[kind] == each.prefix:
                continue
            _logger.warning("%s", each)
            if (regarding := self._regarding.get(kind)) is not None:
                self.recorder.record(regarding, Event("Warning", "ReleasesNotServed", _ACTION, str(each)))
        self._told = {kind: each.prefix for kind, each in found.items()}

    def problems(self) -> Sequence[str]:
        """For readiness: the definitions whose latest form is not served, and the HelmReleases that no kind serves."""
        return [
            *(f"{each.name} {each}" for each in self._kinds.states if each.why),
            *(str(each) for each in self._unserved()),
        ]

    def summary(self) -> str:
        """For the log: how many kinds are served."""
        served, refused = len(self._kinds.served), sum(1 for each in self._kinds.states if each.why)
        return f"{served} kinds of applications" + (f" ({refused} definitions refused)" if refused else "")


class ApplicationCollector:
    """The metrics of definitions and of HelmReleases that no kind serves."""

    def __init__(
        self,
        registry: CollectorRegistry,
        kinds: ApplicationKinds,
        unserved: Callable[[], Iterator[UnservedReleases]],
    ) -> None:
        self._kinds = kinds
        self._unserved = unserved
        registry.register(self)

    def describe(self) -> Sequence[Metric]:
        """Called when the collector is registered, so that nothing is computed then."""
        return [_definitions(), _unserved()]

    def collect(self) -> Sequence[Metric]:
        definitions, unserved = _definitions(), _unserved()
        for state in self._kinds.states:
            definitions.add_metric([state.name, state.state], 1)
        for each in self._unserved():
            unserved.add_metric([each.kind], each.releases)
        return [definitions, unserved]


def _definitions() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "tenant_apiserver_application_definitions",
        "1 for each ApplicationDefinition, by state: served, kept (an earlier form is served, because the latest is "
        "refused) or refused.",
        labels=["definition", "state"],
    )


def _unserved() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "tenant_apiserver_application_releases_unserved",
        "HelmReleases that are labelled as objects of a kind, but that no kind serves.",
        labels=["kind"],
    )
