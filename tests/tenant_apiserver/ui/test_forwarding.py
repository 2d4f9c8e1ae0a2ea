"""Requests that reach the cluster, and its answers."""

from __future__ import annotations

import asyncio
import json

import pytest

from tenant_apiserver import __version__
from tests.tenant_apiserver.ui.running_page import TENANTS, RunningPage, read_answer, running_page

LIST = "/apis/apps.cozystack.io/v1alpha1/tenants"
EVENT = b'{"type":"ADDED","object":{}}\n'


async def test_a_read_reaches_the_cluster_with_nothing_of_the_browser(page: RunningPage) -> None:
    answer = await page.get(
        f"{LIST}?limit=500&labelSelector=a%3Db",
        {
            "Accept": "application/json",
            "Accept-Language": "de",
            "Authorization": "Bearer of-the-browser",
            "Impersonate-User": "system:admin",
            "Impersonate-Group": "system:masters",
            "Impersonate_User": "system:admin",
            "X-Remote-User": "system:admin",
            "X-Forwarded-For": "192.0.2.1",
            "X-HTTP-Method-Override": "DELETE",
            "Connection": "Accept, X-Remote-User",
            "User-Agent": "Mozilla/5.0",
            "Referer": "http://127.0.0.1/",
        },
    )
    assert (answer.status, answer.body) == (200, b"ok")
    [request] = page.upstream.received
    assert (request.method, request.target) == ("GET", f"{LIST}?limit=500&labelSelector=a%3Db")
    assert dict(request.headers) == {
        "host": request.values("host")[0],
        "accept": "application/json",
        "user-agent": f"tenant-ui/{__version__}",
    }


async def test_a_write_reaches_the_cluster_with_its_body(page: RunningPage) -> None:
    bodies: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head.lower()
        bodies.append(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(
            b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        )
        await writer.drain()
        writer.close()

    page.upstream.on_connection = serve
    answer = await page.write("POST", f"{TENANTS}?dryRun=All", b'{"kind":"Tenant"}')
    assert (answer.status, answer.body) == (422, b"{}")
    assert b'{"kind":"Tenant"}' in bodies[0]


async def test_the_answer_of_the_cluster_is_passed_without_its_credentials(page: RunningPage) -> None:
    page.upstream.answer = (
        b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 17\r\nSet-Cookie: a=theirs\r\n"
        b"WWW-Authenticate: Basic\r\nLocation: https://elsewhere.example\r\nAccess-Control-Allow-Origin: *\r\n"
        b"Content-Security-Policy: none\r\nRefresh: 0\r\nWarning: 299 - told\r\nAudit-Id: of-the-cluster\r\n\r\n"
        b'{"kind":"Status"}'
    )
    answer = await page.get(LIST)
    assert (answer.status, answer.body) == (403, b'{"kind":"Status"}')
    assert (answer.headers["Warning"], answer.headers["Audit-Id"]) == ("299 - told", "of-the-cluster")
    for name in ("Set-Cookie", "WWW-Authenticate", "Location", "Access-Control-Allow-Origin", "Refresh"):
        assert name not in answer.headers
    assert answer.headers.getall("Content-Security-Policy")[0].startswith("default-src 'none'; ")
    assert len(answer.headers.getall("Content-Security-Policy")) == 1


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/secrets",
        "/api/v1/namespaces/tenant-a/secrets/db",
        "/apis/core.cozystack.io/v1alpha1/tenantsecrets",
        "/api/v1/namespaces/../secrets",
        "/api/v1/namespaces/%2e%2e/secrets",
        "/api/v1/namespaces/a%2f..%2f..%2fsecrets",
        "/api/v1/watch/secrets",
        "/apis/apps/v1/deployments",
        "/openapi/v2",
    ],
)
async def test_a_path_that_the_page_does_not_need_ends_here(page: RunningPage, target: str) -> None:
    answer = await page.get(target)
    assert answer.status in (400, 403)
    assert json.loads(answer.body)["kind"] == "Status"
    assert page.upstream.received == []


async def test_a_write_of_anything_but_a_tenant_ends_here(page: RunningPage) -> None:
    for method, target in (
        ("POST", "/api/v1/namespaces"),
        ("DELETE", TENANTS),
        ("PUT", f"{TENANTS}/a/status"),
        ("PATCH", "/api/v1/namespaces/a"),
    ):
        answer = await page.write(method, target)
        assert answer.status == 403
        assert "use kubectl for it" in json.loads(answer.body)["message"]
    assert page.upstream.received == []


