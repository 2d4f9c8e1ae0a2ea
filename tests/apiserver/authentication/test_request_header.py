"""Identities in the headers of a front proxy, and attempts to forge them (ATTACK-01)."""

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
    """The authenticators of a server behind the kube-aggregator."""
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


async def test_name_uid_groups_and_extra_come_from_the_proxy_headers() -> None:
    headers = [
        ("x-remote-user", "alice"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "b,c"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Extra-Acme.com%2fScope", "one"),
        ("x-remote-extra-acme.com%2Fscope", "two"),
        ("X-Remote-Extra-100%", "unchanged"),
    ]
    user = await proxy(uid_headers=("X-Remote-Uid",)).authenticate(make_context(headers=headers, tls=Tls(PROXY)))
    assert user == User(
        name="alice",
        uid="7",
        groups=("b,c", "a", "a"),
        extra={"acme.com/scope": ("one", "two"), "100%": ("unchanged",)},
    )


async def test_a_uid_header_that_is_not_configured_is_ignored() -> None:
    context = make_context(headers=[*ROOT, ("X-Remote-Uid", "7")], tls=Tls(PROXY))
    user = await proxy().authenticate(context)
    assert user is not None
    assert user.uid == ""


async def test_the_first_configured_username_header_with_a_value_names_the_user() -> None:
    headers = [("X-Remote-User", "second"), ("X-First", "")]
    authenticator = proxy(username_headers=("X-First", "X-Remote-User"))
    user = await authenticator.authenticate(make_context(headers=headers, tls=Tls(PROXY)))
    assert user is not None
    assert user.name == "second"


async def test_a_proxy_request_without_a_username_has_no_credential() -> None:
    assert await proxy().authenticate(make_context(tls=Tls(PROXY))) is None


async def test_a_repeated_username_header_is_a_bad_request() -> None:
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
def test_an_identity_that_is_not_utf8_is_invalid(user: User) -> None:
    assert not is_valid_utf8(user)


def test_an_identity_may_use_any_script() -> None:
    assert is_valid_utf8(User("älice", uid="7", groups=("опс",), extra={"k": ("値",)}))


async def test_a_proxy_certificate_whose_name_is_not_allowed_is_rejected() -> None:
    context = make_context(headers=ROOT, tls=Tls(make_client(PROXY_CA, "somebody")))
    with pytest.raises(AuthenticationError, match=r"^x509: subject with cn=somebody is not in the allowed list$"):
        await proxy(allowed_names=("front-proxy-client",)).authenticate(context)


SPOOFS = [
    pytest.param(ROOT, id="plain"),
    pytest.param([("x-rEMOTE-uSER", "root")], id="mixed case"),
    pytest.param([("X_Remote_User", "root")], id="underscores"),
    pytest.param([("X-Remote-User", "root"), ("X-Remote-User", "root")], id="twice"),
    pytest.param([("X-Remote-Group", "system:masters")], id="only a group"),
    pytest.param([("X-Remote-Extra-Scopes", "all")], id="only an extra"),
    pytest.param([("X-Remote-Uid", "0")], id="only a uid"),
]
PEERS = [
    pytest.param(None, id="no certificate"),
    pytest.param(make_client(CLIENT_CA, "front-proxy-client"), id="a certificate of the client CA"),
    pytest.param(make_client(PROXY_CA, "somebody"), id="a name that is not allowed"),
]


@pytest.mark.parametrize("headers", SPOOFS)
async def test_identity_headers_without_a_certificate_are_a_401(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(Unauthorized):
        await union().authenticate(make_context(headers=headers))


@pytest.mark.parametrize("headers", SPOOFS)
@pytest.mark.parametrize("pair", PEERS)
async def test_forged_identity_headers_never_yield_the_claimed_identity(
    headers: list[tuple[str, str]], pair: KeyPair | None
) -> None:
    context = make_context(headers=headers, tls=Tls(pair) if pair else None)
    try:
        user = await union().authenticate(context)
    except Unauthorized:
        return
    # the client certificate is a valid credential of its own
    assert user.name == "front-proxy-client"
    assert user.groups == ("system:authenticated",)


async def test_forged_headers_are_ignored_if_the_token_is_valid() -> None:
    user = await union().authenticate(make_context(headers=[*ROOT, ("Authorization", "Bearer t")]))
    assert user == User(name="owner of t", groups=("system:authenticated",))


async def test_a_front_proxy_takes_precedence_over_a_token() -> None:
    context = make_context(headers=[*ROOT, ("Authorization", "Bearer t")], tls=Tls(PROXY))
    assert (await union().authenticate(context)).name == "root"


async def test_a_client_certificate_takes_precedence_over_a_token() -> None:
    context = make_context(headers=[("Authorization", "Bearer t")], tls=Tls(make_client(CLIENT_CA, "carol")))
    assert (await union().authenticate(context)).name == "carol"


async def test_a_valid_token_authenticates_despite_an_untrusted_certificate() -> None:
    stranger = make_client(make_ca("another-ca"), "carol")
    with pytest.raises(Unauthorized):
        await union().authenticate(make_context(tls=Tls(stranger)))
    context = make_context(headers=[("Authorization", "Bearer t")], tls=Tls(stranger))
    assert (await union().authenticate(context)).name == "owner of t"


async def test_a_request_without_credentials_is_anonymous() -> None:
    assert await union().authenticate(make_context()) is ANONYMOUS


async def test_unauthenticated_users_do_not_join_system_authenticated() -> None:
    headers = [("X-Remote-User", "system:anonymous"), ("X-Remote-Group", "system:unauthenticated")]
    user = await union().authenticate(make_context(headers=headers, tls=Tls(PROXY)))
    assert user.groups == ("system:unauthenticated",)


@pytest.mark.parametrize(
    ("key", "decoded"),
    [
        pytest.param("acme.com%2fscope", "acme.com/scope", id="escaped"),
        pytest.param("plain", "plain", id="plain"),
        pytest.param("50%", "50%", id="an invalid escape at the end"),
        pytest.param("%zz%41", "%zz%41", id="one invalid escape disables decoding"),
        pytest.param("%c3%a4", "ä", id="UTF-8"),
    ],
)
def test_extra_keys_are_percent_decoded_if_valid(key: str, decoded: str) -> None:
    assert decode_extra_key(key) == decoded


def test_configured_header_names_count_as_identity_headers() -> None:
    config = RequestHeaderConfig(username_headers=("X-User",), extra_prefixes=("X-More-",))
    assert has_identity_headers(["x-user"], config)
    assert has_identity_headers(["X-More-Things"], config)
    assert not has_identity_headers(["X-Usher", "X-Moreover"], config)
