"""The processor time of an answer does not grow with the number of Tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from apiserver.meta.resource import Key
from tests.cpu_time import least_ratio
from tests.registry.explain.explain_world import ALICE, Everything, ExplainWorld, InNamespaces

_HOST = "host/shop.alice.example.org"
_MANY = 10_000


def _answers(count: int, authorizer: Everything | InNamespaces) -> Callable[[str], Awaitable[bytes]]:
    """Of a world with `count` Tenants beside alice, and as many below her."""
    tenants: dict[Key, dict[str, Any]] = {Key("tenant-root", "root"): {}, ALICE: {}}
    tenants |= {Key("tenant-root", f"t{number}"): {} for number in range(count)}
    tenants |= {Key("tenant-alice", f"t{number}"): {} for number in range(count)}
    return ExplainWorld(tenants, authorizer=authorizer).started()


@pytest.mark.parametrize(
    "authorizer", [Everything(), InNamespaces({"tenant-alice"})], ids=["all are visible", "the own ones are visible"]
)
def test_an_answer_adds_up_no_more_quantities_than_other_requests_can_wait_for(
    authorizer: Everything | InNamespaces,
) -> None:
    def answer(children: int) -> str:
        quotas = {"cpu": "900", "memory": "9Ti"}
        tenants: dict[Key, dict[str, Any]] = {Key("tenant-root", "root"): {}, ALICE: {"resourceQuotas": quotas}}
        for number in range(children):
            own = {"cpu": f"{number + 1}m", "memory": f"{number + 1}Ki"}
            tenants[Key("tenant-alice", f"t{number}")] = {"resourceQuotas": own}
        return asyncio.run(_tell(ExplainWorld(tenants, authorizer=authorizer)))

    assert "declare 500500m" in answer(1_000)
    assert "too many tenants are below to add up here what they declare" in answer(1_001)


async def _tell(world: ExplainWorld) -> str:
    return (await world.started()("tenant")).decode()


@pytest.mark.parametrize(
    "authorizer", [Everything(), InNamespaces({"tenant-alice"})], ids=["all are visible", "all are hidden"]
)
def test_an_answer_costs_the_same_among_many_tenants(authorizer: Everything | InNamespaces) -> None:
    many, few = _answers(_MANY, authorizer), _answers(10, authorizer)

    async def ask(explain: Callable[[str], Awaitable[bytes]]) -> None:
        for _ in range(3):
            for about in ("tenant", _HOST, "host/t7.example.org", "namespace/tenant-t7", "user/eve"):
                await explain(about)

    with asyncio.Runner() as runner:
        assert least_ratio(lambda: runner.run(ask(many)), lambda: runner.run(ask(few)), below=2) < 2