async def test_a_page_that_only_reads_writes_nothing_but_asks_for_rights() -> None:
    async with running_page(read_only=True) as page:
        await page.log_in()
        for method, target in (("POST", TENANTS), ("DELETE", f"{TENANTS}/a"), ("PATCH", f"{TENANTS}/a?dryRun=All")):
            answer = await page.write(method, target)
            assert answer.status == 403
            assert "--read-only" in json.loads(answer.body)["message"]
        assert page.upstream.received == []
        assert json.loads((await page.get("/session")).body)["readOnly"] is True


@pytest.mark.parametrize("body", [b"{}", b'{"dryRun":[]}', b"dryRun: [All]", b"[]", b'{"dryRun":"All"}'])
@pytest.mark.parametrize("query", ["dryRun=All", "a=b&%64ryRun=All"])
async def test_a_deletion_is_no_dry_run_by_its_query_alone(page: RunningPage, query: str, body: bytes) -> None:
    """Kubernetes ignores the query of a deletion that has a body, and would delete."""
    answer = await page.write("DELETE", f"{TENANTS}/a?{query}", body)
    assert answer.status == 400
    assert "dryRun" in json.loads(answer.body)["message"]
    assert page.upstream.received == []


@pytest.mark.parametrize(
    ("query", "body"),
    [("?dryRun=All", b'{"dryRun":["All"]}'), ("", b"{}"), ("?dryRun=All", b"")],
    ids=["both", "none", "no body"],
)
async def test_a_deletion_that_says_one_thing_reaches_the_cluster(page: RunningPage, query: str, body: bytes) -> None:
    assert (await page.write("DELETE", f"{TENANTS}/a{query}", body)).status == 200
    assert len(page.upstream.received) == 1


async def test_an_upgrade_is_refused(page: RunningPage) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "eA==",
    }
    assert (await page.get(f"{LIST}?watch=1", headers)).status == 403
    assert page.upstream.received == []


async def test_a_second_request_in_a_body_stays_a_body(page: RunningPage) -> None:
    """Contradictory lengths are refused, and the bytes after a request are one of the page's own checks."""
    smuggled = b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n"
    head = [f"GET {LIST} HTTP/1.1", f"Host: {page.host}", f"Cookie: {page.cookie}"]
    both = await page.send(*head, "Content-Length: 4", "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + smuggled)
    assert both.status == 400
    with_body = await page.send(*head, f"Content-Length: {len(smuggled)}", body=smuggled)
    assert with_body.status == 400
    reader, writer = await page.open(*head, body=smuggled)
    assert (await read_answer(reader)).status == 200
    assert (await read_answer(reader)).status == 421
    writer.close()
    assert [each.target for each in page.upstream.received] == [LIST]


async def test_a_body_that_no_kube_apiserver_accepts_is_not_sent(page: RunningPage) -> None:
    answer = await page.write("POST", TENANTS, b"x" * (3 * 1024 * 1024 + 1))
    assert answer.status == 413
    assert page.upstream.received == []


async def test_a_cluster_that_is_gone_is_told(page: RunningPage) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    page.upstream.on_connection = hang_up
    answer = await page.get(LIST)
    assert answer.status == 503
    assert json.loads(answer.body)["reason"] == "ServiceUnavailable"


class _Watch:
    """A cluster whose answer has no end."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        sending = asyncio.create_task(self._send(writer))
        try:
            assert await reader.read() == b""
        finally:
            sending.cancel()
            writer.close()
            self.ended.set()

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        while True:
            event = await self.events.get()
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()


async def _watch(page: RunningPage) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await page.open(
        f"GET {LIST}?watch=1 HTTP/1.1", f"Host: {page.host}", f"Cookie: {page.cookie}", "Sec-Fetch-Site: same-origin"
    )
    assert (await read_answer(reader)).headers["Transfer-Encoding"] == "chunked"
    return reader, writer


async def test_each_event_of_a_watch_arrives_at_once(page: RunningPage) -> None:
    watch = _Watch()
    page.upstream.on_connection = watch.serve
    async with asyncio.timeout(20):
        reader, writer = await _watch(page)
        for _ in range(3):
            watch.events.put_nowait(EVENT)
            assert await reader.readuntil(b"\r\n") == b"%x\r\n" % len(EVENT)
            assert await reader.readexactly(len(EVENT) + 2) == EVENT + b"\r\n"
        writer.close()
        await watch.ended.wait()


async def test_a_watch_ends_when_the_page_does(page: RunningPage) -> None:
    watch = _Watch()
    page.upstream.on_connection = watch.serve
    async with asyncio.timeout(20):
        reader, writer = await _watch(page)
        await page.server.close()
        await watch.ended.wait()
        await reader.read()
        writer.close()
