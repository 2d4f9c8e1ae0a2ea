"""Reviews: who may do what, who is who, and service account tokens."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.embedded.auth.rbac_authorizer import RbacAuthorizer, RoleFeed
from registry.embedded.auth.secret_tokens import SECRETS, SERVICEACCOUNTS, TokenController, TokenDirectory
from registry.embedded.auth.token_authenticator import Bearers
from registry.embedded.storage.reviews import ReviewStorage, review_storages
from tests.registry.embedded.embedded_storages import Kinds, bound_tokens, context_of, no_admission

RBAC = "rbac.authorization.k8s.io"
BOB = User(name="bob", uid="u1", groups=("devs",), extra={"k": ("v",)})


@pytest.fixture
def directory(kinds: Kinds) -> TokenDirectory:
    directory = TokenDirectory(database=kinds.database, accounts=kinds.backends[SERVICEACCOUNTS])
    directory.load(kinds.backends[SECRETS])
    return directory


@pytest.fixture
async def controller(kinds: Kinds) -> AsyncIterator[TokenController]:
    controller = TokenController(database=kinds.database, backends=kinds.backends, ca="CERTIFICATE")
    controller.load()
    task = asyncio.create_task(controller.run())
    yield controller
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Reviews:
    def __init__(self, storages: dict[str, ReviewStorage]) -> None:
        self._storages = storages

    async def ask(self, plural: str, spec: Object | None, *, user: User = BOB, namespace: str = "") -> Any:
        metadata = {"namespace": namespace} if namespace else {}
        review: Object = {"metadata": metadata}
        if spec is not None:
            review["spec"] = spec
        answered = await self._storages[plural].create(context_of(user), review, no_admission, dry_run=False)
        return answered["status"]


@pytest.fixture
async def reviews(kinds: Kinds, directory: TokenDirectory) -> Reviews:
    """`bob` may get pods in `ns`."""
    RoleFeed(database=kinds.database, index=kinds.index).load(kinds.backends)
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    await kinds.create("roles", {"metadata": {"name": "r", "namespace": "ns"}, "rules": rules}, group=RBAC)
    binding = {
        "metadata": {"name": "b", "namespace": "ns"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    await kinds.create("rolebindings", binding, group=RBAC)
    bearers = Bearers(kept=directory, bound=bound_tokens(kinds))
    storages = review_storages(authorizer=RbacAuthorizer(kinds.index), index=kinds.index, tokens=bearers)
    return Reviews(dict(storages))


GET_PODS = {"verb": "get", "resource": "pods", "namespace": "ns"}


async def test_a_subject_access_review_answers_for_somebody(reviews: Reviews) -> None:
    status = await reviews.ask("subjectaccessreviews", {"user": "bob", "resourceAttributes": GET_PODS})
    assert status == {"allowed": True, "reason": 'RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "bob"'}
    elsewhere = {**GET_PODS, "namespace": "other"}
    assert await reviews.ask("subjectaccessreviews", {"user": "bob", "resourceAttributes": elsewhere}) == {
        "allowed": False
    }


async def test_a_self_subject_access_review_answers_for_the_caller(reviews: Reviews) -> None:
    spec = {"resourceAttributes": GET_PODS}
    assert (await reviews.ask("selfsubjectaccessreviews", spec))["allowed"]
    assert not (await reviews.ask("selfsubjectaccessreviews", spec, user=User(name="eve")))["allowed"]


async def test_a_local_review_is_about_its_namespace(reviews: Reviews) -> None:
    spec = {"user": "bob", "resourceAttributes": GET_PODS}
    assert (await reviews.ask("localsubjectaccessreviews", spec, namespace="ns"))["allowed"]
    with pytest.raises(errors.Invalid, match=r"must match metadata\.namespace"):
        await reviews.ask("localsubjectaccessreviews", spec, namespace="other")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"user": "bob"}, "spec.resourceAttributes", id="about nothing"),
        pytest.param(
            {"user": "bob", "resourceAttributes": GET_PODS, "nonResourceAttributes": {"path": "/"}},
            "spec.nonResourceAttributes",
            id="about two things",
        ),
        pytest.param({"resourceAttributes": GET_PODS}, "spec.user", id="for nobody"),
        pytest.param({"user": 1, "resourceAttributes": GET_PODS}, "spec.user", id="of the wrong type"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(reviews: Reviews, spec: Object, field: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        await reviews.ask("subjectaccessreviews", spec)
    assert [cause["field"] for cause in refused.value.causes] == [field]


async def test_the_caller_learns_what_they_may_do(reviews: Reviews) -> None:
    assert await reviews.ask("selfsubjectrulesreviews", {"namespace": "ns"}) == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [],
        "incomplete": False,
    }
    assert (await reviews.ask("selfsubjectrulesreviews", {"namespace": "other"}))["resourceRules"] == []


async def test_the_caller_learns_who_they_are(reviews: Reviews) -> None:
    assert await reviews.ask("selfsubjectreviews", None) == {
        "userInfo": {"username": "bob", "uid": "u1", "groups": ["devs"], "extra": {"k": ["v"]}}
    }


async def token_secret(kinds: Kinds, name: str = "t", account: str = "sa", **more: Any) -> Object:
    annotations = {"kubernetes.io/service-account.name": account}
    metadata = {"name": name, "namespace": "ns", "annotations": annotations}
    return await kinds.create("secrets", {"metadata": metadata, "type": "kubernetes.io/service-account-token", **more})


def data(kinds: Kinds, name: str = "t") -> dict[str, str]:
    cached = kinds.backends[SECRETS].cache.peek(Key("ns", name))
    encoded = (cached.object().get("data") or {}) if cached is not None else {}
    return {key: base64.b64decode(value).decode() for key, value in encoded.items()}


async def account(kinds: Kinds) -> Object:
    return await kinds.create("serviceaccounts", {"metadata": {"name": "sa", "namespace": "ns"}})


async def test_a_token_is_made_for_a_secret_that_asks_for_one(
    kinds: Kinds, reviews: Reviews, controller: TokenController
) -> None:
    made = await account(kinds)
    await token_secret(kinds)
    await kinds.until(lambda: "token" in data(kinds))
    assert {key: value for key, value in data(kinds).items() if key != "token"} == {
        "namespace": "ns",
        "ca.crt": "CERTIFICATE",
    }
    status = await reviews.ask("tokenreviews", {"token": data(kinds)["token"]})
    assert status == {
        "authenticated": True,
        "user": {
            "username": "system:serviceaccount:ns:sa",
            "uid": made["metadata"]["uid"],
            "groups": ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
        },
        "audiences": ["https://kubernetes.default.svc"],
    }


async def test_a_secret_may_be_there_before_its_account(kinds: Kinds, controller: TokenController) -> None:
    await token_secret(kinds)
    await controller.join()
    assert data(kinds) == {}
    await account(kinds)
    await kinds.until(lambda: "token" in data(kinds))


async def test_a_token_is_bad_as_soon_as_its_secret_is_gone(
    kinds: Kinds, directory: TokenDirectory, controller: TokenController
) -> None:
    await account(kinds)
    await token_secret(kinds)
    await kinds.until(lambda: "token" in data(kinds))
    token = data(kinds)["token"]
    assert directory.find(token) is not None
    await kinds.delete("secrets", Key("ns", "t"))
    assert directory.find(token) is None


async def test_a_token_is_bad_when_its_account_is_gone_and_the_secret_goes_too(
    kinds: Kinds, directory: TokenDirectory, controller: TokenController
) -> None:
    await account(kinds)
    await token_secret(kinds)
    await kinds.until(lambda: "token" in data(kinds))
    token = data(kinds)["token"]
    await kinds.delete("serviceaccounts", Key("ns", "sa"))
    assert directory.find(token) is None
    await kinds.until(lambda: not kinds.stored(SECRETS))
    await account(kinds)
    assert directory.find(token) is None


async def test_what_somebody_thought_up_is_replaced_by_a_token(
    kinds: Kinds, directory: TokenDirectory, controller: TokenController
) -> None:
    await account(kinds)
    own = "x" * 64
    await token_secret(kinds, data={"token": base64.b64encode(own.encode()).decode()})
    await kinds.until(lambda: data(kinds).get("token") not in (None, own))
    assert directory.find(own) is None


async def test_a_short_token_is_none(kinds: Kinds, directory: TokenDirectory) -> None:
    made = await account(kinds)
    annotations = {
        "kubernetes.io/service-account.name": "sa",
        "kubernetes.io/service-account.uid": made["metadata"]["uid"],
    }
    secret = {
        "metadata": {"name": "t", "namespace": "ns", "annotations": annotations},
        "type": "kubernetes.io/service-account-token",
        "stringData": {"token": "password"},
    }
    await kinds.create("secrets", secret)
    assert directory.find("password") is None
    secret["metadata"] = {**made["metadata"], "name": "long", "annotations": annotations}
    await kinds.create(
        "secrets",
        {
            **secret,
            "metadata": {"name": "long", "namespace": "ns", "annotations": annotations},
            "stringData": {"token": "y" * 64},
        },
    )
    assert directory.find("y" * 64) is not None


@pytest.mark.parametrize("token", ["nonsense", "ü", "\ud800"])
async def test_an_unknown_token_is_nobodys(reviews: Reviews, token: str) -> None:
    status = await reviews.ask("tokenreviews", {"token": token})
    assert status == {"user": {}, "error": "invalid bearer token"}


async def test_a_token_for_another_audience_is_refused(
    kinds: Kinds, reviews: Reviews, controller: TokenController
) -> None:
    await account(kinds)
    await token_secret(kinds)
    await kinds.until(lambda: "token" in data(kinds))
    status = await reviews.ask("tokenreviews", {"token": data(kinds)["token"], "audiences": ["vault"]})
    assert "authenticated" not in status
    assert status["error"]
