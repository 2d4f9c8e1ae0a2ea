"""Bytes of which this listener and the cluster could make different requests: the cluster gets those that the proxy has
authenticated, each as a whole and with the identity of its caller."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

import pytest

from tests.tenant_apiserver.proxy.proxied_upstream import RunningProxy

PATH = "/api/v1/namespaces/a/pods"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\nImpersonate-User: admin\r\n\r\n"
POST = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"0\r\n\r\n" + HIDDEN
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
WITH_LENGTH = f"Content-Length: {len(HIDDEN)}\r\n"

# all of them are refused
MALFORMED = [
    pytest.param(f"Content-Length: {len(CHUNKED)}\r\nTransfer-Encoding: chunked\r\n", CHUNKED, id="both framings"),
    pytest.param(f"Transfer-Encoding: chunked\r\nContent-Length: {len(CHUNKED)}\r\n", CHUNKED, id="both, reversed"),
    pytest.param(f"Content-Length: 0\r\n{WITH_LENGTH}", HIDDEN, id="two lengths"),
    pytest.param(f"Content-Length: 0, {len(HIDDEN)}\r\n", HIDDEN, id="a list of lengths"),
    pytest.param(f"Content-Length: +{len(HIDDEN)}\r\n", HIDDEN, id="a signed length"),
    pytest.param("Content-Length: -1\r\n", HIDDEN, id="a negative length"),
    pytest.param("Content-Length: 0x10\r\n", HIDDEN, id="a hexadecimal length"),
    pytest.param("Content-Length: 1_0\r\n", HIDDEN, id="a length with an underscore"),
    pytest.param("Content-Length: \u0661\r\n".encode().decode("latin-1"), HIDDEN, id="an Arabic digit"),
    pytest.param("Content-Length : 0\r\n", HIDDEN, id="a space before the colon"),
    pytest.param("Transfer-Encoding: chunked, identity\r\n", CHUNKED, id="chunked is not the last coding"),
    pytest.param("Transfer-Encoding: xchunked\r\n", CHUNKED, id="an unknown coding"),
    pytest.param("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", CHUNKED, id="two codings"),
    pytest.param("Transfer-Encoding:\x0bchunked\r\n", CHUNKED, id="a vertical tab before the coding"),
    pytest.param("X: y\r\n Transfer-Encoding: chunked\r\n", CHUNKED, id="folded"),
    pytest.param("X: y\nTransfer-Encoding: chunked\r\n", CHUNKED, id="a line feed alone"),
    pytest.param("X: y\rTransfer-Encoding: chunked\r\n", CHUNKED, id="a carriage return alone"),
    pytest.param("X: y\0\r\n", HIDDEN, id="a NUL"),
    pytest.param("X\xa0: y\r\n", HIDDEN, id="a name that is no token"),
    pytest.param("Transfer-Encoding: chunked\r\n", b"-1\r\n" + HIDDEN, id="a chunk of negative size"),
    pytest.param("Transfer-Encoding: chunked\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", id="a prefixed size"),
    pytest.param("Transfer-Encoding: chunked\r\n", b"5\nhello\n0\n\n" + HIDDEN, id="chunks with line feeds"),
    pytest.param("Transfer-Encoding: chunked\r\n", b"1\r\nab\r\n0\r\n\r\n" + HIDDEN, id="a chunk that is too long"),
]


@pytest.mark.parametrize(("headers", "rest"), MALFORMED)
async def test_a_request_that_can_be_read_in_two_ways_reaches_no_one(
    proxy: RunningProxy, headers: str, rest: bytes
) -> None:
    """The request itself may have begun to be forwarded, when its body turns out to be malformed; it does not end
    then."""
    answer = await exchange(proxy, f"{POST}{headers}\r\n".encode("latin-1") + rest)
    assert STATUS.findall(answer) == [b"400"], answer
    assert [each for each in proxy.upstream.forwarded if each.target != PATH] == []


@pytest.mark.parametrize("headers", [WITH_LENGTH, "Transfer-Encoding: chunked\r\n"], ids=["length", "chunked"])
async def test_a_body_that_looks_like_a_request_stays_a_body(proxy: RunningProxy, headers: str) -> None:
    body = HIDDEN if headers == WITH_LENGTH else b"%x\r\n%s\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)
    answer = await exchange(proxy, f"{POST}Connection: close\r\n{headers}\r\n".encode() + body)
    assert STATUS.findall(answer) == [b"200"]
    assert [each.target for each in proxy.upstream.forwarded] == [PATH]


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
async def test_a_body_of_a_method_that_has_none_stays_a_body(proxy: RunningProxy, method: str) -> None:
    """Not all servers read it."""
    head = f"{method} {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{WITH_LENGTH}\r\n"
    await exchange(proxy, head.encode() + HIDDEN)
    assert {each.target for each in proxy.upstream.forwarded} <= {PATH}


async def test_a_request_that_follows_another_is_one_of_the_same_caller(proxy: RunningProxy) -> None:
    """Pipelining is no smuggling: the request is reviewed, and its caller may not impersonate."""
    first = f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = await exchange(
        proxy, first.encode() + HIDDEN + b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    assert STATUS.findall(answer) == [b"200", b"403", b"200"]
    assert [each.target for each in proxy.upstream.forwarded] == [PATH, "/last"]
    assert {user for each in proxy.upstream.forwarded for user in each.values("impersonate-user")} == {"alice"}


async def test_the_body_of_an_upgrade_is_no_request(proxy: RunningProxy) -> None:
    """The cluster is told that there is none, and what follows is the stream."""
    head = f"{POST}Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n{WITH_LENGTH}\r\n"
    await exchange(proxy, head.encode() + HIDDEN, silence=0.2)
    assert {each.target for each in proxy.upstream.forwarded} <= {PATH}
    for each in proxy.upstream.forwarded:
        assert each.values("content-length") == ["0"]


async def exchange(proxy: RunningProxy, data: bytes, *, silence: float = 10) -> bytes:
    """The answer of the proxy until it ends the connection, or is silent for some seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=proxy.tls())
    received = b""
    try:
        writer.write(data)
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(silence):
                while more := await reader.read(65536):
                    received += more
    finally:
        writer.transport.abort()
    return received
