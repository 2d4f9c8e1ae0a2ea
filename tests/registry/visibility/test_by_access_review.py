"""Visibility by a SubjectAccessReview for each namespace."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.errors import ServiceUnavailable
from apiserver.meta.resource import Key, Resource
from apiserver.request.context import User
from apiserver.storage.visibility import EVERYTHING, VisibilityChange, VisibleObjects
from registry.visibility.by_access_review import AccessReviewVisibility
from registry.visibility.visible_objects import VisibilityCriterion
from tests.registry.visibility.rbac_states import ALL_TENANTS, NAMESPACES, TENANTS, shown

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)
ALICE = User(name="alice", groups=("devs",))


@dataclass
class FakeAuthorizer:
    """Allows the accesses in `allowed`: (user, resource, namespace, name)."""

    allowed: set[tuple[str, str, str, str]] = field(default_factory=set)
    requests: list[tuple[str, str, str, str]] = field(default_factory=list)
    fails: bool = False

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        assert attributes.verb == "get"
        request = attributes.user.name, attributes.resource, attributes.namespace, attributes.name
        self.requests.append(request)
        await asyncio.sleep(0)
        if self.fails:
            raise ServiceUnavailable("away")
        return Decision(allowed=request in self.allowed)


def visibility_source(
    authorizer: FakeAuthorizer, *criteria: VisibilityCriterion, interval: float = 60.0
) -> AccessReviewVisibility:
    return AccessReviewVisibility(
        authorizer,
        criteria or (TENANTS,),
        namespaces=lambda: ["tenant-a", "tenant-b"],
        version=lambda: 42,
        related=lambda namespaces: [Key("tenant-root", each.removeprefix("tenant-")) for each in sorted(namespaces)],
        interval=interval,
    )


@pytest.mark.parametrize(
    ("allowed", "visible"),
    [
        pytest.param(("tenants", "", ""), EVERYTHING, id="everywhere"),
        pytest.param(("tenants", "tenant-b", ""), shown("tenant-b"), id="in one namespace"),
        pytest.param(("namespaces", "tenant-a", "tenant-a"), shown("tenant-a"), id="a namespace by name"),
        pytest.param(("pods", "tenant-a", ""), shown(), id="something else"),
    ],
)
async def test_visible_namespaces_are_those_that_reviews_allow(
    allowed: tuple[str, str, str], visible: VisibleObjects
) -> None:
    authorizer = FakeAuthorizer({("alice", *allowed)})
    assert (await visibility_source(authorizer, ALL_TENANTS, NAMESPACES).for_user(ALICE)).visible == visible


async def test_the_own_tenants_of_visible_namespaces_are_reviewed_by_name() -> None:
    """Only these: a review for every Tenant would be too much."""
    authorizer = FakeAuthorizer(
        {("alice", "tenants", *each) for each in (("tenant-a", ""), ("tenant-b", ""), ("tenant-root", "a"))}
    )
    found = (await visibility_source(authorizer).for_user(ALICE)).visible
    assert found == shown("tenant-a", "tenant-b", keys=[Key("tenant-root", "a")])
    assert [each for each in authorizer.requests if each[3]] == [
        ("alice", "tenants", "tenant-root", name) for name in ("a", "b")
    ]
    of_namespaces = (await visibility_source(authorizer, ALL_TENANTS, NAMESPACES).for_user(ALICE)).visible
    assert of_namespaces == shown("tenant-a", "tenant-b")


async def test_results_are_cached_and_concurrent_callers_share_reviews() -> None:
    authorizer = FakeAuthorizer()
    source = visibility_source(authorizer)
    await asyncio.gather(*(source.for_user(ALICE) for _ in range(10)))
    await source.for_user(ALICE)
    assert authorizer.requests == [("alice", "tenants", namespace, "") for namespace in ("", "tenant-a", "tenant-b")]


async def test_each_credential_of_a_user_is_reviewed() -> None:
    """An authorizer may decide by extra fields, such as the scopes of a token."""
    reviewed: list[User] = []

    class ByScope:
        async def authorize(self, attributes: AccessAttributes) -> Decision:
            reviewed.append(attributes.user)
            return Decision(allowed="all" in attributes.user.extra.get("scopes", ()))

    source = AccessReviewVisibility(ByScope(), (TENANTS,), namespaces=lambda: ["tenant-a"], version=lambda: 42)
    users = [
        User(name="alice", groups=("devs",), extra={"scopes": ("all",)}),
        User(name="alice", groups=("devs",), extra={"scopes": ("own",)}),
        User(name="alice", uid="7", groups=("devs",)),
    ]
    found = [(await source.for_user(user)).visible for user in users]
    assert found == [EVERYTHING, shown(), shown()]
    assert [each for index, each in enumerate(reviewed) if each not in reviewed[:index]] == users


async def test_subscribers_are_notified_of_changes() -> None:
    authorizer = FakeAuthorizer()
    visibility = await visibility_source(authorizer, interval=0.005).for_user(ALICE)
    changes: asyncio.Queue[VisibilityChange] = asyncio.Queue()
    end = visibility.subscribe(changes.put_nowait)
    authorizer.allowed.add(("alice", "tenants", "tenant-a", ""))
    nothing, something = shown(), shown("tenant-a")
    assert await asyncio.wait_for(changes.get(), 5) == VisibilityChange(nothing, nothing, something, 42)
    authorizer.fails = True
    requests = len(authorizer.requests)
    while len(authorizer.requests) < requests + 3:  # noqa: ASYNC110  reviews are sent periodically
        await asyncio.sleep(0)
    assert visibility.visible == something
    authorizer.fails = False
    authorizer.allowed.clear()
    assert (await asyncio.wait_for(changes.get(), 5)).lost(THINGS, Key("tenant-a", "x"))
    end()


async def test_a_failed_review_is_an_error_and_not_an_empty_list() -> None:
    """API-27."""
    authorizer = FakeAuthorizer(fails=True)
    with pytest.raises(ServiceUnavailable):
        await visibility_source(authorizer).for_user(ALICE)


@pytest.mark.parametrize(
    ("sent", "ever", "always"),
    [
        pytest.param((-1.0, -0.5), None, None, id="before the first review"),
        pytest.param((-1.0, 5.0), {"tenant-a"}, {"tenant-a"}, id="before a change"),
        pytest.param((0.5, 25.0), {"tenant-a", "tenant-b"}, set(), id="before and after a change"),
        pytest.param((25.0, 27.0), {"tenant-a", "tenant-b"}, set(), id="shortly after a change"),
        pytest.param((35.0, float("inf")), {"tenant-b"}, {"tenant-b"}, id="long after all changes"),
        pytest.param((-1.0, float("inf")), {"tenant-a", "tenant-b"}, set(), id="without an event"),
    ],
)
async def test_a_watch_follows_an_earlier_list(
    sent: tuple[float, float], ever: set[str] | None, always: set[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first review at 0 s shows tenant-a; the one at 20 s shows tenant-b instead."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    authorizer = FakeAuthorizer({("alice", "tenants", "tenant-a", "")})
    source = visibility_source(authorizer, interval=10.0)
    await source.for_user(ALICE)
    authorizer.allowed = {("alice", "tenants", "tenant-b", "")}
    now[0] = 20.0
    change = (await source.for_user(ALICE)).change_since(7, sent)
    if ever is None or always is None:
        assert change is None
        return
    assert change == VisibilityChange(shown(*ever), shown(*always), shown("tenant-b"), 42)


async def test_results_are_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    authorizer = FakeAuthorizer()
    source = visibility_source(authorizer, interval=10.0)
    for number in range(30):
        authorizer.allowed = {("alice", "tenants", "tenant-a" if number % 2 else "tenant-b", "")}
        now[0] = 20.0 * number
        visibility = await source.for_user(ALICE)
    assert visibility.change_since(7, (0.0, 400.0)) is None
    assert visibility.change_since(7, (0.0, 500.0)) is not None


async def test_system_masters_see_everything_without_reviews() -> None:
    authorizer = FakeAuthorizer()
    assert (
        await visibility_source(authorizer).for_user(User(name="x", groups=("system:masters",)))
    ).visible == EVERYTHING
    assert authorizer.requests == []
