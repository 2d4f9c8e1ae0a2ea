"""The ConfigMap extension-apiserver-authentication, read and followed (WIRE-A6 to WIRE-A10)."""

from __future__ import annotations

import json

import pytest

from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.meta.resource import Object
from apiserver.tls.certificates import make_ca
from tenant_apiserver.certificates.delegated_authentication import ClusterAuthenticationInfo, DelegatedAuthentication
from tests.run_coroutine import run_coroutine

CLIENT_CA, PROXY_CA = (make_ca(name).certificate for name in ("clients", "proxies"))


def configmap(**changed: str | None) -> Object:
    data: dict[str, str | None] = {
        "client-ca-file": CLIENT_CA.decode(),
        "requestheader-client-ca-file": PROXY_CA.decode(),
        "requestheader-allowed-names": json.dumps(["front-proxy-client"]),
        "requestheader-username-headers": json.dumps(["X-Remote-User"]),
        "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
        "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
        **{key.replace("_", "-"): value for key, value in changed.items()},
    }
    return {"metadata": {}, "data": {key: value for key, value in data.items() if value is not None}}


class Listener:
    """What the TLS listener is told to trust."""

    def __init__(self) -> None:
        self.bundles: list[bytes] = []

    def __call__(self, bundle: bytes) -> None:
        self.bundles.append(bundle)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def delegation(listener: Listener) -> DelegatedAuthentication:
    return DelegatedAuthentication(fixed=ClusterAuthenticationInfo(), on_change=listener)


def test_the_configmap_is_read(delegation: DelegatedAuthentication, listener: Listener) -> None:
    run_coroutine(delegation.replace([configmap()], 1))
    assert delegation.client_ca() == CLIENT_CA
    assert delegation.request_header() == RequestHeaderConfig(
        ca_pem=PROXY_CA,
        allowed_names=("front-proxy-client",),
        username_headers=("X-Remote-User",),
        uid_headers=(),
        group_headers=("X-Remote-Group",),
        extra_prefixes=("X-Remote-Extra-",),
    )
    assert listener.bundles == [CLIENT_CA + b"\n" + PROXY_CA]


def test_uid_headers_are_read_where_the_cluster_names_them(delegation: DelegatedAuthentication) -> None:
    run_coroutine(delegation.replace([configmap(requestheader_uid_headers='["X-Remote-Uid"]')], 1))
    assert delegation.request_header().uid_headers == ("X-Remote-Uid",)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"client_ca_file": "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----"}, id="bad CA"),
        pytest.param({"client_ca_file": "nothing"}, id="no CA at all"),
        pytest.param({"requestheader_allowed_names": "a,b"}, id="a list that is no JSON"),
        pytest.param({"requestheader_group_headers": '{"a": 1}'}, id="JSON that is no list"),
        pytest.param({"requestheader_group_headers": "[1]"}, id="a list of something else"),
    ],
)
def test_what_cannot_be_read_leaves_the_old_settings(
    delegation: DelegatedAuthentication, listener: Listener, broken: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    run_coroutine(delegation.replace([configmap()], 1))
    before = delegation.current
    delegation.apply("MODIFIED", configmap(**broken), 2)
    assert delegation.current == before
    assert len(listener.bundles) == 1
    assert "the old settings stay" in caplog.text


def test_a_change_is_followed(delegation: DelegatedAuthentication, listener: Listener) -> None:
    run_coroutine(delegation.replace([configmap()], 1))
    other = make_ca("other").certificate
    delegation.apply("MODIFIED", configmap(client_ca_file=other.decode()), 2)
    assert delegation.client_ca() == other
    assert listener.bundles[-1] == other + b"\n" + PROXY_CA


def test_a_missing_configmap_is_waited_for(delegation: DelegatedAuthentication) -> None:
    run_coroutine(delegation.replace([], 1))
    assert delegation.request_header().ca_pem == b""
    delegation.apply("ADDED", configmap(), 2)
    assert delegation.request_header().ca_pem == PROXY_CA


def test_a_deleted_configmap_changes_nothing(delegation: DelegatedAuthentication) -> None:
    run_coroutine(delegation.replace([configmap()], 1))
    before = delegation.current
    delegation.apply("DELETED", configmap(), 2)
    assert delegation.current == before


def test_flags_go_before_the_host(listener: Listener) -> None:
    own = make_ca("own").certificate
    delegation = DelegatedAuthentication(fixed=ClusterAuthenticationInfo(client_ca=own), on_change=listener)
    run_coroutine(delegation.replace([configmap()], 1))
    assert (delegation.client_ca(), delegation.request_header().ca_pem) == (own, PROXY_CA)


def test_a_request_header_ca_of_a_flag_brings_its_own_names(listener: Listener) -> None:
    own = RequestHeaderConfig(ca_pem=make_ca("own").certificate, allowed_names=("me",))
    delegation = DelegatedAuthentication(fixed=ClusterAuthenticationInfo(request_header=own), on_change=listener)
    run_coroutine(delegation.replace([configmap()], 1))
    assert delegation.request_header() == own


def test_files_that_change_together_both_count(listener: Listener) -> None:
    first = ClusterAuthenticationInfo(client_ca=CLIENT_CA, request_header=RequestHeaderConfig(ca_pem=PROXY_CA))
    delegation = DelegatedAuthentication(fixed=first, on_change=listener)
    clients, proxies = (make_ca(name).certificate for name in ("more clients", "more proxies"))
    delegation.reload_client_ca(clients)
    delegation.reload_request_header_ca(proxies)
    assert (delegation.client_ca(), delegation.request_header().ca_pem) == (clients, proxies)
    assert (
        listener.bundles[-1]
        == ClusterAuthenticationInfo(client_ca=clients, request_header=RequestHeaderConfig(ca_pem=proxies)).bundle()
    )


def test_a_file_without_a_certificate_is_refused(listener: Listener) -> None:
    delegation = DelegatedAuthentication(fixed=ClusterAuthenticationInfo(client_ca=CLIENT_CA), on_change=listener)
    for refuse in (delegation.reload_client_ca, delegation.reload_request_header_ca):
        with pytest.raises(ValueError, match="holds no certificate"):
            refuse(b"half a fi")
    assert delegation.client_ca() == CLIENT_CA
    assert listener.bundles == []
