"""ATTACK-01: identity headers that only a front proxy may send, sent by others.

Requests of a genuine front proxy are tested in tests/e2e/identity/test_front_proxy_spoofing.py.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.tls.certificates import make_ca, make_client
from tests.attacks.support.proxied_replica import Replica
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.control_plane import FRONT_PROXY
from tests.e2e.support.clusters.credentials import client_certificate_context
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.http.raw_tls import RawTls

ROOT_TENANT = tenants_path(ROOT, "root")
AUTHENTICATION_CONFIGMAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
CUSTOM_HEADER = "X-Custom-User"
MASTERS = "system:masters"
SPELLINGS = [
    pytest.param(["X-Remote-User: {}", f"X-Remote-Group: {MASTERS}"], id="plain"),
    pytest.param(["x-rEmOtE-uSeR: {}", f"X-REMOTE-GROUP: {MASTERS}"], id="mixed case"),
    pytest.param(["X_Remote_User: {}", f"X_Remote_Group: {MASTERS}"], id="underscores"),
    pytest.param(["X-Remote_User: {}", f"X_Remote-Group: {MASTERS}"], id="an underscore"),
    pytest.param(["X-Remote-User: {}", "X-Remote-User: {}", f"X-Remote-Group: {MASTERS}"], id="twice"),
    pytest.param(["X-Remote-User: nobody, {}", f"X-Remote-Group: a, {MASTERS}"], id="lists"),
    pytest.param([f"X-Remote-Group: {MASTERS}"], id="a group alone"),
    pytest.param(["X-Remote-User: ", f"X-Remote-Group: {MASTERS}"], id="an empty user"),
    pytest.param(["X-Remote-Uid: {}"], id="a uid"),
    pytest.param(["X-Remote-Extra-Scopes: {}"], id="an extra"),
    pytest.param(["X-Remote-User: {}", "X-Remote-Extra-%58: {}"], id="an encoded extra"),
]
MALFORMED = [
    pytest.param(["X-Remote-User: nobody\r\n {}", f"X-Remote-Group: {MASTERS}"], id="folded"),
    pytest.param(["Accept: */*\r\n\tX-Remote-User: {}"], id="folded into another"),
    pytest.param(["X-Remote-User : {}", f"X-Remote-Group: {MASTERS}"], id="a space before the colon"),
    pytest.param([" X-Remote-User: {}", f"X-Remote-Group: {MASTERS}"], id="a space before the name"),
    pytest.param(["X-Remote-User: {}\0", f"X-Remote-Group: {MASTERS}"], id="a NUL"),
    pytest.param(["X-Remote-User: a\rX-Remote-Group: {}"], id="half a line break"),
]


def get_with_headers(client: Client, lines: list[str], name: str) -> Response:
    with RawTls(client) as connection:
        connection.send_request_lines("GET", ROOT_TENANT, *(line.replace("{}", name) for line in lines))
        return connection.read_response()


@pytest.fixture
def anonymous_client(cluster: E2eCluster) -> Client:
    """A client that connects directly to our server without credentials."""
    return Client(cluster.direct_url, ssl._create_unverified_context(), {})


@pytest.mark.parametrize("lines", SPELLINGS)
def test_identity_headers_without_a_certificate_are_rejected(anonymous_client: Client, lines: list[str]) -> None:
    assert get_with_headers(anonymous_client, lines, "admin").expect(401)["reason"] == "Unauthorized"


@pytest.mark.parametrize("lines", MALFORMED)
def test_malformed_identity_headers_authenticate_nobody(anonymous_client: Client, lines: list[str]) -> None:
    answer = get_with_headers(anonymous_client, lines, "admin")
    # a header that becomes part of another one is no identity header: the request is anonymous, and forbidden
    assert answer.status in (400, 401, 403), answer.body
    if answer.status == 403:
        assert 'User "system:anonymous" cannot get' in answer.json()["message"]


@pytest.mark.parametrize("lines", SPELLINGS)
def test_identity_headers_with_a_certificate_of_another_ca_are_rejected(
    cluster: E2eCluster, tmp_path: Path, lines: list[str]
) -> None:
    """The certificate has the common name of the front proxy and the group of administrators."""
    pair = make_client(make_ca("attacker"), FRONT_PROXY, [MASTERS])
    client = Client(cluster.direct_url, client_certificate_context(pair, tmp_path), {})
    assert get_with_headers(client, lines, "admin").expect(401)["reason"] == "Unauthorized"


@pytest.mark.parametrize("lines", SPELLINGS)
def test_identity_headers_with_a_user_certificate_are_ignored(
    cluster: E2eCluster, unique: str, lines: list[str]
) -> None:
    """As at kube-apiserver, the request is authenticated by its valid certificate, whatever its headers (WIRE-A11)."""
    own = cluster.direct_client(unique) if isinstance(cluster, KubeCluster) else cluster.client(unique)
    for client in (own, cluster.client(unique)):
        message = get_with_headers(client, lines, "admin").expect(403)["message"]
        assert f'User "{unique}" cannot get' in message


@pytest.mark.parametrize("lines", SPELLINGS)
def test_a_front_proxy_with_another_name_is_rejected(kube: KubeCluster, lines: list[str]) -> None:
    assert (
        get_with_headers(kube.front_proxy_client("another-proxy"), lines, "admin").expect(401)["reason"]
        == "Unauthorized"
    )


TWO_USERS = [
    pytest.param(["X-Remote-User: a", "X-Remote-User: b"], id="twice"),
    pytest.param(["X-Remote-User: a", "x-remote-USER: b"], id="in another case"),
    pytest.param(["X-Remote-User: a", "X-Remote-User: a"], id="the same"),
    pytest.param(
        ["X-Remote-User: a", "Accept: */*", f"X-Remote-Group: {MASTERS}", "X-Remote-User: "], id="an empty one"
    ),
]


@pytest.mark.parametrize("lines", TWO_USERS)
def test_a_front_proxy_that_names_two_users_is_rejected(kube: KubeCluster, lines: list[str]) -> None:
    assert get_with_headers(kube.front_proxy_client(), lines, "").status in (400, 401)


def test_only_the_configured_spelling_of_identity_headers_counts(kube: KubeCluster, unique: str) -> None:
    """Headers in another spelling, which a client smuggles past the front proxy, are ignored."""
    lines = [f"X-Remote-User: {unique}", "X_Remote_User: admin", f"X_Remote_Group: {MASTERS}", "Remote-User: admin"]
    assert (
        f'User "{unique}" cannot get' in get_with_headers(kube.front_proxy_client(), lines, "").expect(403)["message"]
    )


@pytest.fixture
def cluster_with_custom_header(kube: KubeCluster) -> Iterator[KubeCluster]:
    """A cluster with a second, custom header for the user name beside the usual one."""
    kind, key = "application/merge-patch+json", "requestheader-username-headers"
    client = kube.client()
    before = client.get(AUTHENTICATION_CONFIGMAP).expect(200)["data"][key]
    extended = json.dumps([CUSTOM_HEADER, *json.loads(before)])
    client.request("PATCH", AUTHENTICATION_CONFIGMAP, {"data": {key: extended}}, content_type=kind).expect(200)
    try:
        proxy = kube.front_proxy_client()
        headers = {CUSTOM_HEADER: "admin", "X-Remote-Group": MASTERS}
        wait_until("the custom header is read", lambda: proxy.get(ROOT_TENANT, headers=headers).status == 200)
        yield kube
    finally:
        client.request("PATCH", AUTHENTICATION_CONFIGMAP, {"data": {key: before}}, content_type=kind).expect(200)


@pytest.mark.parametrize(
    "name", [CUSTOM_HEADER, CUSTOM_HEADER.lower(), CUSTOM_HEADER.replace("-", "_"), "X-Remote-User"]
)
def test_custom_identity_headers_need_a_front_proxy_as_well(
    cluster_with_custom_header: KubeCluster, unique: str, name: str
) -> None:
    """kubernetes#119631: neither configured header names nor the usual ones count without the certificate."""
    lines = [f"{name}: admin", f"X-Remote-Group: {MASTERS}"]
    assert get_with_headers(cluster_with_custom_header.anonymous_client(), lines, "").status == 401
    assert get_with_headers(cluster_with_custom_header.front_proxy_client("another-proxy"), lines, "").status == 401
    for client in (cluster_with_custom_header.direct_client(unique), cluster_with_custom_header.client(unique)):
        assert f'User "{unique}" cannot get' in get_with_headers(client, lines, "").expect(403)["message"]


def test_spoofed_identities_reach_no_review_and_no_log(replica: Replica, unique: str) -> None:
    """The headers are dropped early: no review for the cluster and no log line contains the spoofed name."""
    person, spoofed = f"person-{unique}", f"spoofed-{unique}"
    for each in SPELLINGS:
        [lines] = each.values
        assert isinstance(lines, list)
        assert get_with_headers(replica.anonymous_client(), lines, spoofed).status == 401
        assert get_with_headers(replica.client(person), lines, spoofed).status == 403
    reviewed = [json.loads(each.body)["spec"]["user"] for each in replica.requests_to("subjectaccessreviews")]
    assert person in reviewed
    assert spoofed not in reviewed
    sent = [each for each in tuple(replica.proxy.requests) if spoofed in f"{each.headers}{each.body!r}{each.target}"]
    assert sent == []
    wait_until("the requests are logged", lambda: person in replica.process.log())
    assert spoofed not in replica.process.log()
