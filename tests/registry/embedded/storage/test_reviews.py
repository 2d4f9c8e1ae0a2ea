"""Reviews: access reviews, rules reviews, self reviews, and token reviews of service account tokens."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.embedded.auth.rbac_authorizer import RbacAuthorizer, RoleIndexUpdater
from registry.embedded.auth.secret_tokens import SECRETS, SERVICEACCOUNTS, SecretTokenIndex, TokenController
from registry.embedded.auth.token_authenticator import ServiceAccountTokens
from registry.embedded.storage.reviews import ReviewStorage, review_storages
from tests.registry.embedded.embedded_storages import EmbeddedApi, bound_tokens, no_admission, request_context

RBAC = "rbac.authorization.k8s.io"
BOB = User(name="bob", uid="u1", groups=("devs",), extra={"k": ("v",)})


@pytest.fixture
def token_index(api: EmbeddedApi) -> SecretTokenIndex:
    token_index = SecretTokenIndex(database=api.database, accounts=api.backends[SERVICEACCOUNTS])
    token_index.load(api.backends[SECRETS])
    return token_index


@pytest.fixture
async def controller(api: EmbeddedApi) -> AsyncIterator[TokenController]:
    controller = TokenController(database=api.database, backends=api.backends, ca="CERTIFICATE")
    controller.load()
    task = asyncio.create_task(controller.run())
    yield controller
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Reviews:
    def __init__(self, storages: dict[str, ReviewStorage]) -> None:
        self._storages = storages

    async def create(self, plural: str, spec: Object | None, *, user: User = BOB, namespace: str = "") -> Any:
        metadata = {"namespace": namespace} if namespace else {}
        review: Object = {"metadata": metadata}
        if spec is not None:
            review["spec"] = spec
        response = await self._storages[plural].create(request_context(user), review, no_admission, dry_run=False)
        return response["status"]


@pytest.fixture
async def reviews(api: EmbeddedApi, token_index: SecretTokenIndex) -> Reviews:
    """The user `bob` may get pods in `ns`."""
    RoleIndexUpdater(database=api.database, index=api.index).load(api.backends)
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    await api.create("roles", {"metadata": {"name": "r", "namespace": "ns"}, "rules": rules}, group=RBAC)
    binding = {
        "metadata": {"name": "b", "namespace": "ns"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    await api.create("rolebindings", binding, group=RBAC)
    service_account_tokens = ServiceAccountTokens(secret_tokens=token_index, bound_tokens=bound_tokens(api))
    storages = review_storages(authorizer=RbacAuthorizer(api.index), index=api.index, tokens=service_account_tokens)
    return Reviews(dict(storages))


GET_PODS = {"verb": "get", "resource": "pods", "namespace": "ns"}


async def test_a_subject_access_review_decides_for_the_named_user(reviews: Reviews) -> None:
    status = await reviews.create("subjectaccessreviews", {"user": "bob", "resourceAttributes": GET_PODS})
    assert status == {"allowed": True, "reason": 'RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "bob"'}
    elsewhere = {**GET_PODS, "namespace": "other"}
    assert await reviews.create("subjectaccessreviews", {"user": "bob", "resourceAttributes": elsewhere}) == {
        "allowed": False
    }


async def test_a_self_subject_access_review_decides_for_the_caller(reviews: Reviews) -> None:
    spec = {"resourceAttributes": GET_PODS}
    assert (await reviews.create("selfsubjectaccessreviews", spec))["allowed"]
    assert not (await reviews.create("selfsubjectaccessreviews", spec, user=User(name="eve")))["allowed"]


async def test_a_local_subject_access_review_must_name_its_own_namespace(reviews: Reviews) -> None:
    spec = {"user": "bob", "resourceAttributes": GET_PODS}
    assert (await reviews.create("localsubjectaccessreviews", spec, namespace="ns"))["allowed"]
    with pytest.raises(errors.Invalid, match=r"must match metadata\.namespace"):
        await reviews.create("localsubjectaccessreviews", spec, namespace="other")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"user": "bob"}, "spec.resourceAttributes", id="no attributes"),
        pytest.param(
            {"user": "bob", "resourceAttributes": GET_PODS, "nonResourceAttributes": {"path": "/"}},
            "spec.nonResourceAttributes",
            id="resource and path attributes",
        ),
        pytest.param({"resourceAttributes": GET_PODS}, "spec.user", id="no user"),
        pytest.param({"user": 1, "resourceAttributes": GET_PODS}, "spec.user", id="a user of the wrong type"),
    ],
)
async def test_an_invalid_access_review_is_rejected(reviews: Reviews, spec: Object, field: str) -> None:
    with pytest.raises(errors.Invalid) as raised:
        await reviews.create("subjectaccessreviews", spec)
    assert [cause["field"] for cause in raised.value.causes] == [field]


async def test_a_rules_review_lists_the_rules_of_the_caller(reviews: Reviews) -> None:
    assert await reviews.create("selfsubjectrulesreviews", {"namespace": "ns"}) == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [],
        "incomplete": False,
    }
    assert (await reviews.create("selfsubjectrulesreviews", {"namespace": "other"}))["resourceRules"] == []


async def test_a_self_subject_review_returns_the_caller(reviews: Reviews) -> None:
    assert await reviews.create("selfsubjectreviews", None) == {
        "userInfo": {"username": "bob", "uid": "u1", "groups": ["devs"], "extra": {"k": ["v"]}}
    }


async def token_secret(api: EmbeddedApi, name: str = "t", account: str = "sa", **more: Any) -> Object:
    annotations = {"kubernetes.io/service-account.name": account}
    metadata = {"name": name, "namespace": "ns", "annotations": annotations}
    return await api.create("secrets", {"metadata": metadata, "type": "kubernetes.io/service-account-token", **more})


def data(api: EmbeddedApi, name: str = "t") -> dict[str, str]:
    cached = api.backends[SECRETS].cache.peek(Key("ns", name))
    encoded = (cached.object().get("data") or {}) if cached is not None else {}
    return {key: base64.b64decode(value).decode() for key, value in encoded.items()}


async def account(api: EmbeddedApi) -> Object:
    return await api.create("serviceaccounts", {"metadata": {"name": "sa", "namespace": "ns"}})


async def test_a_token_secret_is_filled_with_a_valid_token(
    api: EmbeddedApi, reviews: Reviews, controller: TokenController
) -> None:
    created = await account(api)
    await token_secret(api)
    await api.until(lambda: "token" in data(api))
    assert {key: value for key, value in data(api).items() if key != "token"} == {
        "namespace": "ns",
        "ca.crt": "CERTIFICATE",
    }
    status = await reviews.create("tokenreviews", {"token": data(api)["token"]})
    assert status == {
        "authenticated": True,
        "user": {
            "username": "system:serviceaccount:ns:sa",
            "uid": created["metadata"]["uid"],
            "groups": ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
        },
        "audiences": ["https://kubernetes.default.svc"],
    }


async def test_a_token_secret_is_filled_once_its_account_exists(api: EmbeddedApi, controller: TokenController) -> None:
    await token_secret(api)
    await controller.join()
    assert data(api) == {}
    await account(api)
    await api.until(lambda: "token" in data(api))


async def test_a_token_is_invalid_once_its_secret_is_deleted(
    api: EmbeddedApi, token_index: SecretTokenIndex, controller: TokenController
) -> None:
    await account(api)
    await token_secret(api)
    await api.until(lambda: "token" in data(api))
    token = data(api)["token"]
    assert token_index.authenticate_token(token) is not None
    await api.delete("secrets", Key("ns", "t"))
    assert token_index.authenticate_token(token) is None


async def test_deleting_an_account_invalidates_its_token_and_deletes_the_secret(
    api: EmbeddedApi, token_index: SecretTokenIndex, controller: TokenController
) -> None:
    await account(api)
    await token_secret(api)
    await api.until(lambda: "token" in data(api))
    token = data(api)["token"]
    await api.delete("serviceaccounts", Key("ns", "sa"))
    assert token_index.authenticate_token(token) is None
    await api.until(lambda: not api.stored(SECRETS))
    await account(api)
    assert token_index.authenticate_token(token) is None


async def test_a_user_supplied_token_is_replaced(
    api: EmbeddedApi, token_index: SecretTokenIndex, controller: TokenController
) -> None:
    await account(api)
    own = "x" * 64
    await token_secret(api, data={"token": base64.b64encode(own.encode()).decode()})
    await api.until(lambda: data(api).get("token") not in (None, own))
    assert token_index.authenticate_token(own) is None


async def test_a_token_that_is_too_short_is_invalid(api: EmbeddedApi, token_index: SecretTokenIndex) -> None:
    created = await account(api)
    annotations = {
        "kubernetes.io/service-account.name": "sa",
        "kubernetes.io/service-account.uid": created["metadata"]["uid"],
    }
    secret = {
        "metadata": {"name": "t", "namespace": "ns", "annotations": annotations},
        "type": "kubernetes.io/service-account-token",
        "stringData": {"token": "password"},
    }
    await api.create("secrets", secret)
    assert token_index.authenticate_token("password") is None
    secret["metadata"] = {**created["metadata"], "name": "long", "annotations": annotations}
    await api.create(
        "secrets",
        {
            **secret,
            "metadata": {"name": "long", "namespace": "ns", "annotations": annotations},
            "stringData": {"token": "y" * 64},
        },
    )
    assert token_index.authenticate_token("y" * 64) is not None


@pytest.mark.parametrize("token", ["nonsense", "ü", "\ud800"])
async def test_a_token_review_rejects_an_unknown_token(reviews: Reviews, token: str) -> None:
    status = await reviews.create("tokenreviews", {"token": token})
    assert status == {"user": {}, "error": "invalid bearer token"}


async def test_a_token_review_for_another_audience_is_rejected(
    api: EmbeddedApi, reviews: Reviews, controller: TokenController
) -> None:
    await account(api)
    await token_secret(api)
    await api.until(lambda: "token" in data(api))
    status = await reviews.create("tokenreviews", {"token": data(api)["token"], "audiences": ["vault"]})
    assert "authenticated" not in status
    assert status["error"]
