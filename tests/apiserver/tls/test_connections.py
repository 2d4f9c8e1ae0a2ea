"""The connections of unidentified clients and of each user are limited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from apiserver.tls.connections import UNIDENTIFIED, Connections


class FakeTransport(asyncio.Transport):
    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections
        self.aborted = False
        self.closing = False
        connections.opened(self)

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.aborted = True
        self._connections.closed(self)


def aborted(transports: list[FakeTransport]) -> list[int]:
    return [index for index, transport in enumerate(transports) if transport.aborted]


def test_above_the_limit_the_oldest_unidentified_connection_is_closed() -> None:
    connections = Connections(unidentified=3)
    opened = [FakeTransport(connections) for _ in range(3)]
    connections.identify(opened[0], "alice", lambda: True)
    opened += [FakeTransport(connections) for _ in range(3)]
    assert aborted(opened) == [1, 2]
    assert len(connections) == 4
    connections.closed(opened[3])
    opened.append(FakeTransport(connections))
    assert aborted(opened) == [1, 2]


@pytest.mark.parametrize(
    ("owners", "closed"),
    [
        pytest.param({0: "alice", 1: None}, [2], id="valid certificates"),
        pytest.param({0: UNIDENTIFIED}, [0, 1, 2], id="an invalid certificate"),
    ],
)
def test_a_connection_with_a_valid_client_certificate_is_identified_instead(
    owners: Mapping[int, str | None], closed: list[int]
) -> None:
    opened: list[FakeTransport] = []

    def owner_of(transport: asyncio.Transport) -> str | None:
        return owners.get(opened.index(transport), UNIDENTIFIED)  # type: ignore[arg-type]

    connections = Connections(unidentified=3, owner_of=owner_of)
    for _ in range(6):
        opened.append(FakeTransport(connections))
    assert aborted(opened) == closed


def test_above_the_limit_an_idle_connection_of_the_user_is_closed() -> None:
    connections = Connections(per_user=3)
    opened = [FakeTransport(connections) for _ in range(6)]
    idle = {1, 2, 4, 5}
    for index, transport in enumerate(opened[:5]):
        connections.identify(transport, "alice", lambda index=index: index in idle)  # type: ignore[misc]
    connections.identify(opened[5], "bob", lambda: True)
    assert aborted(opened) == [1, 2]


def test_a_connection_that_waits_for_its_client_to_close_it_counts_as_idle() -> None:
    connections = Connections(per_user=1)
    opened = [FakeTransport(connections) for _ in range(2)]
    opened[0].closing = True
    for transport in opened:
        connections.identify(transport, "alice", lambda: False)
    assert aborted(opened) == [0]


def test_connections_without_an_owner_are_not_limited() -> None:
    connections = Connections(unidentified=1, per_user=1)
    for _ in range(10):
        connections.identify(FakeTransport(connections), None, lambda: True)
    assert len(connections) == 10
    assert not connections.close_unidentified()


def test_a_closed_connection_is_forgotten() -> None:
    connections = Connections()
    transport = FakeTransport(connections)
    connections.closed(transport)
    connections.closed(transport)
    connections.identify(transport, "alice", lambda: True)
    assert len(connections) == 0
    assert list(connections) == []
