"""Tokens of service accounts that end: what they say, how long they are good, and how they are asked for."""

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
from registry.embedded.auth.secret_tokens import TokenDirectory
from registry.embedded.auth.signing_key import InvalidServiceAccountToken, SigningKey, generate_key
from registry.embedded.auth.token_authenticator import Bearers, InvalidBearer
from registry.embedded.storage.token_request import TokenStorage
from tests.registry.embedded.embedded_storages import Kinds, bound_tokens, context_of, no_admission

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
async def tokens(kinds: Kinds, clock: Clock) -> BoundTokens:
    """With a ServiceAccount `sa` in `ns`."""
    await kinds.create("serviceaccounts", {"metadata": {"name": "sa", "namespace": "ns"}})
    return bound_tokens(kinds, clock)


def context() -> RequestContext:
    info = RequestInfo(method="POST", path="/", verb="create", is_resource=True, namespace="ns", name="sa")
    return replace(context_of(), info=info)


async def ask(tokens: BoundTokens, spec: Object | None = None, metadata: Object | None = None) -> Any:
    request: Object = {"metadata": {"namespace": "ns", **(metadata or {})}, "spec": spec or {}}
    return await TokenStorage(tokens).create(context(), request, no_admission, dry_run=False)


def claims_of(token: str) -> Any:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


async def test_a_token_says_whose_it_is_and_until_when(tokens: BoundTokens) -> None:
    answered = await ask(tokens)
    uid = answered["metadata"]["uid"]
    claims = claims_of(answered["status"]["token"])
    assert answered["spec"] == {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": None}
    assert answered["status"]["expirationTimestamp"] == "1970-01-12T14:46:40Z"
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


async def test_a_token_is_good_until_it_ends(tokens: BoundTokens, clock: Clock) -> None:
    token = (await ask(tokens, {"expirationSeconds": 600}))["status"]["token"]
    found = tokens.find(token)
    assert found is not None
    assert found.user.name == "system:serviceaccount:ns:sa"
    assert found.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns")
    assert found.user.extra["authentication.kubernetes.io/credential-id"] == (f"JTI={claims_of(token)['jti']}",)
    clock.now += 599
    assert tokens.find(token) is not None
    clock.now += 1
    assert tokens.find(token) is None


async def test_a_token_from_the_future_is_none(tokens: BoundTokens, clock: Clock) -> None:
    token = (await ask(tokens))["status"]["token"]
    clock.now -= 60
    assert tokens.find(token) is None


async def test_a_token_does_not_outlive_its_account(kinds: Kinds, tokens: BoundTokens) -> None:
    token = (await ask(tokens))["status"]["token"]
    await kinds.delete("serviceaccounts", ACCOUNT)
    assert tokens.find(token) is None
    await kinds.create("serviceaccounts", {"metadata": {"name": "sa", "namespace": "ns"}})
    assert tokens.find(token) is None


async def test_a_token_does_not_outlive_the_secret_that_it_is_bound_to(kinds: Kinds, tokens: BoundTokens) -> None:
    secret = await kinds.create("secrets", {"metadata": {"name": "s", "namespace": "ns"}})
    answered = await ask(tokens, {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}})
    token = answered["status"]["token"]
    assert claims_of(token)["kubernetes.io"]["secret"] == {"name": "s", "uid": secret["metadata"]["uid"]}
    assert tokens.find(token) is not None
    await kinds.delete("secrets", Key("ns", "s"))
    assert tokens.find(token) is None


@pytest.mark.parametrize(
    ("asked", "meant", "common"),
    [
        pytest.param([AUDIENCE], [AUDIENCE], (AUDIENCE,), id="the server"),
        pytest.param(["a", "b", AUDIENCE], ["b", "a"], ("a", "b"), id="those that both name, as they were asked"),
    ],
)
async def test_a_token_is_for_its_audiences(
    kinds: Kinds, tokens: BoundTokens, asked: list[str], meant: list[str], common: tuple[str, ...]
) -> None:
    bearers = Bearers(kept=TokenDirectory(database=kinds.database, accounts=tokens.accounts), bound=tokens)
    token = (await ask(tokens, {"audiences": meant}))["status"]["token"]
    assert bearers.find(token, asked).audiences == common


