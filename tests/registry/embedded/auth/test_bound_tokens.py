"""Service account tokens that expire: their claims, their validity, and the requests that issue them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext
from apiserver.request.request_info import RequestInfo
from registry.embedded.auth.bound_tokens import AUDIENCE, BoundTokens
from registry.embedded.auth.secret_tokens import SecretTokenIndex
from registry.embedded.auth.signing_key import InvalidServiceAccountToken, SigningKey, generate_key
from registry.embedded.auth.token_authenticator import InvalidBearerToken, ServiceAccountTokens
from registry.embedded.storage.token_request import TokenRequestStorage
from tests.registry.embedded.embedded_storages import EmbeddedApi, bound_tokens, no_admission, request_context

ACCOUNT = Key("ns", "sa")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def tokens(api: EmbeddedApi, clock: Clock) -> BoundTokens:
    """Issues tokens for the ServiceAccount `sa` in `ns`."""
    await api.create("serviceaccounts", {"metadata": {"name": "sa", "namespace": "ns"}})
    return bound_tokens(api, clock)


def context() -> RequestContext:
    info = RequestInfo(method="POST", path="/", verb="create", is_resource=True, namespace="ns", name="sa")
    return replace(request_context(), info=info)


async def request_token(tokens: BoundTokens, spec: Object | None = None, metadata: Object | None = None) -> Any:
    request: Object = {"metadata": {"namespace": "ns", **(metadata or {})}, "spec": spec or {}}
    return await TokenRequestStorage(tokens).create(context(), request, no_admission, dry_run=False)


def claims_of(token: str) -> Any:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


async def test_token_claims_name_the_account_and_the_expiry(tokens: BoundTokens) -> None:
    response = await request_token(tokens)
    uid = response["metadata"]["uid"]
    claims = claims_of(response["status"]["token"])
    assert response["spec"] == {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": None}
    assert response["status"]["expirationTimestamp"] == "1970-01-12T14:46:40Z"
    assert claims.pop("jti")
    assert claims == {
        "aud": [AUDIENCE],
        "exp": 1_003_600,
        "iat": 1_000_000,
        "iss": AUDIENCE,
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "sa", "uid": uid}},
        "nbf": 1_000_000,
        "sub": "system:serviceaccount:ns:sa",
    }


async def test_a_token_is_valid_until_it_expires(tokens: BoundTokens, clock: Clock) -> None:
    token = (await request_token(tokens, {"expirationSeconds": 600}))["status"]["token"]
    found = tokens.authenticate_token(token)
    assert found is not None
    assert found.user.name == "system:serviceaccount:ns:sa"
    assert found.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns")
    assert found.user.extra["authentication.kubernetes.io/credential-id"] == (f"JTI={claims_of(token)['jti']}",)
    clock.now += 599
    assert tokens.authenticate_token(token) is not None
    clock.now += 1
    assert tokens.authenticate_token(token) is None


async def test_a_token_is_rejected_before_its_not_before_time(tokens: BoundTokens, clock: Clock) -> None:
    token = (await request_token(tokens))["status"]["token"]
    clock.now -= 60
    assert tokens.authenticate_token(token) is None


async def test_a_token_is_invalid_once_its_account_is_deleted(api: EmbeddedApi, tokens: BoundTokens) -> None:
    token = (await request_token(tokens))["status"]["token"]
    await api.delete("serviceaccounts", ACCOUNT)
    assert tokens.authenticate_token(token) is None
    await api.create("serviceaccounts", {"metadata": {"name": "sa", "namespace": "ns"}})
    assert tokens.authenticate_token(token) is None


async def test_a_token_is_invalid_once_its_bound_secret_is_deleted(api: EmbeddedApi, tokens: BoundTokens) -> None:
    secret = await api.create("secrets", {"metadata": {"name": "s", "namespace": "ns"}})
    response = await request_token(tokens, {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}})
    token = response["status"]["token"]
    assert claims_of(token)["kubernetes.io"]["secret"] == {"name": "s", "uid": secret["metadata"]["uid"]}
    assert tokens.authenticate_token(token) is not None
    await api.delete("secrets", Key("ns", "s"))
    assert tokens.authenticate_token(token) is None


@pytest.mark.parametrize(
    ("requested", "issued_for", "common"),
    [
        pytest.param([AUDIENCE], [AUDIENCE], (AUDIENCE,), id="the default audience"),
        pytest.param(["a", "b", AUDIENCE], ["b", "a"], ("a", "b"), id="common audiences in the order of the request"),
    ],
)
async def test_a_token_authenticates_for_the_audiences_in_common(
    api: EmbeddedApi, tokens: BoundTokens, requested: list[str], issued_for: list[str], common: tuple[str, ...]
) -> None:
    service_account_tokens = ServiceAccountTokens(
        secret_tokens=SecretTokenIndex(database=api.database, accounts=tokens.accounts), bound_tokens=tokens
    )
    token = (await request_token(tokens, {"audiences": issued_for}))["status"]["token"]
    assert service_account_tokens.authenticate_token(token, requested).audiences == common


async def test_a_token_for_other_audiences_is_rejected_with_the_kubernetes_message(
    api: EmbeddedApi, tokens: BoundTokens
) -> None:
    service_account_tokens = ServiceAccountTokens(
        secret_tokens=SecretTokenIndex(database=api.database, accounts=tokens.accounts), bound_tokens=tokens
    )
    token = (await request_token(tokens, {"audiences": ["a"]}))["status"]["token"]
    with pytest.raises(InvalidBearerToken) as raised:
        service_account_tokens.authenticate_token(token)
    why = f'token audiences ["a"] is invalid for the target audiences ["{AUDIENCE}"]'
    assert str(raised.value) == f"[invalid bearer token, {why}]"


@pytest.mark.parametrize(
    ("spec", "metadata", "code", "message"),
    [
        pytest.param(
            {"expirationSeconds": 599},
            {},
            422,
            "may not specify a duration less than 10 minutes",
            id="too short a lifetime",
        ),
        pytest.param(
            {"expirationSeconds": 2**32 + 1}, {}, 422, "a duration larger than 2^32 seconds", id="too long a lifetime"
        ),
        pytest.param({"expirationSeconds": "1"}, {}, 422, "must be of type integer", id="a wrong type"),
        pytest.param(
            {},
            {"name": "other"},
            422,
            "must match the service account name if specified",
            id="the name of another account",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}},
            {},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
            id="a kind that tokens cannot be bound to",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Secret"}}, {}, 400, "Name parameter required.", id="a reference without a name"
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Secret", "name": "x"}}, {}, 404, 'secrets "x" not found', id="a missing Secret"
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Pod", "name": "x"}}, {}, 404, 'pods "x" not found', id="a missing Pod"
        ),
    ],
)
async def test_an_invalid_token_request_is_rejected(
    tokens: BoundTokens, spec: Object, metadata: Object, code: int, message: str
) -> None:
    with pytest.raises(errors.StatusError) as raised:
        await request_token(tokens, spec, metadata)
    assert raised.value.code == code
    assert message in raised.value.message


async def test_binding_a_token_to_a_secret_with_another_uid_is_a_conflict(
    api: EmbeddedApi, tokens: BoundTokens
) -> None:
    await api.create("secrets", {"metadata": {"name": "s", "namespace": "ns"}})
    with pytest.raises(errors.Conflict, match=r"the UID in the bound object reference \(u\) does not match"):
        await request_token(tokens, {"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "u"}})


async def test_a_token_request_for_a_missing_account_is_not_found(api: EmbeddedApi, clock: Clock) -> None:
    with pytest.raises(errors.NotFound, match='serviceaccounts "sa" not found'):
        await request_token(bound_tokens(api, clock))


def test_the_key_reads_the_claims_that_it_signed() -> None:
    key = SigningKey(generate_key())
    assert key.read(key.sign({"a": ["\u00e4", 1]})) == {"a": ["\u00e4", 1]}


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()


def tampered(token: str, part: int, text: str) -> str:
    parts = token.split(".")
    parts[part] = text
    return ".".join(parts)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda token: tampered(token, 1, encoded({"a": 2})), id="other claims"),
        pytest.param(lambda token: tampered(token, 0, encoded({"alg": "none"})), id="the algorithm none"),
        pytest.param(lambda token: tampered(token, 2, ""), id="no signature"),
        pytest.param(lambda token: tampered(token, 2, encoded("x" * 62)), id="another signature"),
        pytest.param(lambda token: tampered(token, 0, "?"), id="a header that is not base64"),
        pytest.param(lambda token: f"{token}.x", id="four parts"),
        pytest.param(lambda token: "\u00e4.b.c", id="characters outside ASCII"),
        pytest.param(lambda token: "\ud800.b.c", id="a lone surrogate"),
        pytest.param(lambda token: tampered(token, 0, encoded({"alg": ["ES256"]})), id="an algorithm that is a list"),
        pytest.param(lambda token: SigningKey(generate_key()).sign({"a": 1}), id="another key"),
        pytest.param(lambda token: "a" * 20_000 + ".b.c", id="too long"),
    ],
)
def test_a_token_that_the_key_did_not_sign_is_rejected(change: Any) -> None:
    key = SigningKey(generate_key())
    with pytest.raises(InvalidServiceAccountToken):
        key.read(change(key.sign({"a": 1})))


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_an_invalid_pem_key_raises_value_error(pem: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        SigningKey(pem)
