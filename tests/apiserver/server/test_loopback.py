"""A listener on loopback without TLS, on the event loops of both kinds of process that have one."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
from aiohttp import web

from apiserver.server.listener import CannotListen
from apiserver.server.loopback import listen_on_loopback
from apiserver.server.socket_owner import is_own, owner_of, owners_are_known
from tests.apiserver.server.https_listener import application


async def _ok(http: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _answers() -> bytes:
    listener = await listen_on_loopback(application(_ok), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n")
    writer.close()
    await listener.close()
    return head


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_request_is_answered(run: Callable[[Coroutine[Any, Any, bytes]], bytes]) -> None:
    assert run(_answers()) == b"HTTP/1.1 200 OK\r\n"


async def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"cannot listen on 127.0.0.1 port {port}: "):
            await listen_on_loopback(application(), "127.0.0.1", port)


async def test_both_addresses_of_loopback_are_listened_on() -> None:
    """A browser resolves names below localhost to both, and another account could listen on the one that is free."""
    for address, other in (("127.0.0.1", "::1"), ("::1", "127.0.0.1")):
        listener = await listen_on_loopback(application(_ok), address, 0)
        reader, writer = await asyncio.open_connection(other, listener.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        async with asyncio.timeout(10):
            assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        await listener.close()


async def test_a_port_that_another_server_has_on_the_other_address_is_told() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"cannot listen on ::1 port {port}: "):
            await listen_on_loopback(application(), "127.0.0.1", port)
        # what was opened before is closed again
        socket.create_server(("127.0.0.1", port)).close()


async def test_a_machine_without_the_other_address_needs_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one without IPv6, on which nobody else can listen there either."""
    addresses = {"127.0.0.1": socket.AF_INET, "2001:db8::1": socket.AF_INET6}
    monkeypatch.setattr("apiserver.server.loopback._ADDRESSES", addresses)
    listener = await listen_on_loopback(application(_ok), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.close()
    await listener.close()


async def test_the_oldest_of_too_many_connections_is_closed() -> None:
    listener = await listen_on_loopback(application(_ok), "127.0.0.1", 0)
    opened = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(201)]
    async with asyncio.timeout(10):
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await opened[0][0].readexactly(1)
        newest, writer = opened[-1]
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert await newest.readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
    for _, each in opened:
        each.close()
    await listener.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_owner_of_an_open_connection_is_known(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        with socket.create_connection(server.getsockname()[:2]) as client:
            ends = client.getsockname()[:2], client.getpeername()[:2]
            assert owner_of(*ends) == os.getuid()
        # the kernel shows a closed socket as root's
        assert owner_of(*ends) is None


async def test_a_system_that_does_not_tell_owners_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = await listen_on_loopback(application(_ok), "127.0.0.1", 0)
    assert await owners_are_known(("127.0.0.1", listener.port))
    monkeypatch.setattr("apiserver.server.socket_owner.TABLES", ())
    assert not await owners_are_known(("127.0.0.1", listener.port))
    await listener.close()


def test_other_accounts_are_not_ones_own() -> None:
    assert is_own(os.getuid())
    assert is_own(0)
    assert not is_own(os.getuid() + 1)
    assert not is_own(None)
