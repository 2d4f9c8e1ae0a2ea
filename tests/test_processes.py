"""The processes of the servers that tests start, their ports, and how often tests look at these."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.e2e.support.clusters.processes import (
    ModuleProcess,
    execute_command,
    free_port,
    poll_interval,
    run_command,
)


def test_a_port_is_given_out_only_once_and_its_server_can_listen_at_it_again_and_again() -> None:
    port = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)) as server, socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()


@pytest.mark.parametrize(("waited", "interval"), [(0.0, 0.05), (1.0, 0.05), (2.0, 0.1), (4.0, 0.2), (100.0, 0.2)])
def test_polls_of_a_long_wait_are_rarer(waited: float, interval: float) -> None:
    assert poll_interval(waited) == pytest.approx(interval)


@pytest.mark.parametrize(
    ("arguments", "status"), [(["version"], 0), (["serve", "--colour=red"], 2)], ids=["version", "an invalid flag"]
)
def test_a_forked_command_prints_and_exits_like_an_executed_one(
    tmp_path: Path, arguments: list[str], status: int
) -> None:
    forked = run_command(*arguments, log=tmp_path / "forked")
    executed = execute_command(*arguments, log=tmp_path / "executed")
    assert forked.wait(seconds=60) == executed.wait(seconds=60) == status
    assert forked.log() == executed.log() != ""


def test_a_forked_process_is_killed_like_any_other(tmp_path: Path) -> None:
    arguments = ["http.server", "--bind=127.0.0.1", str(free_port())]
    process = ModuleProcess("http.server", arguments, log=tmp_path / "log")
    was_ended = process.ended
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(seconds=0.01)
    process.kill()
    assert (was_ended, process.ended) == (False, True)
    assert process.stop() == -signal.SIGKILL
    process.signal(signal.SIGTERM)
