"""The warning about a connection that was not closed names the test that opened it."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest


def leave_open(address: tuple[str, int]) -> None:
    async def connect() -> None:
        await asyncio.get_running_loop().create_connection(asyncio.Protocol, *address)

    asyncio.run(connect())
    gc.collect()


def test_an_unclosed_connection_names_the_test_that_opened_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.warns(ResourceWarning) as warned:
        leave_open(listener.getsockname())
    [message] = [str(each.message) for each in warned if "unclosed transport" in str(each.message)]
    assert "opened by tests/test_named_transports.py::test_an_unclosed_connection_names_the_test" in message
