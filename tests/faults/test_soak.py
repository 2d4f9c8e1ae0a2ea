"""A short soak, and the detection of growth."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.soak import Limits, RoundLength, Soak, SoakCluster, find_growth
from tests.faults.support.process_usage import ProcessUsage, own_connections
from tests.faults.support.sizes import new_seed, size

# six short rounds are too few to warm up the allocator
SHORT = Limits(memory_mib=32.0)


@pytest.fixture
def soak_cluster(tmp_path: Path) -> Iterator[SoakCluster]:
    running = SoakCluster(tmp_path)
    yield running
    assert running.stop() == 0, running.server.tail()


def test_a_mixed_load_leaks_nothing(soak_cluster: SoakCluster) -> None:
    soak = Soak(soak_cluster, new_seed(), size(short=RoundLength(actions=10), full=RoundLength(seconds=20.0)))
    rounds = soak.run(size(short=1.0, full=120.0), print)
    assert find_growth(rounds, SHORT) == []
    soak.wait_until_connections_are_closed()
    assert [name for name in soak.codes if name.rpartition(" ")[2].startswith("5")] == []
    assert "Traceback" not in soak_cluster.server.log(), soak_cluster.server.tail()


def usage(**more: int) -> ProcessUsage:
    plain = {"rss": 100, "peak": 100, "open_descriptors": 30, "tasks": 40, **more}
    return ProcessUsage(**plain)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["rss", "open_descriptors", "tasks"])
def test_steady_growth_is_reported(name: str) -> None:
    growing = [usage(**{name: 100 + 20 * number}) for number in range(12)]
    assert len(find_growth(growing, Limits())) == 1
    assert find_growth([*growing[:4], *[growing[4]] * 8], Limits()) == []


def test_only_connections_with_both_ends_in_the_process_are_its_own() -> None:
    before = own_connections(os.getpid())
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as server,
    ):
        assert own_connections(os.getpid()) == before + 1
        client.close()
        assert own_connections(os.getpid()) == before
        server.close()


def test_idle_connections_of_the_server_to_itself_are_no_growth() -> None:
    few, many = usage(own_connections=10), usage(own_connections=16, open_descriptors=42, tasks=46)
    assert find_growth([few] * 6 + [many] * 6, Limits()) == []
    assert len(find_growth([few] * 6 + [usage(own_connections=10, open_descriptors=42, tasks=46)] * 6, Limits())) == 2
