"""The files of the page, its headers, and requests that do not come from it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest

from tenant_apiserver import __version__
from tests.tenant_apiserver.ui.running_page import TENANTS, RunningPage, read_answer, running_page

_AS_ACCOUNT = """\
import encodings.idna, http.client, os, sys
account, host, cookie = sys.argv[1:]
# another account may not be able to read Python's own modules
os.setuid(int(account))
connection = http.client.HTTPConnection(host)
connection.request("GET", "/session", headers={"Cookie": cookie})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def test_the_page_loads_nothing_but_its_own_files(page: RunningPage) -> None:
    for target, status in (("/", 200), ("/static/none.js", 404), ("/session", 200), (TENANTS, 200), ("/api/v1", 200)):
        answer = await page.get(target)
        assert answer.status == status
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert not [name for name in answer.headers if name.startswith("Access-Control-")]
        assert "Server" not in answer.headers


@pytest.mark.parametrize(
    ("target", "media_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/static/main.js", "text/javascript; charset=utf-8"),
        ("/static/style.css", "text/css; charset=utf-8"),
        ("/static/icon.svg", "image/svg+xml"),
    ],
)
async def test_a_file_is_revalidated_by_its_etag(page: RunningPage, target: str, media_type: str) -> None:
    answer = await page.get(target)
    assert answer.headers["Content-Type"] == media_type
    assert answer.headers["Cache-Control"] == "no-cache"
    etag = answer.headers["ETag"]
    assert etag.startswith('"')
    again = await page.get(target, {"If-None-Match": etag})
    assert (again.status, again.body, again.headers["ETag"]) == (304, b"", etag)
    head = await page.request("HEAD", target, {})
    assert (head.status, head.headers["ETag"]) == (200, etag)


@pytest.mark.parametrize(
    "target",
    [
        "/static/",
        "/static/../application.py",
        "/static/..%2fapplication.py",
        "/static//main.js",
        "/main.js",
        "/index.html",
    ],
)
async def test_no_other_file_is_served(page: RunningPage, target: str) -> None:
    assert (await page.get(target)).status == 404


async def test_the_session_says_who_the_user_is(page: RunningPage) -> None:
    answer = await page.get("/session")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert json.loads(answer.body) == {
        "user": "alice",
        "cluster": page.cluster,
        "namespace": None,
        "readOnly": False,
        "version": __version__,
    }


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1", "127.0.0.1:1", "attacker.example:{port}"])
async def test_another_name_of_the_host_is_refused_with_a_valid_session(page: RunningPage, host: str) -> None:
    """DNS rebinding: the hostname of the attacker resolves to 127.0.0.1."""
    for target in ("/", TENANTS):
        answer = await page.get(target, {"Host": host.format(port=page.port)})
        assert answer.status == 421
    assert page.upstream.received == []


async def test_a_request_without_or_with_two_hosts_is_refused(page: RunningPage) -> None:
    cookie = f"Cookie: {page.cookie}"
    assert (await page.send("GET / HTTP/1.0", cookie)).status == 421
    two = await page.send("GET / HTTP/1.1", f"Host: {page.host}", "Host: attacker.example", cookie)
    assert two.status in (400, 421)
    absolute = await page.send("GET http://attacker.example/ HTTP/1.1", f"Host: {page.host}", cookie)
    assert absolute.status == 400


async def test_a_write_of_another_page_is_refused_with_a_valid_session(page: RunningPage) -> None:
    """The browser would add the cookie for another port of 127.0.0.1, which is the same site."""
    own = page.own_origin
    for headers in (
        {},
        {**own, "Origin": "http://127.0.0.1:6666"},
        {**own, "Origin": "null"},
        {**own, "Sec-Fetch-Site": "same-site"},
        {name: value for name, value in own.items() if name != "X-Tenant-UI"},
        {name: value for name, value in own.items() if name != "Origin"},
    ):
        answer = await page.request("POST", TENANTS, {**headers, "Content-Type": "text/plain"}, b"{}")
        assert answer.status == 403
        assert json.loads(answer.body)["kind"] == "Status"
    assert page.upstream.received == []


async def test_a_preflight_gets_no_permission(page: RunningPage) -> None:
    headers = {"Origin": "https://attacker.example", "Access-Control-Request-Method": "DELETE"}
    answer = await page.request("OPTIONS", TENANTS, headers)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("Access-Control-")]


async def test_a_link_of_another_site_shows_how_to_get_to_the_page(page: RunningPage) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    answer = await page.get("/", headers)
    assert answer.status == 403
    assert f"Type the address into the address bar: http://{page.host}/".encode() in answer.body


async def test_the_page_is_served_on_the_loopback_of_ipv6() -> None:
    async with running_page(address="::1") as page:
        await page.log_in()
        assert (await page.get("/session")).status == 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another account")
async def test_another_account_of_the_machine_gets_nothing_even_with_the_cookie(page: RunningPage) -> None:
    """A browser sends the cookies of 127.0.0.1 to the servers of all accounts, which can present them here."""
    target = [page.host, page.cookie]

    def answer(account: int) -> str:
        command = [sys.executable, "-I", "-c", _AS_ACCOUNT, str(account), *target]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    assert (await asyncio.to_thread(answer, os.getuid())).startswith("200")
    refused = await asyncio.to_thread(answer, 65534)
    assert refused.startswith("403")
    assert "the connection comes from another account of this machine" in refused


async def test_connections_of_strangers_do_not_close_that_of_the_user(page: RunningPage) -> None:
    head = ["GET /session HTTP/1.1", f"Host: {page.host}", f"Cookie: {page.cookie}"]
    async with asyncio.timeout(20):
        reader, writer = await page.open(*head)
        assert (await read_answer(reader)).status == 200
        strangers = [await asyncio.open_connection(page.address, page.port) for _ in range(250)]
        writer.write("\r\n".join([*head, "", ""]).encode())
        assert (await read_answer(reader)).status == 200
    for each in (writer, *(other for _, other in strangers)):
        each.close()
