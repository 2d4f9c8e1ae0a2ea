"""ATTACK-03: headers of identity that a proxy is told to drop, and what of a client's headers reaches the host."""

from __future__ import annotations

import json

import pytest

from tests.attacks.proxied_replica import Replica
from tests.e2e.support.clusters import ROOT, E2eCluster, KubeCluster, tenants_path
from tests.e2e.support.https_client import Client, Response
from tests.e2e.support.raw_tls import RawTls
from tests.e2e.support.tenants import manifest

ONE = tenants_path(ROOT, "root")
HIDDEN = [
    pytest.param(["Connection: X-Remote-User, Impersonate-User"], id="users"),
    pytest.param(["Connection: Authorization"], id="token"),
    pytest.param(["Connection: authoriZATION"], id="mixed case"),
    pytest.param(["connection: close, x-remote-group"], id="behind close"),
    pytest.param(["Connection: close", "Connection: X-Remote-User"], id="in a second header"),
    pytest.param(["Connection: keep-alive", "CONNECTION: upgrade,  \tImpersonate-Group\t "], id="with blanks"),
    pytest.param(["Connection: X-Remote-Extra-Scopes"], id="an extra"),
    pytest.param(["Connection: X-Remote-Uid"], id="a uid"),
    pytest.param(["Connection: X_Remote_User"], id="underscores"),
    pytest.param(["Connection: Impersonate-Extra-Scopes"], id="an extra of impersonation"),
    pytest.param(["Connection: ,,X-Remote-User,,"], id="between commas"),
    pytest.param(["Connection: X-Remote-User", "X-Remote-User: admin"], id="with the header itself"),
]


def ask(client: Client, lines: list[str]) -> Response:
    with RawTls(client) as connection:
        connection.send_request_lines("GET", ONE, *lines)
        return connection.read_response()


def straight(cluster: E2eCluster) -> Client:
    return cluster.direct_client() if isinstance(cluster, KubeCluster) else cluster.client()


@pytest.mark.parametrize("lines", HIDDEN)
def test_to_hide_an_identity_is_a_bad_request(cluster: E2eCluster, lines: list[str]) -> None:
    """Even from an administrator."""
    if cluster.kind == "external" and cluster.direct_url == cluster.url:
        pytest.skip("ATTACK_SERVER does not say where our own server is")
    client = straight(cluster)
    client.get(ONE).expect(200)
    assert ask(client, lines).expect(400)["reason"] == "BadRequest"


@pytest.mark.parametrize("lines", HIDDEN)
def test_the_front_proxy_is_not_made_to_hide_one(kube: KubeCluster, lines: list[str]) -> None:
    proxied = ["X-Remote-User: somebody", "X-Remote-Group: system:masters"]
    assert ask(kube.front_proxy_client(), proxied).status == 200
    assert ask(kube.front_proxy_client(), [*proxied, *lines]).status == 400


@pytest.mark.parametrize("lines", HIDDEN)
def test_through_the_front_a_user_stays_who_they_are(cluster: E2eCluster, unique: str, lines: list[str]) -> None:
    """capsule-proxy#188. What stands in front drops such headers itself, or passes them on to be refused."""
    answer = ask(cluster.client(unique), lines)
    assert answer.status in (400, 403), answer.body
    assert answer.status == 400 or f'User "{unique}" cannot get' in answer.json()["message"]


def test_other_names_are_no_attempt(cluster: E2eCluster) -> None:
    for value in ("close", "keep-alive", "close, Foo", "X-Remote, Authorization-Info, Impersonate"):
        assert ask(straight(cluster), [f"Connection: {value}"]).status == 200


def test_nothing_that_a_client_sends_is_sent_on(replica: Replica, unique: str) -> None:
    """Neither in name nor in value: what is asked of the host is asked by the server, in its own words."""
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
    paths = [ONE, tenants_path(ROOT), tenants_path(ROOT, "missing"), tenants_path("nowhere")]
    for path in paths:
        client.get(path, headers=fields)
    made = client.request("POST", tenants_path(ROOT), body, query={"dryRun": "All"}, headers=fields)
    assert made.status == 201, made.body
    replica.client(unique).get(ONE, headers=fields).expect(403)
    token = {**fields, "Authorization": f"Bearer {word}"}
    assert replica.nobody().get(ONE, headers=token).status == 401
    asked = tuple(replica.between.asked)
    assert [each for each in asked if each.method == "POST" and each.path.endswith("/helmreleases")]
    assert [each for each in asked if "subjectaccessreviews" in each.path]
    assert [each for each in asked if word in json.dumps(each.headers)] == []
    sent = {name.lower() for each in asked for name, _ in each.headers}
    assert sent.isdisjoint({"cookie", "x-attack", "x-forwarded-for", "x-forwarded-user", "forwarded", "referer"})
    assert not any(name.startswith(("x-remote-", "impersonate-")) for name in sent)
