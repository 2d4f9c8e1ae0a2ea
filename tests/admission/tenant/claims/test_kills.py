"""A replica is killed at any of its steps during a write: the other one is blocked no longer than twice the timeout of
a write, and what the killed one may have stored is respected."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.tenant.claims.claim import EXPIRY_SECONDS
from admission.tenant.claims.unconfirmed_writes import LATE_SECONDS
from apiserver.meta import errors
from apiserver.meta.resource import Object
from tests.admission.tenant.claims.two_replicas import Call, World, change, check_consistent, create, delete, running
from tests.faults.support.sizes import size
from tests.tenant_objects import release
from tests.virtual_time import run_virtual

# the client's last retry, and the waits for the cache
_MARGIN_SECONDS = 5.0
PARENT = release("p", spec={"resourceQuotas": {"cpu": "4"}})

PAIRS = [
    pytest.param([], create("a", host="x.example"), create("b", host="x.example"), id="a host"),
    pytest.param(
        [PARENT],
        create("a", "tenant-p", resourceQuotas={"cpu": "3"}),
        create("b", "tenant-p", resourceQuotas={"cpu": "2"}),
        id="a quota",
    ),
    pytest.param(
        [PARENT],
        change("p", resourceQuotas={"cpu": "2"}),
        create("b", "tenant-p", resourceQuotas={"cpu": "3"}),
        id="a lower quota of the parent",
    ),
    pytest.param([release("p")], delete("p"), create("a", "tenant-p"), id="a deletion"),
]


@pytest.mark.parametrize(("stored", "killed", "other"), PAIRS)
@given(choices=st.lists(st.integers(0, 5), max_size=30), kill_at=st.integers(0, 25))
@settings(max_examples=size(short=15, full=300))
def test_a_kill_blocks_others_for_a_limited_time(
    stored: Sequence[Object], killed: Call, other: Call, choices: Sequence[int], kill_at: int
) -> None:
    async def main() -> None:
        async with running(*stored, choices=choices) as world:
            turns, (one, two) = world.turns, world.servers

            def kill(step: int) -> None:
                if step == kill_at:
                    turns.kill("one")

            await turns.play({"one": killed.send(one)}, before_step=kill)
            turns.kill("one")
            loop = asyncio.get_running_loop()
            began = loop.time()
            # a StatusError is a verdict: the killed replica's write is stored
            with suppress(errors.Forbidden, errors.NotFound, errors.Invalid):
                await other.send_until_decided(two)
            assert loop.time() - began < EXPIRY_SECONDS + _MARGIN_SECONDS
            # what the killed replica had sent is stored, or never will be
            check_consistent(world)

    run_virtual(main)


# the second write of each pair never needs a retry by its own client to find out about the first one
SIMULTANEOUS = [
    *PAIRS,
    pytest.param([], create("a"), create("b", host="a.example.org"), id="an inherited host"),
    pytest.param([], create("b", host="a.example.org"), create("a"), id="a host that another tenant inherits"),
    pytest.param(
        [release("p"), release("b", spec={"host": "c.x.example"})],
        change("p", host="x.example"),
        create("c", "tenant-p"),
        id="a changed host that a new tenant inherits",
    ),
    pytest.param(
        [release("p"), release("b", spec={"host": "c.x.example"})],
        create("c", "tenant-p"),
        change("p", host="x.example"),
        id="a new tenant that inherits a changed host",
    ),
    pytest.param([release("p")], create("a", "tenant-p"), delete("p"), id="a child of a deleted tenant"),
]


async def play_with_kill(world: World, killed: Call, other: Call, kill_at: int) -> None:
    """Sends both writes at once, kills the first one's replica at a step, and repeats the second one after a 429. If it
    succeeds, it is never taken back."""
    turns, (one, two) = world.turns, world.servers

    def kill(step: int) -> None:
        if step == kill_at:
            turns.kill("one")

    _, result = await turns.play({"one": killed.send(one), "two": other.send(two)}, before_step=kill)
    turns.kill("one")
    if isinstance(result, errors.TooManyRequests):
        with suppress(errors.Forbidden, errors.NotFound, errors.Invalid):
            result = await other.send_until_decided(two)
    await asyncio.sleep(LATE_SECONDS + _MARGIN_SECONDS)
    check_consistent(world)
    if not isinstance(result, BaseException):
        assert other.is_stored(world)


@pytest.mark.parametrize(("stored", "killed", "other"), SIMULTANEOUS)
@given(choices=st.lists(st.integers(0, 5), max_size=60), kill_at=st.integers(0, 25))
@settings(max_examples=size(short=20, full=500))
def test_never_both_after_a_kill(
    stored: Sequence[Object], killed: Call, other: Call, choices: Sequence[int], kill_at: int
) -> None:
    async def main() -> None:
        async with running(*stored, choices=choices) as world:
            await play_with_kill(world, killed, other, kill_at)

    run_virtual(main)
