"""Malformed HTTP requests are answered with a Status and not logged; unusual ones reach the filters."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import ssl
import time
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from apiserver.endpoints.filters.error_response import ErrorResponses
from apiserver.endpoints.filters.response_headers import ResponseHeaders
from apiserver.request.context import RequestContext
from apiserver.server.app import Api, build_app
from apiserver.server.bounded_parser import HeadLimits
from apiserver.server.http_protocol import HttpProtocol
from apiserver.server.listener import ConnectionLimits, Listener, listen
from apiserver.tls.certificates import make_ca, make_serving
from apiserver.tls.openssl_tls import OpenSslServerTls
from tests.cpu_time import LeastRatio, without_collector

CA = make_ca("connection-ca")
TLS = ssl.create_default_context(cadata=CA.certificate.decode())
LIMITS = ConnectionLimits(heads=HeadLimits(line=8192, head=16_384, headers=200))


async def echo(context: RequestContext) -> web.StreamResponse | None:
    if context.info.path == "/fails":
        raise web.HTTPConflict
    return web.json_response({"path": context.info.path, "query": context.query.get("q")})


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    app = build_app(Api(endpoints={}, responders=(echo,), paths=list), [ResponseHeaders(), ErrorResponses()])
    tls = OpenSslServerTls(make_serving(CA, ["127.0.0.1"]))
    opened = await listen(app, tls=tls, host="127.0.0.1", port=0, grace=1, limits=LIMITS)
    yield opened
    await opened.close()


class Content:
    """Can be referenced weakly."""


async def test_what_a_request_has_held_is_freed_with_its_response() -> None:
    """ATTACK-19: the selectors and contexts of many requests would wait for a garbage collection."""
    held: list[weakref.ref[Content]] = []

    async def hold(context: RequestContext) -> web.StreamResponse:
        context.http["content"] = content = Content()
        held.append(weakref.ref(content))
        return web.Response()

    app = build_app(Api(endpoints={}, responders=(hold,), paths=list), [ResponseHeaders(), ErrorResponses()])
    tls = OpenSslServerTls(make_serving(CA, ["127.0.0.1"]))
    listener = await listen(app, tls=tls, host="127.0.0.1", port=0, grace=1, limits=LIMITS)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=TLS)
    gc.disable()
    try:
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            async with asyncio.timeout(10):
                await reader.readuntil(b"\r\n\r\n")
        assert [each() for each in held[:2]] == [None, None]
    finally:
        gc.enable()
        writer.close()
        await listener.close()


async def test_what_a_watch_has_held_is_freed_with_its_connection() -> None:
    """ATTACK-19: with the connection and its parser, which are old then, so that a collection would come late."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hold(context: RequestContext) -> web.StreamResponse:
        context.http["content"] = content = Content()
        weakref.finalize(content, ended.set)
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    app = build_app(Api(endpoints={}, responders=(hold,), paths=list), [ResponseHeaders(), ErrorResponses()])
    tls = OpenSslServerTls(make_serving(CA, ["127.0.0.1"]))
    listener = await listen(app, tls=tls, host="127.0.0.1", port=0, grace=1, limits=LIMITS)
    gc.collect()
    gc.disable()
    try:
        async with asyncio.timeout(10):
            _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=TLS)
            writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            await begun.wait()
            writer.transport.abort()
            await ended.wait()
        await listener.close()
        assert not any(isinstance(each, HttpProtocol) for each in gc.get_objects())
    finally:
        gc.enable()


