"""The admission chain: mutators first, then guards and validators, each in the order in which they were given.

A guard is left only when the write is done: what was judged is stored before the next request is judged (API-18).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Literal, Protocol, runtime_checkable

from apiserver.admission import Attributes
from apiserver.meta.resource import Object

Phase = Literal["admit", "validate"]


class Plugin(Protocol):
    @property
    def name(self) -> str: ...

    def handles(self, attributes: Attributes) -> bool:
        """Whether the request concerns the plugin. Cheap, and without side effects."""
        ...


@runtime_checkable
class Mutating(Plugin, Protocol):
    async def admit(self, attributes: Attributes) -> Object | None:
        """The object to go on with: the given one, which on DELETE is None, or a changed copy. Raises StatusError to
        refuse."""
        ...


@runtime_checkable
class Guarding(Plugin, Protocol):
    def guard(self, attributes: Attributes) -> AbstractAsyncContextManager[None]:
        """Held from here until the write is done, around the validators that come later. Raises StatusError."""
        ...


@runtime_checkable
class Validating(Plugin, Protocol):
    async def validate(self, attributes: Attributes) -> None:
        """Raises StatusError to refuse."""
        ...


class Observer(Protocol):
    """Where the time that plugins take goes: apiserver_admission_controller_admission_duration_seconds."""

    def __call__(self, *, name: str, operation: str, phase: Phase, rejected: bool, seconds: float) -> None: ...


def unobserved(*, name: str, operation: str, phase: Phase, rejected: bool, seconds: float) -> None:
    """An Observer that keeps nothing."""


class _Judge:
    """A plugin of the validating phase, by what it can do."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.guarding = plugin if isinstance(plugin, Guarding) else None
        self.validating = plugin if isinstance(plugin, Validating) else None


class Chain:
    """Implements apiserver.admission.Admission (WIRE-H1, WIRE-H3)."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        *,
        observe: Observer = unobserved,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # asking a Protocol is slow, and the answer does not change
        self._mutating = tuple(plugin for plugin in plugins if isinstance(plugin, Mutating))
        self._judging = tuple(_Judge(plugin) for plugin in plugins if isinstance(plugin, Guarding | Validating))
        self._observe = observe
        self._clock = clock

    async def mutate(self, attributes: Attributes) -> Object:
        admitted = await self._admit(attributes)
        assert admitted is not None
        return admitted

    async def _admit(self, attributes: Attributes) -> Object | None:
        for plugin in self._mutating:
            if plugin.handles(attributes):
                with self._observed(plugin, attributes, "admit"):
                    admitted = await plugin.admit(attributes)
                attributes = dataclasses.replace(attributes, object=admitted)
        return attributes.object

    @asynccontextmanager
    async def validating(self, attributes: Attributes) -> AsyncIterator[None]:
        if attributes.operation == "DELETE":
            # there is nothing to change, but mutating plugins may refuse, and come first all the same
            await self._admit(attributes)
        async with AsyncExitStack() as guards:
            for judge in self._judging:
                if not judge.plugin.handles(attributes):
                    continue
                with self._observed(judge.plugin, attributes, "validate"):
                    if judge.guarding is not None:
                        await guards.enter_async_context(judge.guarding.guard(attributes))
                    if judge.validating is not None:
                        await judge.validating.validate(attributes)
            yield

    @contextmanager
    def _observed(self, plugin: Plugin, attributes: Attributes, phase: Phase) -> Iterator[None]:
        started = self._clock()
        rejected = True
        try:
            yield
            rejected = False
        finally:
            self._observe(
                name=plugin.name,
                operation=attributes.operation,
                phase=phase,
                rejected=rejected,
                seconds=self._clock() - started,
            )
