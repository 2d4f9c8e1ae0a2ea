"""The write gate is open until the deadline of the lease, and cancels writes that outlast it."""

from __future__ import annotations

import asyncio

import pytest

from controller.runtime.write_gate import LeaseGate, NotLeading, OpenGate
from tests.virtual_time import run_virtual


async def test_a_gate_that_was_never_opened_is_closed() -> None:
    with pytest.raises(NotLeading):
        async with LeaseGate().writing():
            pytest.fail("the write was sent")


def test_a_gate_closes_at_its_deadline() -> None:
    async def main() -> list[bool]:
        loop = asyncio.get_running_loop()
        gate = LeaseGate(clock=loop.time)
        gate.open_until(10)
        async with gate.writing():
            pass
        states = [gate.is_open]
        await asyncio.sleep(10)
        with pytest.raises(NotLeading):
            async with gate.writing():
                pytest.fail("the write was sent")
        return [*states, gate.is_open]

    assert run_virtual(main) == [True, False]


def test_a_write_that_outlasts_the_lease_is_cancelled() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        gate = LeaseGate(clock=loop.time)
        gate.open_until(10)
        await asyncio.sleep(8)
        with pytest.raises(NotLeading):
            async with gate.writing():
                await asyncio.sleep(60)
        return loop.time()

    assert run_virtual(main) == 10


def test_a_renewed_lease_gives_a_write_more_time() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        gate = LeaseGate(clock=loop.time)
        gate.open_until(10)
        loop.call_later(5, gate.open_until, 20)
        async with gate.writing():
            await asyncio.sleep(15)
        return loop.time()

    assert run_virtual(main) == 15


def test_closing_the_gate_cancels_writes_at_once() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        gate = LeaseGate(clock=loop.time)
        gate.open_until(10)
        loop.call_later(3, gate.close)
        with pytest.raises(NotLeading):
            async with gate.writing():
                await asyncio.sleep(60)
        return loop.time()

    assert run_virtual(main) == 3


async def test_an_error_of_the_write_is_raised_as_it_is() -> None:
    gate = LeaseGate(clock=lambda: 0.0)
    gate.open_until(10)

    with pytest.raises(ValueError, match="refused"):
        async with gate.writing():
            raise ValueError("refused")


async def test_the_open_gate_lets_every_write_through() -> None:
    async with OpenGate().writing():
        pass
