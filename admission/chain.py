"""The admission chain: mutating plugins run first, then guards and validating plugins, each in the order of the list.

A guard is released only when the write is done, so an admitted object is stored before the next request is validated
(API-18).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Literal, Protocol, runtime_checkable

from apiserver.admission import Attributes, Operation
from apiserver.meta.resource import Object

Phase = Literal["admit", "validate"]


class Plugin(Protocol):
    @property
    def name(self) -> str: ...

    def handles(self, attributes: Attributes) -> bool:
        """Reports whether the plugin applies to the request. Cheap, and without side effects."""
        ...


@runtime_checkable
class MutatingPlugin(Plugin, Protocol):
    async def admit(self, attributes: Attributes) -> Object | None:
        """Returns the object of the request, or a changed copy of it; None on DELETE. Raises StatusError to reject the
        request."""
        ...


@runtime_checkable
class GuardingPlugin(Plugin, Protocol):
    def guard(self, attributes: Attributes) -> AbstractAsyncContextManager[None]:
        """A context that is entered before the following plugins run, and exited when the write is done. Raises
        StatusError."""
        ...


@runtime_checkable
class ValidatingPlugin(Plugin, Protocol):
    async def validate(self, attributes: Attributes) -> None:
        """Raises StatusError to reject the request."""
        ...


class DurationObserver(Protocol):
    """Receives the duration of each call of a plugin, for the metric
    apiserver_admission_controller_admission_duration_seconds."""

    def __call__(self, *, name: str, operation: str, phase: Phase, rejected: bool, seconds: float) -> None: ...


def ignore_observation(*, name: str, operation: str, phase: Phase, rejected: bool, seconds: float) -> None:
    """A DurationObserver that records nothing."""


class _ValidatingPhasePlugin:
    """A plugin of the validating phase, with the interfaces that it implements."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.guarding = plugin if isinstance(plugin, GuardingPlugin) else None
        self.validating = plugin if isinstance(plugin, ValidatingPlugin) else None


class Chain:
    """Implements apiserver.admission.Admission (WIRE-H1, WIRE-H3)."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        *,
        observe: DurationObserver = ignore_observation,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # isinstance() with a Protocol is slow, and its result does not change
        self._mutating = tuple(plugin for plugin in plugins if isinstance(plugin, MutatingPlugin))
        self._validating_phase = tuple(
            _ValidatingPhasePlugin(plugin)
            for plugin in plugins
            if isinstance(plugin, GuardingPlugin | ValidatingPlugin)
        )
        self._observe = observe
        self._clock = clock

    async def mutate(self, attributes: Attributes) -> Object:
        admitted = await self._run_mutating(attributes)
        assert admitted is not None
        return admitted

    async def _run_mutating(self, attributes: Attributes) -> Object | None:
        for plugin in self._mutating:
            if plugin.handles(attributes):
                with self._observed(plugin, attributes, "admit"):
                    admitted = await plugin.admit(attributes)
                if admitted is not attributes.object:
                    attributes = dataclasses.replace(attributes, object=admitted)
        return attributes.object

    @asynccontextmanager
    async def validating(self, attributes: Attributes) -> AsyncIterator[None]:
        if attributes.operation == "DELETE":
            # a deletion has no new object, but mutating plugins may still reject it, and they run first
            await self._run_mutating(attributes)
        async with AsyncExitStack() as guards:
            for step in self._validating_phase:
                if not step.plugin.handles(attributes):
                    continue
                with self._observed(step.plugin, attributes, "validate"):
                    if step.guarding is not None:
                        await guards.enter_async_context(step.guarding.guard(attributes))
                    if step.validating is not None:
                        await step.validating.validate(attributes)
            yield

    def _observed(self, plugin: Plugin, attributes: Attributes, phase: Phase) -> _ObservedCall:
        return _ObservedCall(self._observe, self._clock, plugin.name, attributes.operation, phase)


class _ObservedCall:
    """A context that observes the duration of a call. Not a generator: a write has some twenty calls, and most plugins
    take less time than `contextmanager` does."""

    __slots__ = ("_clock", "_name", "_observe", "_operation", "_phase", "_started")

    def __init__(
        self, observe: DurationObserver, clock: Callable[[], float], name: str, operation: Operation, phase: Phase
    ) -> None:
        self._observe = observe
        self._clock = clock
        self._name = name
        self._operation = operation
        self._phase = phase

    def __enter__(self) -> None:
        self._started = self._clock()

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        self._observe(
            name=self._name,
            operation=self._operation,
            phase=self._phase,
            rejected=kind is not None,
            seconds=self._clock() - self._started,
        )
