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


class Marker:
    """A mutator that leaves its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def handles(self, attributes: Attributes) -> bool:
        return True

    async def admit(self, attributes: Attributes) -> Object:
        assert attributes.object is not None
        seen = [*attributes.object.get("seen", ()), self.name]
        return {**attributes.object, "seen": seen}


class Guard:
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


class Judge:
    def __init__(self, name: str, log: list[str], *, refuses: bool = False, handles: bool = True) -> None:
        self.name = name
        self._log = log
        self._refuses = refuses
        self._handles = handles

    def handles(self, attributes: Attributes) -> bool:
        return self._handles

    async def validate(self, attributes: Attributes) -> None:
        self._log.append(f"judge {self.name}")
        if self._refuses:
            raise errors.BadRequest(self.name)


async def test_mutators_run_in_order_and_see_what_came_before() -> None:
    given = tenant("alpha")

    admitted = await Chain([Marker("first"), Judge("no mutator", []), Marker("second")]).mutate(
        attributes("CREATE", given)
    )

    assert admitted["seen"] == ["first", "second"]
    assert "seen" not in given


async def test_guards_stay_until_the_write_is_done() -> None:
    log: list[str] = []
    chain = Chain([Guard("outer", log), Judge("a", log), Guard("inner", log), Judge("b", log)])

    async with chain.validating(attributes("CREATE", tenant("alpha"))):
        log.append("write")

    assert log == ["enter outer", "judge a", "enter inner", "judge b", "write", "leave inner", "leave outer"]


async def test_a_refusal_releases_the_guards_and_stops_the_chain() -> None:
    log: list[str] = []
    chain = Chain([Guard("outer", log), Judge("a", log, refuses=True), Judge("b", log)])

    with pytest.raises(errors.BadRequest, match="a"):
        async with chain.validating(attributes("CREATE", tenant("alpha"))):
            log.append("write")

    assert log == ["enter outer", "judge a", "leave outer"]


async def test_a_failed_write_releases_the_guards_and_keeps_its_error() -> None:
    log: list[str] = []

    with pytest.raises(errors.BadRequest, match="write"):
        async with Chain([Guard("outer", log)]).validating(attributes("CREATE", tenant("alpha"))):
            raise errors.BadRequest("write")

    assert log == ["enter outer", "leave outer"]


async def test_who_does_not_handle_a_request_is_not_asked() -> None:
    log: list[str] = []

    async with Chain([Judge("a", log, handles=False)]).validating(attributes("CREATE", tenant("alpha"))):
        pass

    assert log == []


async def test_every_plugin_that_was_asked_is_observed() -> None:
    seen: list[tuple[Any, ...]] = []

    def observe(*, name: str, operation: str, phase: Phase, rejected: bool, seconds: float) -> None:
        seen.append((name, operation, phase, rejected, seconds))

    ticks = iter((1.0, 1.5, 2.0, 4.0, 5.0, 6.0))
    chain = Chain(
        [Marker("m"), Judge("ok", []), Judge("no", [], refuses=True)], observe=observe, clock=lambda: next(ticks)
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