async def test_a_token_for_others_is_refused_in_kubernetes_words(kinds: Kinds, tokens: BoundTokens) -> None:
    bearers = Bearers(kept=TokenDirectory(database=kinds.database, accounts=tokens.accounts), bound=tokens)
    token = (await ask(tokens, {"audiences": ["a"]}))["status"]["token"]
    with pytest.raises(InvalidBearer) as refused:
        bearers.find(token)
    why = f'token audiences ["a"] is invalid for the target audiences ["{AUDIENCE}"]'
    assert str(refused.value) == f"[invalid bearer token, {why}]"


@pytest.mark.parametrize(
    ("spec", "metadata", "code", "message"),
    [
        pytest.param(
            {"expirationSeconds": 599}, {}, 422, "may not specify a duration less than 10 minutes", id="short"
        ),
        pytest.param({"expirationSeconds": 2**32 + 1}, {}, 422, "a duration larger than 2^32 seconds", id="long"),
        pytest.param({"expirationSeconds": "1"}, {}, 422, "must be of type integer", id="a wrong type"),
        pytest.param({}, {"name": "other"}, 422, "must match the service account name if specified", id="another name"),
        pytest.param(
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}},
            {},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
            id="a kind that nothing is bound to",
        ),
        pytest.param({"boundObjectRef": {"kind": "Secret"}}, {}, 400, "Name parameter required.", id="a nameless one"),
        pytest.param(
            {"boundObjectRef": {"kind": "Secret", "name": "x"}}, {}, 404, 'secrets "x" not found', id="no such Secret"
        ),
        pytest.param({"boundObjectRef": {"kind": "Pod", "name": "x"}}, {}, 404, 'pods "x" not found', id="no such Pod"),
    ],
)
async def test_what_no_token_is_made_for(
    tokens: BoundTokens, spec: Object, metadata: Object, code: int, message: str
) -> None:
    with pytest.raises(errors.StatusError) as refused:
        await ask(tokens, spec, metadata)
    assert refused.value.code == code
    assert message in refused.value.message


async def test_a_secret_of_another_uid_is_a_conflict(kinds: Kinds, tokens: BoundTokens) -> None:
    await kinds.create("secrets", {"metadata": {"name": "s", "namespace": "ns"}})
    with pytest.raises(errors.Conflict, match=r"the UID in the bound object reference \(u\) does not match"):
        await ask(tokens, {"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "u"}})


async def test_an_account_that_is_not_there(kinds: Kinds, clock: Clock) -> None:
    with pytest.raises(errors.NotFound, match='serviceaccounts "sa" not found'):
        await ask(bound_tokens(kinds, clock))


def test_claims_come_back_as_they_were_signed() -> None:
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
        pytest.param(lambda token: tampered(token, 0, encoded({"alg": "none"})), id="no algorithm"),
        pytest.param(lambda token: tampered(token, 2, ""), id="no signature"),
        pytest.param(lambda token: tampered(token, 2, encoded("x" * 62)), id="another signature"),
        pytest.param(lambda token: tampered(token, 0, "?"), id="no base64"),
        pytest.param(lambda token: f"{token}.x", id="four parts"),
        pytest.param(lambda token: "\u00e4.b.c", id="no ASCII"),
        pytest.param(lambda token: SigningKey(generate_key()).sign({"a": 1}), id="another key"),
        pytest.param(lambda token: "a" * 20_000 + ".b.c", id="too long"),
    ],
)
def test_what_the_key_has_not_signed_is_refused(change: Any) -> None:
    key = SigningKey(generate_key())
    with pytest.raises(InvalidServiceAccountToken):
        key.read(change(key.sign({"a": 1})))


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_key_is_a_value_error(pem: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        SigningKey(pem)
