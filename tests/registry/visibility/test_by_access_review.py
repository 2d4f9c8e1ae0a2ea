"""Who may see what, by asking the host place by place."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.context import User
from apiserver.storage.visibility import SightChange
from registry.visibility.by_access_review import ReviewedSights
from registry.visibility.visible_namespaces import Question

TENANTS = Question("apps.cozystack.io", "tenants")
NAMESPACES = Question("", "namespaces", by_name=True)
ALICE = User(name="alice", groups=("devs",))


@dataclass
class ClusterClient:
    """Allows what is in `allowed`: (user, resource, namespace, name)."""

    allowed: set[tuple[str, str, str, str]] = field(default_factory=set)
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)
    away: bool = False

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        assert attributes.verb == "get"
        question = attributes.user.name, attributes.resource, attributes.namespace, attributes.name
        self.asked.append(question)
        await asyncio.sleep(0)
        if self.away:
            raise ServiceUnavailable("away")
        return Decision(allowed=question in self.allowed)


def sights(cluster: ClusterClient, *questions: Question, interval: float = 60.0) -> ReviewedSights:
    return ReviewedSights(
        cluster, questions or (TENANTS,), places=lambda: ["tenant-a", "tenant-b"], version=lambda: 42, interval=interval
    )


@pytest.mark.parametrize(
    ("allowed", "seen"),
    [
        pytest.param(("tenants", "", ""), None, id="everywhere"),
        pytest.param(("tenants", "tenant-b", ""), frozenset(("tenant-b",)), id="in one namespace"),
        pytest.param(("namespaces", "tenant-a", "tenant-a"), frozenset(("tenant-a",)), id="a namespace by its name"),
        pytest.param(("pods", "tenant-a", ""), frozenset(), id="something else"),
    ],
)
async def test_the_host_says_where(allowed: tuple[str, str, str], seen: frozenset[str] | None) -> None:
    cluster = ClusterClient({("alice", *allowed)})
    assert (await sights(cluster, TENANTS, NAMESPACES).of(ALICE)).places == seen


async def test_what_was_said_holds_for_a_while_and_is_asked_once_for_many() -> None:
    cluster = ClusterClient()
    seers = sights(cluster)
    await asyncio.gather(*(seers.of(ALICE) for _ in range(10)))
    await seers.of(ALICE)
    assert cluster.asked == [("alice", "tenants", place, "") for place in ("", "tenant-a", "tenant-b")]


async def test_who_watches_hears_of_changes() -> None:
    cluster = ClusterClient()
    sight = await sights(cluster, interval=0.005).of(ALICE)
    heard: asyncio.Queue[SightChange] = asyncio.Queue()
    end = sight.subscribe(heard.put_nowait)
    cluster.allowed.add(("alice", "tenants", "tenant-a", ""))
    nothing, something = frozenset[str](), frozenset(("tenant-a",))
    assert await asyncio.wait_for(heard.get(), 5) == SightChange(nothing, nothing, something, 42)
    cluster.away = True
    asked = len(cluster.asked)
    while len(cluster.asked) < asked + 3:  # noqa: ASYNC110  the host is asked by a clock
        await asyncio.sleep(0)
    assert sight.places == something
    cluster.away = False
    cluster.allowed.clear()
    assert (await asyncio.wait_for(heard.get(), 5)).lost("tenant-a")
    end()


async def test_a_host_that_cannot_be_asked_is_an_error_and_no_empty_list() -> None:
    """API-27."""
    cluster = ClusterClient(away=True)
    with pytest.raises(ServiceUnavailable):
        await sights(cluster).of(ALICE)


async def test_of_the_past_nothing_is_known() -> None:
    assert (await sights(ClusterClient()).of(ALICE)).since(7, (0.0, 1.0)) is None


async def test_masters_are_not_asked_for() -> None:
    cluster = ClusterClient()
    assert (await sights(cluster).of(User(name="x", groups=("system:masters",)))).places is None
    assert cluster.asked == []