async def exchange(listener: Listener, sent: bytes) -> tuple[int, dict[str, str], Any]:
    """The status code, headers and JSON of the first response. The server must close the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=TLS)
    writer.write(sent)
    async with asyncio.timeout(10):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    line, *fields = head.decode().split("\r\n")
    headers = dict(field.split(": ", 1) for field in fields)
    return int(line.split()[1]), headers, json.loads(body[: int(headers["Content-Length"])])


def request(target: str, method: str = "GET", *fields: str) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: h", "Connection: close", *fields]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        pytest.param(b"\x00\x01\xff\r\n\r\n", 405, "does not allow this method", id="noise"),
        pytest.param(request("/", "BREW"), 405, "does not allow this method", id="an unknown method"),
        pytest.param(request("/", "get"), 405, "does not allow this method", id="a method in lower case"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", 400, "Bad status line", id="a later version"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, "Missing 'Host' header", id="no Host"),
        pytest.param(request("/", "GET", "Host: b"), 400, "Duplicate 'Host' header", id="two Hosts"),
        pytest.param(request("/", "GET", "A B: c"), 400, "Invalid header token", id="a space in a header's name"),
        pytest.param(request("/", "GET", "A: \0"), 400, "Invalid header value char", id="NUL in a header"),
        pytest.param(request("/", "GET", "A: b", " c"), 400, "Unexpected whitespace", id="a folded header"),
        pytest.param(request("/\xe4"), 400, "the target is not a valid URL", id="a non-ASCII letter in the path"),
        pytest.param(request("/a\0b"), 400, "the target is not a valid URL", id="NUL in the path"),
        pytest.param(request("/a\nb"), 400, "Invalid header token", id="a line break in the path"),
        pytest.param(request("https://[::1"), 400, "the target is not a valid URL", id="a broken absolute target"),
        pytest.param(request("/" + "a" * 8192), 414, "line is longer than 8192 bytes", id="a long line"),
        pytest.param(b"a" * 8193, 414, "line is longer than 8192 bytes", id="a line without an end"),
        pytest.param(request("/", "GET", f"A: {'b' * 16_384}"), 431, "longer than 16384 bytes", id="a long header"),
        pytest.param(request("/", "GET", *[f"A: {'b' * 1000}"] * 17), 431, "longer than 16384", id="long headers"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 3000, 431, "longer than 16384", id="a head without an end"),
        pytest.param(request("/", "GET", *["A: b"] * 199), 431, "more than 200 headers", id="many headers"),
        pytest.param(b"GET / HTTP/1.1\nHost: h\n\n", 400, "Bad status line", id="line breaks without carriage returns"),
        pytest.param(request("/", "POST", "Content-Length: x"), 400, "Content-Length", id="an invalid length"),
        pytest.param(request("/", "POST", "Content-Length: -1"), 400, "Content-Length", id="a negative length"),
        pytest.param(
            request("/", "POST", "Content-Length: 5", "Content-Length: 6"), 400, "Content-Length", id="two lengths"
        ),
        pytest.param(
            request("/", "POST", "Content-Length: 5", "Transfer-Encoding: chunked"),
            400,
            "Transfer-Encoding",
            id="a length and chunks",
        ),
        pytest.param(
            request("/", "POST", "Transfer-Encoding: gzip, chunked"),
            501,
            "the Transfer-Encoding is not supported",
            id="chunks of a compressed body",
        ),
        pytest.param(
            request("/", "POST", "Transfer-Encoding:", "Content-Length: 3") + b"abc",
            501,
            "the Transfer-Encoding is not supported",
            id="an empty Transfer-Encoding",
        ),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "the version of HTTP is not supported", id="HTTP/2"),
        pytest.param(
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            501,
            "the Transfer-Encoding is not supported",
            id="chunks in HTTP/1.0",
        ),
        pytest.param(
            b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, "the version of HTTP is not supported", id="HTTP/2 as text"
        ),
        pytest.param(
            request("/", "POST", "Transfer-Encoding: chunked") + b"zz\r\n", 400, "chunk size", id="a bad chunk size"
        ),
        pytest.param(
            request("/", "POST", "Transfer-Encoding: chunked") + b"1\r\nab\r\n", 400, "chunk", id="a chunk too long"
        ),
    ],
)
async def test_a_malformed_request_is_a_status(
    listener: Listener, caplog: pytest.LogCaptureFixture, sent: bytes, code: int, message: str
) -> None:
    with caplog.at_level(logging.INFO):
        status, headers, body = await exchange(listener, sent)
    assert (status, body["kind"], body["code"]) == (code, "Status", code)
    assert message in body["message"]
    assert "b'" not in body["message"]
    assert (headers["Content-Type"], headers["Server"]) == ("application/json", "apiserver")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("target", "path"),
    [
        pytest.param("/a%0Ab", "/a\nb", id="a line break"),
        pytest.param("/a%0d%0aX-A:%20b", "/a\r\nX-A: b", id="a header in the path"),
        pytest.param("/a%00b", "/a\0b", id="NUL"),
        pytest.param("/a%2Fb", "/a/b", id="an escaped slash"),
        pytest.param("//a", "//a", id="two slashes"),
        pytest.param("/a/../b", "/a/../b", id="dots"),
        pytest.param("https://elsewhere/a", "/a", id="absolute form"),
    ],
)
async def test_every_target_reaches_the_filters(listener: Listener, target: str, path: str) -> None:
    status, headers, body = await exchange(listener, request(target))
    assert (status, body["path"]) == (200, path)
    assert "Audit-ID" in headers
    assert "Server" not in headers


async def test_the_asterisk_form_reaches_the_filters(listener: Listener) -> None:
    status, headers, body = await exchange(listener, request("*", "OPTIONS"))
    assert (status, body["path"]) == (200, "*")
    assert "Audit-ID" in headers


async def test_the_absolute_form_keeps_its_query(listener: Listener) -> None:
    _, _, body = await exchange(listener, request("https://elsewhere/a?q=b%2Bc"))
    assert (body["path"], body["query"]) == ("/a", "b+c")


async def test_a_path_of_many_segments_takes_linear_time() -> None:
    app = build_app(Api(endpoints={}, responders=(echo,), paths=list), [ResponseHeaders(), ErrorResponses()])
    tls = OpenSslServerTls(make_serving(CA, ["127.0.0.1"]))
    opened = await listen(app, tls=tls, host="127.0.0.1", port=0, grace=1)
    # aiohttp's router tries one segment after the other, which takes 0.1 s for one such path
    ratio = LeastRatio(below=3)

    async def seconds(path: str) -> float:
        """The processor time of the event loop, which serves as well as calls."""
        started = time.thread_time()
        status, _, body = await exchange(opened, request(path))
        assert (status, body["path"]) == (200, path)
        return time.thread_time() - started

    try:
        with without_collector():
            while ratio.is_undecided:
                ratio.add(await seconds("/" + "a/" * 15_000), baseline=await seconds("/" + "a" * 30_000))
    finally:
        await opened.close()
    assert ratio.value < 3


async def test_pipelined_requests_are_answered_in_order_up_to_a_malformed_one(listener: Listener) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=TLS)
    whole = b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n"
    writer.write(whole % 1)
    assert b'"/1"' in await reader.readuntil(b"}")
    writer.write(b"".join([whole % 2, whole % 3]))
    assert b'"/2"' in await reader.readuntil(b"}")
    assert b'"/3"' in await reader.readuntil(b"}")
    writer.write(b"BREW / HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(10):
        assert b'"code":405' in await reader.read()
    writer.close()


@pytest.mark.parametrize(
    ("expected", "first"),
    [
        pytest.param("100-continue", b"HTTP/1.1 100 Continue", id="100-continue"),
        pytest.param("a miracle", b"HTTP/1.1 200 OK", id="something else"),
    ],
)
async def test_only_100_continue_is_expected(listener: Listener, expected: str, first: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=TLS)
    writer.write(request("/", "POST", f"Expect: {expected}", "Content-Length: 2") + b"{}")
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(first)
    assert b"HTTP/1.1 200 OK" in answer


async def test_an_aiohttp_error_is_a_status(listener: Listener) -> None:
    status, _, body = await exchange(listener, request("/fails"))
    assert (status, body["kind"], body["code"]) == (409, "Status", 409)
