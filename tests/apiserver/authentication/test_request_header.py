"""Identities that a front proxy vouches for, and attempts to forge them (ATTACK-01)."""

from __future__ import annotations

import pytest

from apiserver.authentication.authenticator import AuthenticationError, UnionAuthenticator
from apiserver.authentication.request_header import (
    RequestHeaderAuthenticator,
    RequestHeaderConfig,
    decode_extra_key,
    has_identity_headers,
    is_valid_utf8,
)
from apiserver.authentication.token_review import BearerTokenAuthenticator
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.meta.errors import BadRequest, Unauthorized
from apiserver.request.context import ANONYMOUS, User
from apiserver.tls.certificates import KeyPair, make_ca, make_client
from tests.apiserver.endpoints.request_contexts import Tls, make_context

PROXY_CA = make_ca("proxy-ca")
CLIENT_CA = make_ca("client-ca")
PROXY = make_client(PROXY_CA, "front-proxy-client")
ROOT = [("X-Remote-User", "root"), ("X-Remote-Group", "system:masters")]


def front_proxy(config: RequestHeaderConfig) -> RequestHeaderAuthenticator:
    return RequestHeaderAuthenticator(
        config=lambda: config, peers=PeerCertificates(), verifier=CertificateVerifier(lambda: config.ca_pem)
    )


def proxy(**config: tuple[str, ...]) -> RequestHeaderAuthenticator:
    return front_proxy(RequestHeaderConfig(ca_pem=PROXY_CA.certificate, **config))


async def review(token: str) -> User:
    return User(name=f"owner of {token}")


def union() -> UnionAuthenticator:
    """All authenticators of a server behind an aggregator."""
    config = RequestHeaderConfig(ca_pem=PROXY_CA.certificate, allowed_names=("front-proxy-client",))
    peers = PeerCertificates()
    verifier = CertificateVerifier(lambda: CLIENT_CA.certificate)
    return UnionAuthenticator(
        [
            front_proxy(config),
            ClientCertificateAuthenticator(peers=peers, verifier=verifier),
            BearerTokenAuthenticator(review, on_stale=lambda: None),
        ]
    )


async def test_all_of_an_identity_is_taken_over() -> None:
    headers = [
        ("x-remote-user", "alice"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "b,c"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Extra-Acme.com%2fScope", "one"),
        ("x-remote-extra-acme.com%2Fscope", "two"),
        ("X-Remote-Extra-100%", "as it is"),
    ]
    user = await proxy(uid_headers=("X-Remote-Uid",)).authenticate(make_context(headers=headers, tls=Tls(PROXY)))
    assert user == User(
        name="alice",
        uid="7",
        groups=("b,c", "a", "a"),
        extra={"acme.com/scope": ("one", "two"), "100%": ("as it is",)},
    )


async def test_a_uid_header_that_is_not_configured_is_not_read() -> None:
    context = make_context(headers=[*ROOT, ("X-Remote-Uid", "7")], tls=Tls(PROXY))
    user = await proxy().authenticate(context)
    assert user is not None
    assert user.uid == ""


async def test_the_first_configured_header_that_is_there_names_the_user() -> None:
    headers = [("X-Remote-User", "second"), ("X-First", "")]
    judge = proxy(username_headers=("X-First", "X-Remote-User"))
    user = await judge.authenticate(make_context(headers=headers, tls=Tls(PROXY)))
    assert user is not None
    assert user.name == "second"


async def test_a_proxy_that_names_nobody_is_no_credential() -> None:
    assert await proxy().authenticate(make_context(tls=Tls(PROXY))) is None


async def test_two_users_at_a_time_are_refused() -> None:
    context = make_context(headers=[("X-Remote-User", "alice"), ("X-Remote-User", "root")], tls=Tls(PROXY))
    with pytest.raises(BadRequest):
        await proxy().authenticate(context)


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(User("al\udcff"), id="name"),
        pytest.param(User("a", uid="\udcff"), id="uid"),
        pytest.param(User("a", groups=("ok", "\udcff")), id="group"),
        pytest.param(User("a", extra={"\udcff": ()}), id="extra key"),
        pytest.param(User("a", extra={"k": ("\udcff",)}), id="extra value"),
    ],
)
def test_bytes_that_are_no_utf_8_are_no_identity(user: User) -> None:
    assert not is_valid_utf8(user)


def test_any_script_is_an_identity() -> None:
    assert is_valid_utf8(User("älice", uid="7", groups=("опс",), extra={"k": ("値",)}))


