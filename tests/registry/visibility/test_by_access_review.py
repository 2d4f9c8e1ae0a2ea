"""Who may see what, by asking the host place by place."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.context import User
from apiserver.storage.visibility import VisibilityChange
from registry.visibility.by_access_review import AccessReviewVisibility
from registry.visibility.visible_namespaces import VisibilityCriterion

TENANTS = VisibilityCriterion("apps.cozystack.io", "tenants")
NAMESPACES = VisibilityCriterion("", "namespaces", by_name=True)
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


def visibility_source(
    cluster: ClusterClient, *questions: VisibilityCriterion, interval: float = 60.0
) -> AccessReviewVisibility:
    return AccessReviewVisibility(
        cluster,
        questions or (TENANTS,),
        namespaces=lambda: ["tenant-a", "tenant-b"],
        version=lambda: 42,
        interval=interval,
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
    assert (await visibility_source(cluster, TENANTS, NAMESPACES).for_user(ALICE)).namespaces == seen


async def test_what_was_said_holds_for_a_while_and_is_asked_once_for_many() -> None:
    cluster = ClusterClient()
    seers = visibility_source(cluster)
    await asyncio.gather(*(seers.for_user(ALICE) for _ in range(10)))
    await seers.for_user(ALICE)
    assert cluster.asked == [("alice", "tenants", place, "") for place in ("", "tenant-a", "tenant-b")]


async def test_who_watches_hears_of_changes() -> None:
    cluster = ClusterClient()
    visibility = await visibility_source(cluster, interval=0.005).for_user(ALICE)
    heard: asyncio.Queue[VisibilityChange] = asyncio.Queue()
    end = visibility.subscribe(heard.put_nowait)
    cluster.allowed.add(("alice", "tenants", "tenant-a", ""))
    nothing, something = frozenset[str](), frozenset(("tenant-a",))
    assert await asyncio.wait_for(heard.get(), 5) == VisibilityChange(nothing, nothing, something, 42)
    cluster.away = True
    asked = len(cluster.asked)
    while len(cluster.asked) < asked + 3:  # noqa: ASYNC110  the host is asked by a clock
        await asyncio.sleep(0)
    assert visibility.namespaces == something
    cluster.away = False
    cluster.allowed.clear()
    assert (await asyncio.wait_for(heard.get(), 5)).lost("tenant-a")
    end()


async def test_a_host_that_cannot_be_asked_is_an_error_and_no_empty_list() -> None:
    """API-27."""
    cluster = ClusterClient(away=True)
    with pytest.raises(ServiceUnavailable):
        await visibility_source(cluster).for_user(ALICE)


async def test_of_the_past_nothing_is_known() -> None:
    assert (await visibility_source(ClusterClient()).for_user(ALICE)).change_since(7, (0.0, 1.0)) is None


async def test_masters_are_not_asked_for() -> None:
    cluster = ClusterClient()
    assert (await visibility_source(cluster).for_user(User(name="x", groups=("system:masters",)))).namespaces is None
    assert cluster.asked == []
