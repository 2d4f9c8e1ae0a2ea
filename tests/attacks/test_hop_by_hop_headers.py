"""ATTACK-03: Connection headers that make a proxy drop identity headers, and client headers that reach the cluster."""

from __future__ import annotations

import json

import pytest

from tests.attacks.support.proxied_replica import Replica
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.http.raw_tls import RawTls
from tests.e2e.support.tenants import manifest

ROOT_TENANT = tenants_path(ROOT, "root")
HIDING_HEADERS = [
    pytest.param(["Connection: X-Remote-User, Impersonate-User"], id="users"),
    pytest.param(["Connection: Authorization"], id="token"),
    pytest.param(["Connection: authoriZATION"], id="mixed case"),
    pytest.param(["connection: close, x-remote-group"], id="behind close"),
    pytest.param(["Connection: close", "Connection: X-Remote-User"], id="in a second Connection header"),
    pytest.param(["Connection: keep-alive", "CONNECTION: upgrade,  \tImpersonate-Group\t "], id="with white space"),
    pytest.param(["Connection: X-Remote-Extra-Scopes"], id="an extra"),
    pytest.param(["Connection: X-Remote-Uid"], id="a uid"),
    pytest.param(["Connection: X_Remote_User"], id="underscores"),
    pytest.param(["Connection: Impersonate-Extra-Scopes"], id="an extra of impersonation"),
    pytest.param(["Connection: ,,X-Remote-User,,"], id="between commas"),
    pytest.param(["Connection: X-Remote-User", "X-Remote-User: admin"], id="with the header itself"),
]


def get_with_headers(client: Client, lines: list[str]) -> Response:
    with RawTls(client) as connection:
        connection.send_request_lines("GET", ROOT_TENANT, *lines)
        return connection.read_response()


def direct_client_of(cluster: E2eCluster) -> Client:
    return cluster.direct_client() if isinstance(cluster, KubeCluster) else cluster.client()


@pytest.mark.parametrize("lines", HIDING_HEADERS)
def test_hiding_identity_headers_is_a_bad_request(cluster: E2eCluster, lines: list[str]) -> None:
    """An administrator gets a 400 as well."""
    if cluster.kind == "external" and cluster.direct_url == cluster.url:
        pytest.skip("ATTACK_SERVER does not say where our own server is")
    client = direct_client_of(cluster)
    client.get(ROOT_TENANT).expect(200)
    assert get_with_headers(client, lines).expect(400)["reason"] == "BadRequest"


@pytest.mark.parametrize("lines", HIDING_HEADERS)
def test_hiding_identity_headers_of_the_front_proxy_is_a_bad_request(kube: KubeCluster, lines: list[str]) -> None:
    proxied = ["X-Remote-User: somebody", "X-Remote-Group: system:masters"]
    assert get_with_headers(kube.front_proxy_client(), proxied).status == 200
    assert get_with_headers(kube.front_proxy_client(), [*proxied, *lines]).status == 400


@pytest.mark.parametrize("lines", HIDING_HEADERS)
def test_a_user_behind_the_aggregator_keeps_their_identity(cluster: E2eCluster, unique: str, lines: list[str]) -> None:
    """capsule-proxy#188: the aggregator either removes such headers itself or forwards them, and the request fails."""
    answer = get_with_headers(cluster.client(unique), lines)
    assert answer.status in (400, 403), answer.body
    assert answer.status == 400 or f'User "{unique}" cannot get' in answer.json()["message"]


def test_other_connection_headers_are_allowed(cluster: E2eCluster) -> None:
    for value in ("close", "keep-alive", "close, Foo", "X-Remote, Authorization-Info, Impersonate"):
        assert get_with_headers(direct_client_of(cluster), [f"Connection: {value}"]).status == 200


def test_headers_of_clients_are_not_forwarded_to_the_cluster(replica: Replica, unique: str) -> None:
    """Neither names nor values of client headers appear in the server's own requests to the cluster."""
    word = f"word-{unique}"
    fields = {
        "Cookie": f"session={word}",
        "X-Attack": word,
        "X-Forwarded-For": "198.51.100.7",
        "X-Forwarded-User": word,
        "Forwarded": f"for={word}",
        "User-Agent": f"agent/{word}",
        "Referer": f"https://{word}.example",
        "Proxy-Authorization": f"Basic {word}",
        "Accept-Language": word,
        "Traceparent": f"00-{word}",
        "Audit-ID": word,
    }
    client, body = replica.client(), manifest(f"{unique}")
    paths = [ROOT_TENANT, tenants_path(ROOT), tenants_path(ROOT, "missing"), tenants_path("nowhere")]
    for path in paths:
        client.get(path, headers=fields)
    created = client.request("POST", tenants_path(ROOT), body, query={"dryRun": "All"}, headers=fields)
    assert created.status == 201, created.body
    replica.client(unique).get(ROOT_TENANT, headers=fields).expect(403)
    token = {**fields, "Authorization": f"Bearer {word}"}
    assert replica.anonymous_client().get(ROOT_TENANT, headers=token).status == 401
    requests = tuple(replica.proxy.requests)
    assert [each for each in requests if each.method == "POST" and each.path.endswith("/helmreleases")]
    assert [each for each in requests if "subjectaccessreviews" in each.path]
    assert [each for each in requests if word in json.dumps(each.headers)] == []
    sent = {name.lower() for each in requests for name, _ in each.headers}
    assert sent.isdisjoint({"cookie", "x-attack", "x-forwarded-for", "x-forwarded-user", "forwarded", "referer"})
    assert not any(name.startswith(("x-remote-", "impersonate-")) for name in sent)
