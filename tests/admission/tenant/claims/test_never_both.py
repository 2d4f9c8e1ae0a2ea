"""Two replicas, interleaved at every call, response and event: of two writes that exclude each other, never both are
stored, and after the retries that a 429 requests exactly one is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from tests.admission.tenant.claims.two_replicas import Call, World, change, check_consistent, create, delete, running
from tests.faults.support.sizes import size
from tests.tenant_objects import release
from tests.virtual_time import run_virtual

CPU_4 = {"resourceQuotas": {"cpu": "4"}}
PARENT = release("p", spec=CPU_4)

PAIRS = [
    pytest.param([], create("a", host="x.example"), create("b", host="x.example"), id="two explicit hosts"),
    pytest.param([], create("a"), create("b", host="a.example.org"), id="an explicit host and a derived one"),
    pytest.param(
        [release("a")],
        change("a", host="x.example"),
        create("b", host="x.example"),
        id="the host of an existing tenant and of a new one",
    ),
    pytest.param(
        [release("a", spec={"host": "x.example"}), release("b")],
        change("a", host="y.example"),
        change("b", host="y.example"),
        id="two changes to one host",
    ),
    pytest.param(
        [release("p"), release("b", spec={"host": "c.x.example"})],
        change("p", host="x.example"),
        create("c", "tenant-p"),
        id="a changed host, and a new tenant that inherits it and collides",
    ),
    pytest.param(
        [PARENT],
        create("a", "tenant-p", resourceQuotas={"cpu": "3"}),
        create("b", "tenant-p", resourceQuotas={"cpu": "2"}),
        id="two creates for the last of a quota",
    ),
    pytest.param(
        [PARENT, release("a", "tenant-p", spec={"resourceQuotas": {"cpu": "1"}})],
        change("a", "tenant-p", resourceQuotas={"cpu": "3"}),
        create("b", "tenant-p", resourceQuotas={"cpu": "2"}),
        id="a raise and a create for the last of a quota",
    ),
    pytest.param(
        [PARENT],
        change("p", resourceQuotas={"cpu": "2"}),
        create("b", "tenant-p", resourceQuotas={"cpu": "3"}),
        id="a lower quota of the parent and a create that needs it",
    ),
    pytest.param(
        [PARENT, release("q", "tenant-p")],
        create("a", "tenant-p", resourceQuotas={"cpu": "3"}),
        create("b", "tenant-p-q", resourceQuotas={"cpu": "2"}),
        id="creates on two levels below one quota",
    ),
    pytest.param([release("p")], delete("p"), create("a", "tenant-p"), id="a deletion and a child"),
    pytest.param(
        [release("p", spec={"host": "p.example"})],
        delete("p"),
        create("a", "tenant-p", host="a.example"),
        id="a deletion and a child with a host",
    ),
]


def check(world: World, results: Sequence[Object | BaseException]) -> None:
    succeeded = [each for each in results if not isinstance(each, BaseException)]
    unexpected = [each for each in results if isinstance(each, BaseException) and not isinstance(each, StatusError)]
    assert not unexpected
    assert len(succeeded) < 2
    check_consistent(world)


@pytest.mark.parametrize(("stored", "first", "second"), PAIRS)
@given(choices=st.lists(st.integers(0, 5), max_size=60))
@settings(max_examples=size(short=20, full=500))
def test_never_both(stored: Sequence[Object], first: Call, second: Call, choices: Sequence[int]) -> None:
    async def main() -> None:
        async with running(*stored, choices=choices) as world:
            one, two = world.servers
            results = await world.turns.play({"one": first.send(one), "two": second.send(two)})
            check(world, results)
            if all(isinstance(each, BaseException) for each in results):
                # both clients try again, one after the other
                results = [await settled(first, world, 0), await settled(second, world, 1)]
                check(world, results)
            assert any(not isinstance(each, BaseException) for each in results)

    run_virtual(main)


async def settled(call: Call, world: World, number: int) -> Object | BaseException:
    try:
        return await call.send_until_decided(world.servers[number])
    except StatusError as e:
        return e
