"""Settings from the ConfigMap extension-apiserver-authentication and from flags (WIRE-A6 to WIRE-A10)."""

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
    """Records the CA bundles that the TLS listener gets."""

    def __init__(self) -> None:
        self.bundles: list[bytes] = []

    def __call__(self, bundle: bytes) -> None:
        self.bundles.append(bundle)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def delegation(listener: Listener) -> DelegatedAuthentication:
    return DelegatedAuthentication(from_flags=ClusterAuthenticationInfo(), on_change=listener)


def test_the_configmap_is_parsed(delegation: DelegatedAuthentication, listener: Listener) -> None:
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


def test_uid_headers_are_read_if_the_cluster_sets_them(delegation: DelegatedAuthentication) -> None:
    run_coroutine(delegation.replace([configmap(requestheader_uid_headers='["X-Remote-Uid"]')], 1))
    assert delegation.request_header().uid_headers == ("X-Remote-Uid",)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"client_ca_file": "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----"}, id="bad CA"),
        pytest.param({"client_ca_file": "nothing"}, id="no CA at all"),
        pytest.param({"requestheader_allowed_names": "a,b"}, id="a list that is not JSON"),
        pytest.param({"requestheader_group_headers": '{"a": 1}'}, id="JSON that is not a list"),
        pytest.param({"requestheader_group_headers": "[1]"}, id="a list of numbers"),
    ],
)
def test_invalid_data_leaves_the_previous_settings(
    delegation: DelegatedAuthentication, listener: Listener, broken: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    run_coroutine(delegation.replace([configmap()], 1))
    before = delegation.current
    delegation.apply("MODIFIED", configmap(**broken), 2)
    assert delegation.current == before
    assert len(listener.bundles) == 1
    assert "keeping the previous settings" in caplog.text


def test_a_changed_configmap_replaces_the_settings(delegation: DelegatedAuthentication, listener: Listener) -> None:
    run_coroutine(delegation.replace([configmap()], 1))
    other = make_ca("other").certificate
    delegation.apply("MODIFIED", configmap(client_ca_file=other.decode()), 2)
    assert delegation.client_ca() == other
    assert listener.bundles[-1] == other + b"\n" + PROXY_CA


def test_a_configmap_that_is_created_later_is_used(delegation: DelegatedAuthentication) -> None:
    run_coroutine(delegation.replace([], 1))
    assert delegation.request_header().ca_pem == b""
    delegation.apply("ADDED", configmap(), 2)
    assert delegation.request_header().ca_pem == PROXY_CA


def test_a_deleted_configmap_changes_nothing(delegation: DelegatedAuthentication) -> None:
    run_coroutine(delegation.replace([configmap()], 1))
    before = delegation.current
    delegation.apply("DELETED", configmap(), 2)
    assert delegation.current == before


def test_flags_take_precedence_over_the_cluster(listener: Listener) -> None:
    own = make_ca("own").certificate
    delegation = DelegatedAuthentication(from_flags=ClusterAuthenticationInfo(client_ca=own), on_change=listener)
    run_coroutine(delegation.replace([configmap()], 1))
    assert (delegation.client_ca(), delegation.request_header().ca_pem) == (own, PROXY_CA)


def test_a_request_header_ca_from_a_flag_replaces_all_request_header_settings(listener: Listener) -> None:
    own = RequestHeaderConfig(ca_pem=make_ca("own").certificate, allowed_names=("me",))
    delegation = DelegatedAuthentication(from_flags=ClusterAuthenticationInfo(request_header=own), on_change=listener)
    run_coroutine(delegation.replace([configmap()], 1))
    assert delegation.request_header() == own


def test_both_files_are_reloaded_if_they_change_together(listener: Listener) -> None:
    first = ClusterAuthenticationInfo(client_ca=CLIENT_CA, request_header=RequestHeaderConfig(ca_pem=PROXY_CA))
    delegation = DelegatedAuthentication(from_flags=first, on_change=listener)
    clients, proxies = (make_ca(name).certificate for name in ("more clients", "more proxies"))
    delegation.reload_client_ca(clients)
    delegation.reload_request_header_ca(proxies)
    assert (delegation.client_ca(), delegation.request_header().ca_pem) == (clients, proxies)
    assert (
        listener.bundles[-1]
        == ClusterAuthenticationInfo(client_ca=clients, request_header=RequestHeaderConfig(ca_pem=proxies)).bundle()
    )


def test_a_ca_file_without_a_certificate_is_rejected(listener: Listener) -> None:
    delegation = DelegatedAuthentication(from_flags=ClusterAuthenticationInfo(client_ca=CLIENT_CA), on_change=listener)
    for reload in (delegation.reload_client_ca, delegation.reload_request_header_ca):
        with pytest.raises(ValueError, match="holds no certificate"):
            reload(b"half a fi")
    assert delegation.client_ca() == CLIENT_CA
    assert listener.bundles == []
