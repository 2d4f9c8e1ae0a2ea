"""The ports that tests give to the servers they start."""

from __future__ import annotations

import socket

import pytest

from tests.e2e.support.processes import free_port


def test_a_port_is_given_out_only_once_and_its_server_can_listen_at_it_again_and_again() -> None:
    port = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)) as server, socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()
