"""The rights of the proxy's account, as the cluster reviews them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from apiserver.delegation.review_client import ReviewRefused
from apiserver.meta.errors import Forbidden, StatusError, Unauthorized
from apiserver.meta.resource import GroupResource, Object
from tenant_apiserver.proxy.own_account import OwnAccount
from tenant_apiserver.proxy.own_rights import CLIENT_CA, FORWARDING, TOKEN_REVIEWS, OwnRights, telling_refusal
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual

FORBIDDEN = Forbidden(GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"), "", "no")
OVERLAY = "manifests/overlays/proxy gives it (ClusterRole tenant-apiserver:proxy)"


class Reviews:
    """Denies accesses by their verb or resource."""

    def __init__(self, *denied: str) -> None:
        self.denied = set(denied)
        self.failure: StatusError | None = None

    def __call__(self, path: str, body: Object) -> Object:
        if path.endswith("/selfsubjectreviews"):
            return {"status": {"userInfo": {"username": "proxy"}}}
        if self.failure is not None:
            raise self.failure
        attributes = body["spec"]["resourceAttributes"]
        assert "" not in attributes.values()
        return {"status": {"allowed": self.denied.isdisjoint({attributes["verb"], attributes["resource"]})}}


@asynccontextmanager
async def followed(reviews: Reviews) -> AsyncIterator[OwnRights]:
    cluster = FakeCluster(reviews=reviews)
    account = OwnAccount(cluster)
    rights = OwnRights(cluster, (*FORWARDING, TOKEN_REVIEWS, CLIENT_CA), account)
    tasks = [asyncio.create_task(account.find()), asyncio.create_task(rights.follow())]
    await asyncio.sleep(1)
    try:
        yield rights
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@virtual
async def test_an_account_with_all_rights_is_ready(caplog: pytest.LogCaptureFixture) -> None:
    async with followed(Reviews()) as rights:
        assert rights.check() == ""
    assert caplog.messages == []


@pytest.mark.parametrize("denied", ["impersonate", "impersonate:user-info"])
def test_one_kind_of_impersonation_suffices(denied: str) -> None:
    @virtual
    async def main() -> None:
        async with followed(Reviews(denied)) as rights:
            assert rights.check() == ""

    main()


@virtual
async def test_a_missing_right_is_logged_once_until_it_is_given(caplog: pytest.LogCaptureFixture) -> None:
    reviews = Reviews("tokenreviews")
    name = "create tokenreviews.authentication.k8s.io"
    async with followed(reviews) as rights:
        for _ in range(10):
            rights.refused("tokenreviews is forbidden")
            await asyncio.sleep(3)
        with pytest.raises(RuntimeError) as failed:
            rights.check()
        assert str(failed.value) == f'the account "proxy" of the proxy may not {name}; {OVERLAY}'
        [line] = caplog.messages
        assert line == f'the account "proxy" of the proxy may not {name}: callers with a token get 503; {OVERLAY}'
        reviews.denied.clear()
        await asyncio.sleep(7)
        assert rights.check() == ""


@virtual
async def test_a_right_that_some_callers_need_is_a_note() -> None:
    async with followed(Reviews("configmaps")) as rights:
        assert "RoleBinding tenant-apiserver-proxy-auth-reader" in rights.check()


@virtual
async def test_a_refusal_that_no_right_explains_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with followed(Reviews()) as rights:
        for _ in range(3):
            rights.refused('groups "ops" is forbidden')
            await asyncio.sleep(3)
        assert rights.check() == ""
    assert caplog.messages == [f'the cluster has refused a right to the proxy: groups "ops" is forbidden; {OVERLAY}']


@virtual
async def test_an_outage_changes_nothing() -> None:
    reviews = Reviews("users")
    async with followed(reviews) as rights:
        cluster = rights.cluster
        assert isinstance(cluster, FakeCluster)
        cluster.unreachable = True
        await asyncio.sleep(100)
        with pytest.raises(RuntimeError, match="may not impersonate users"):
            rights.check()


@virtual
async def test_a_cluster_that_refuses_the_question_leaves_the_proxy_ready() -> None:
    reviews = Reviews("users")
    reviews.failure = FORBIDDEN
    async with followed(reviews) as rights:
        assert rights.check() == ""


@pytest.mark.parametrize("answer", [{"kind": "Status", "status": "Success"}, {}, {"status": None}, []])
def test_an_answer_that_is_no_review_leaves_the_proxy_ready(answer: Object, caplog: pytest.LogCaptureFixture) -> None:
    class Malformed(Reviews):
        def __call__(self, path: str, body: Object) -> Object:
            return super().__call__(path, body) if path.endswith("/selfsubjectreviews") else answer

    @virtual
    async def main() -> None:
        async with followed(Malformed()) as rights:
            await asyncio.sleep(300)
            assert rights.check() == ""

    main()
    assert caplog.messages == ["cannot ask the cluster for the own rights: its answer is no review"]


@pytest.mark.parametrize("answer", [{"status": "Success"}, {"status": {"userInfo": "a"}}, []])
def test_an_account_is_asked_for_until_the_answer_names_one(answer: Object) -> None:
    @virtual
    async def main() -> None:
        answers = [answer]
        reviews = Reviews()
        account = OwnAccount(FakeCluster(reviews=lambda path, body: answers.pop() if answers else reviews(path, body)))
        await account.find()
        assert account.name == "proxy"

    main()


async def test_only_a_403_is_told_as_a_refusal() -> None:
    refused: list[str] = []
    errors: list[StatusError] = [FORBIDDEN, Unauthorized()]

    async def post(body: Object) -> Object:
        raise errors.pop(0)

    call = telling_refusal(post, "review tokens", refused.append)
    with pytest.raises(ReviewRefused, match=r"^the cluster does not let the proxy review tokens$"):
        await call({})
    with pytest.raises(Unauthorized):
        await call({})
    assert refused == [FORBIDDEN.message]
