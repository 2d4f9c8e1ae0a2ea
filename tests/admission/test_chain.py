from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from admission.chain import Chain, Phase
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.resource import Object
from tests.tenant_objects import attributes, tenant


class NameRecordingMutator:
    """A mutating plugin that records its name in the object."""

    def __init__(self, name: str) -> None:
        self.name = name

    def handles(self, attributes: Attributes) -> bool:
        return True

    async def admit(self, attributes: Attributes) -> Object:
        assert attributes.object is not None
        seen = [*attributes.object.get("seen", ()), self.name]
        return {**attributes.object, "seen": seen}


class RecordingGuard:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self._log = log

    def handles(self, attributes: Attributes) -> bool:
        return True

    @asynccontextmanager
    async def guard(self, attributes: Attributes) -> AsyncIterator[None]:
        self._log.append(f"enter {self.name}")
        try:
            yield
        finally:
            self._log.append(f"leave {self.name}")


class RecordingValidator:
    def __init__(self, name: str, log: list[str], *, rejects: bool = False, handles: bool = True) -> None:
        self.name = name
        self._log = log
        self._refuses = rejects
        self._handles = handles

    def handles(self, attributes: Attributes) -> bool:
        return self._handles

    async def validate(self, attributes: Attributes) -> None:
        self._log.append(f"validate {self.name}")
        if self._refuses:
            raise errors.BadRequest(self.name)


async def test_mutators_run_in_order_and_see_what_came_before() -> None:
    original = tenant("alpha")

    admitted = await Chain(
        [NameRecordingMutator("first"), RecordingValidator("not a mutator", []), NameRecordingMutator("second")]
    ).mutate(attributes("CREATE", original))

    assert admitted["seen"] == ["first", "second"]
    assert "seen" not in original


async def test_guards_are_released_after_the_write() -> None:
    log: list[str] = []
    chain = Chain(
        [
            RecordingGuard("outer", log),
            RecordingValidator("a", log),
            RecordingGuard("inner", log),
            RecordingValidator("b", log),
        ]
    )

    async with chain.validating(attributes("CREATE", tenant("alpha"))):
        log.append("write")

    assert log == ["enter outer", "validate a", "enter inner", "validate b", "write", "leave inner", "leave outer"]


async def test_a_rejection_releases_the_guards_and_stops_the_chain() -> None:
    log: list[str] = []
    chain = Chain(
        [RecordingGuard("outer", log), RecordingValidator("a", log, rejects=True), RecordingValidator("b", log)]
    )

    with pytest.raises(errors.BadRequest, match="a"):
        async with chain.validating(attributes("CREATE", tenant("alpha"))):
            log.append("write")

    assert log == ["enter outer", "validate a", "leave outer"]


async def test_a_failed_write_releases_the_guards_and_raises_its_error() -> None:
    log: list[str] = []

    with pytest.raises(errors.BadRequest, match="write"):
        async with Chain([RecordingGuard("outer", log)]).validating(attributes("CREATE", tenant("alpha"))):
            raise errors.BadRequest("write")

    assert log == ["enter outer", "leave outer"]


async def test_a_plugin_that_does_not_handle_the_request_is_not_called() -> None:
    log: list[str] = []

    async with Chain([RecordingValidator("a", log, handles=False)]).validating(attributes("CREATE", tenant("alpha"))):
        pass

    assert log == []


async def test_the_duration_of_every_plugin_call_is_observed() -> None:
    seen: list[tuple[Any, ...]] = []

    def observe(*, name: str, operation: str, phase: Phase, rejected: bool, seconds: float) -> None:
        seen.append((name, operation, phase, rejected, seconds))

    ticks = iter((1.0, 1.5, 2.0, 4.0, 5.0, 6.0))
    chain = Chain(
        [NameRecordingMutator("m"), RecordingValidator("ok", []), RecordingValidator("no", [], rejects=True)],
        observe=observe,
        clock=lambda: next(ticks),
    )
    await chain.mutate(attributes("CREATE", tenant("alpha")))
    with pytest.raises(errors.BadRequest):
        async with chain.validating(attributes("CREATE", tenant("alpha"))):
            pass

    assert seen == [
        ("m", "CREATE", "admit", False, 0.5),
        ("ok", "CREATE", "validate", False, 2.0),
        ("no", "CREATE", "validate", True, 1.0),
    ]
