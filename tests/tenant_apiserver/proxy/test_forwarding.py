"""The part of a request that reaches the cluster, and of the answer that comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tenant_apiserver.proxy.proxied_upstream import (
    OWN_ACCOUNT,
    RunningProxy,
    proxied_upstream,
    user_certificate,
)

IDENTITY = ("impersonate-", "x-remote-", "authorization")
SMUGGLED = [
    pytest.param("X-Remote-User: admin", id="front proxy"),
    pytest.param("x_remote_user: admin", id="front proxy with underscores"),
    pytest.param("X-Remote-Extra-Scopes: all", id="extra of a front proxy"),
    pytest.param("Impersonate_User: admin", id="impersonation with underscores"),
    pytest.param("impersonate_group: system:masters", id="impersonated group with underscores"),
    pytest.param("Authorization: Basic YWRtaW46YWRtaW4=", id="basic credentials"),
]


async def test_a_request_is_forwarded_as_its_caller(proxy: RunningProxy) -> None:
    async with proxy.session(user_certificate("alice", "dev", "ops")) as session:
        response = await session.get("/api/v1/pods?limit=5&labelSelector=a%3Db", headers={"Cookie": "a=b"})
        assert (response.status, await response.text()) == (200, "ok")
        assert response.headers["Audit-ID"] == "of-the-cluster"
    [request] = proxy.upstream.forwarded
    assert (request.method, request.target) == ("GET", "/api/v1/pods?limit=5&labelSelector=a%3Db")
    assert request.values("impersonate-user") == ["alice"]
    assert request.values("impersonate-group") == ["dev", "ops", "system:authenticated"]
    [credential] = request.values("impersonate-extra-authentication.kubernetes.io%2fcredential-id")
    assert credential.startswith("X509SHA256=")
    assert request.values("x-forwarded-for") == ["127.0.0.1"]
    assert request.values("cookie") == ["a=b"]


async def test_a_request_without_credentials_is_anonymous(proxy: RunningProxy) -> None:
    async with proxy.session(None) as session:
        assert (await session.get("/version")).status == 200
    [request] = proxy.upstream.forwarded
    assert request.values("impersonate-user") == ["system:anonymous"]
    assert request.values("impersonate-group") == ["system:unauthenticated"]


async def test_anonymous_requests_can_be_refused(tmp_path: Path) -> None:
    async with proxied_upstream(tmp_path, "--anonymous-auth=false") as proxy, proxy.session(None) as session:
        assert (await session.get("/version")).status == 401
        assert (await session.get("/proxy/livez")).status == 200
        assert proxy.upstream.received == []


@pytest.mark.parametrize("line", SMUGGLED)
async def test_an_identity_header_of_the_client_is_dropped(proxy: RunningProxy, line: str) -> None:
    reader, writer = await proxy.send("GET /api HTTP/1.1", "Host: x", line, line.upper().replace("ADMIN", "admin"))
    assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()
    [request] = proxy.upstream.forwarded
    found = [each for each, _ in request.headers if each.replace("_", "-").startswith(IDENTITY)]
    assert sorted(set(found)) == [
        "impersonate-extra-authentication.kubernetes.io%2fcredential-id",
        "impersonate-group",
        "impersonate-user",
    ]
    assert request.values("impersonate-user") == ["alice"]
    assert request.values("impersonate-group") == ["system:authenticated"]


@pytest.mark.parametrize(
    "named", ["Impersonate-User", "impersonate-GROUP", "close, Impersonate-User", "Impersonate_User", "Authorization"]
)
async def test_a_connection_header_cannot_drop_the_identity(proxy: RunningProxy, named: str) -> None:
    """CVE-2022-23652: the next hop would serve the request with the rights of the proxy."""
    reader, writer = await proxy.send("GET /api HTTP/1.1", "Host: x", f"Connection: {named}")
    status = (await reader.readuntil(b"\r\n")).split()[1]
    writer.close()
    assert status in (b"400", b"200")
    for request in proxy.upstream.forwarded:
        assert request.values("impersonate-user") == ["alice"]
        assert request.values("connection") in ([], ["keep-alive"])


async def test_headers_that_connection_names_are_not_forwarded(proxy: RunningProxy) -> None:
    reader, writer = await proxy.send("GET /api HTTP/1.1", "Host: x", "Connection: X-Hop, close", "X-Hop: 1", "TE: x")
    await reader.readuntil(b"\r\n")
    writer.close()
    [request] = proxy.upstream.forwarded
    assert (request.values("x-hop"), request.values("te")) == ([], [])
    assert request.values("host") != ["x"]


@pytest.mark.parametrize("upgrade", [(), ("Connection: Upgrade", "Upgrade: websocket")], ids=["plain", "upgrade"])
@pytest.mark.parametrize(
    ("first", "target"),
    [
        ("GET http://evil.example.org/api?x=y HTTP/1.1", "/api?x=y"),
        ("GET http://evil.example.org HTTP/1.1", "/"),
        ("GET http://evil.example.org?x=@y HTTP/1.1", "/?x=@y"),
    ],
)
async def test_the_host_of_a_target_is_not_forwarded(
    proxy: RunningProxy, first: str, target: str, upgrade: tuple[str, ...]
) -> None:
    reader, writer = await proxy.send(first, "Host: x", *upgrade)
    await reader.readuntil(b"\r\n")
    writer.close()
    assert [each.target for each in proxy.upstream.forwarded] == [target]


@pytest.mark.parametrize("first", ["OPTIONS * HTTP/1.1", "CONNECT evil.example.org:443 HTTP/1.1"])
async def test_a_target_without_a_path_is_not_forwarded(proxy: RunningProxy, first: str) -> None:
    """`*` would become a part of the address of the cluster, and CONNECT ask the cluster for a tunnel."""
    reader, writer = await proxy.send(first, "Host: x")
    assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 400")
    writer.close()
    assert proxy.upstream.forwarded == []


@pytest.mark.parametrize(
    "target", ["/../../v3/users", "/api/%2e%2E/../../v3", "/..%2f../v3", "/%252e%252e/v3", "/..\\v3"]
)
async def test_no_target_leads_out_of_the_path_of_the_cluster(tmp_path: Path, target: str) -> None:
    """The server beside a cluster behind a path, as in `https://host/k8s/clusters/a`, may not know impersonation."""
    async with proxied_upstream(tmp_path, base_path="/k8s/a") as proxy:
        for upgrade in ((), ("Connection: Upgrade", "Upgrade: websocket")):
            reader, writer = await proxy.send(f"GET {target} HTTP/1.1", "Host: x", *upgrade)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 400")
            writer.close()
        async with proxy.session() as session:
            assert (await session.get("/api/v1/x..y?a=/../b")).status == 200
        assert [each.target for each in proxy.upstream.forwarded] == ["/k8s/a/api/v1/x..y?a=/../b"]


@pytest.mark.parametrize("group", ["system:masters", "system:nodes"])
async def test_privileged_callers_are_refused(tmp_path: Path, group: str) -> None:
    pair = user_certificate("root", "dev", group)
    async with proxied_upstream(tmp_path) as proxy, proxy.session(pair) as session:
        response = await session.get("/api")
        assert response.status == 403
        assert group in (await response.json())["message"]
        assert proxy.upstream.received == []
    async with proxied_upstream(tmp_path, "--allow-privileged-groups") as proxy, proxy.session(pair) as session:
        assert (await session.get("/api")).status == 200


@pytest.mark.parametrize("flag", ["--allow-privileged-groups=false", "--allow-privileged-groups"])
async def test_the_account_of_the_proxy_is_refused(tmp_path: Path, flag: str) -> None:
    async with proxied_upstream(tmp_path, flag) as proxy, proxy.session(user_certificate(OWN_ACCOUNT)) as session:
        assert (await session.get("/api")).status == 403
        assert proxy.upstream.received == []


async def test_nothing_is_forwarded_before_the_own_account_is_known(tmp_path: Path) -> None:
    async with proxied_upstream(tmp_path, own_account="") as proxy, proxy.session() as session:
        response = await session.get("/api")
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
        assert proxy.upstream.received == []


@pytest.mark.parametrize("name", ["admin ", " admin", "ad\tmin", "admin\x7f"])
async def test_an_identity_that_headers_would_change_is_refused(proxy: RunningProxy, name: str) -> None:
    """Servers trim header values: the user `admin ` would be served as `admin`."""
    async with proxy.session(user_certificate(name)) as session:
        assert (await session.get("/api")).status == 403
        assert proxy.upstream.received == []


async def test_impersonation_needs_a_review_of_each_part(proxy: RunningProxy) -> None:
    asked: list[tuple[object, object]] = []

    def allow(attributes: dict[str, object]) -> bool:
        asked.append((attributes["resource"], attributes["name"]))
        return attributes["name"] != "ops"

    proxy.upstream.allowed = allow
    async with proxy.session() as session:
        response = await session.get("/api", headers={"Impersonate-User": "bob", "Impersonate-Group": "dev"})
        assert response.status == 200
        refused = await session.get("/api", headers={"Impersonate-User": "bob", "Impersonate-Group": "ops"})
        assert refused.status == 403
        assert 'User "alice" cannot impersonate resource "groups"' in (await refused.json())["message"]
    [request] = proxy.upstream.forwarded
    assert request.values("impersonate-user") == ["bob"]
    assert request.values("impersonate-group") == ["dev", "system:authenticated"]
    assert asked == [("users", "bob"), ("groups", "dev"), ("users", "bob"), ("groups", "ops")]


async def test_nobody_becomes_a_cluster_administrator_by_impersonation(proxy: RunningProxy) -> None:
    proxy.upstream.allowed = lambda attributes: True
    async with proxy.session() as session:
        for headers in (
            {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"},
            {"Impersonate-User": OWN_ACCOUNT},
        ):
            assert (await session.get("/api", headers=headers)).status == 403
    assert proxy.upstream.forwarded == []


async def test_the_cluster_gone_is_a_503_that_says_when_to_retry(tmp_path: Path) -> None:
    async with proxied_upstream(tmp_path) as proxy, proxy.session() as session:
        proxy.upstream.answer = b"this is no HTTP"
        response = await session.get("/api")
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
        status = await response.json()
        assert (status["kind"], status["reason"], status["code"]) == ("Status", "ServiceUnavailable", 503)


async def test_a_401_for_the_proxy_is_no_401_for_the_caller(proxy: RunningProxy) -> None:
    proxy.upstream.answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"
    async with proxy.session() as session:
        assert (await session.get("/api")).status == 503
        assert len(proxy.upstream.forwarded) == 2
        assert (await session.post("/api", data=b"{}")).status == 503
        assert len(proxy.upstream.forwarded) == 3
        application = "/api/v1/namespaces/a/services/b/proxy/login"
        assert (await session.get(application)).status == 401


async def test_a_redirect_and_an_error_pass_unchanged(proxy: RunningProxy) -> None:
    proxy.upstream.answer = (
        b'HTTP/1.1 307 Temporary Redirect\r\nLocation: https://10.0.0.1/x\r\nWarning: 299 - "a"\r\n'
        b'Warning: 299 - "b"\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n'
    )
    async with proxy.session() as session:
        response = await session.get("/api", allow_redirects=False)
        assert (response.status, response.headers["Location"]) == (307, "https://10.0.0.1/x")
        assert response.headers.getall("Warning") == ['299 - "a"', '299 - "b"']
        assert response.headers["Retry-After"] == "7"


async def test_paths_of_the_proxy_are_not_forwarded(proxy: RunningProxy) -> None:
    async with proxy.session() as session:
        assert (await session.get("/proxy/livez")).status == 200
        assert (await session.get("/proxy/metrics")).status == 403
        assert (await session.get("/proxy/other")).status == 404
        assert proxy.upstream.forwarded == []
        assert (await session.get("/livez")).status == 200
    assert [each.target for each in proxy.upstream.forwarded] == ["/livez"]