async def test_a_name_that_is_not_allowed_is_refused() -> None:
    context = make_context(headers=ROOT, tls=Tls(make_client(PROXY_CA, "somebody")))
    with pytest.raises(AuthenticationError, match=r"^x509: subject with cn=somebody is not in the allowed list$"):
        await proxy(allowed_names=("front-proxy-client",)).authenticate(context)


SPOOFS = [
    pytest.param(ROOT, id="plain"),
    pytest.param([("x-rEMOTE-uSER", "root")], id="mixed case"),
    pytest.param([("X_Remote_User", "root")], id="underscores"),
    pytest.param([("X-Remote-User", "root"), ("X-Remote-User", "root")], id="twice"),
    pytest.param([("X-Remote-Group", "system:masters")], id="a group alone"),
    pytest.param([("X-Remote-Extra-Scopes", "all")], id="an extra alone"),
    pytest.param([("X-Remote-Uid", "0")], id="a uid alone"),
]
PEERS = [
    pytest.param(None, id="no certificate"),
    pytest.param(make_client(CLIENT_CA, "front-proxy-client"), id="the client CA's"),
    pytest.param(make_client(PROXY_CA, "somebody"), id="a name that is not allowed"),
]


@pytest.mark.parametrize("headers", SPOOFS)
async def test_identity_headers_without_a_certificate_are_a_401(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(Unauthorized):
        await union().authenticate(make_context(headers=headers))


@pytest.mark.parametrize("headers", SPOOFS)
@pytest.mark.parametrize("pair", PEERS)
async def test_identity_headers_never_lead_to_the_identity_that_they_claim(
    headers: list[tuple[str, str]], pair: KeyPair | None
) -> None:
    context = make_context(headers=headers, tls=Tls(pair) if pair else None)
    try:
        user = await union().authenticate(context)
    except Unauthorized:
        return
    # a client certificate of its own is another credential, and counts
    assert user.name == "front-proxy-client"
    assert user.groups == ("system:authenticated",)


async def test_forged_headers_are_ignored_beside_a_good_token() -> None:
    user = await union().authenticate(make_context(headers=[*ROOT, ("Authorization", "Bearer t")]))
    assert user == User(name="owner of t", groups=("system:authenticated",))


async def test_a_proxy_comes_before_a_token() -> None:
    context = make_context(headers=[*ROOT, ("Authorization", "Bearer t")], tls=Tls(PROXY))
    assert (await union().authenticate(context)).name == "root"


async def test_a_client_certificate_comes_before_a_token() -> None:
    context = make_context(headers=[("Authorization", "Bearer t")], tls=Tls(make_client(CLIENT_CA, "carol")))
    assert (await union().authenticate(context)).name == "carol"


async def test_a_token_comes_to_the_rescue_of_a_certificate_that_is_not_good() -> None:
    stranger = make_client(make_ca("another-ca"), "carol")
    with pytest.raises(Unauthorized):
        await union().authenticate(make_context(tls=Tls(stranger)))
    context = make_context(headers=[("Authorization", "Bearer t")], tls=Tls(stranger))
    assert (await union().authenticate(context)).name == "owner of t"


async def test_nobody_s_credentials_are_anonymous() -> None:
    assert await union().authenticate(make_context()) is ANONYMOUS


async def test_a_group_of_unauthenticated_users_stays_alone() -> None:
    headers = [("X-Remote-User", "system:anonymous"), ("X-Remote-Group", "system:unauthenticated")]
    user = await union().authenticate(make_context(headers=headers, tls=Tls(PROXY)))
    assert user.groups == ("system:unauthenticated",)


@pytest.mark.parametrize(
    ("key", "decoded"),
    [
        pytest.param("acme.com%2fscope", "acme.com/scope", id="escaped"),
        pytest.param("plain", "plain", id="plain"),
        pytest.param("50%", "50%", id="a broken escape at the end"),
        pytest.param("%zz%41", "%zz%41", id="a broken escape spoils all"),
        pytest.param("%c3%a4", "ä", id="UTF-8"),
    ],
)
def test_extra_keys_are_decoded_if_they_can_be(key: str, decoded: str) -> None:
    assert decode_extra_key(key) == decoded


def test_renamed_headers_count_as_identity_headers_too() -> None:
    config = RequestHeaderConfig(username_headers=("X-User",), extra_prefixes=("X-More-",))
    assert has_identity_headers(["x-user"], config)
    assert has_identity_headers(["X-More-Things"], config)
    assert not has_identity_headers(["X-Usher", "X-Moreover"], config)
