"""A signal or an error ends a command of an operator with one line, and in a state that the line tells."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from registry.cluster.interface import APISERVICES, ClusterResource
from tenant_apiserver.lifecycle import availability, back, move
from tenant_apiserver.lifecycle.command import StepFailed, StepRefused, repeated, run_command
from tenant_apiserver.options.lifecycle import BackOptions
from tests.tenant_apiserver.lifecycle.live_cozystack import LiveCozystack, down
from tests.tenant_apiserver.lifecycle.test_move import OURS, PEER, beside_us, options, registered, services

BACK = BackOptions(kubeconfig=None, dry_run=False, timeout=0.0)


@pytest.fixture
def cluster() -> LiveCozystack:
    return beside_us()


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "_POLL_SECONDS", 0.0)


def run(name: str, action: Callable[[], Awaitable[None]]) -> int:
    async def done() -> int:
        await action()
        return 0

    return run_command(name, done, after="run the command again: it continues")


def signalled(cluster: LiveCozystack, number: int, at: tuple[str, str], *, writes: int) -> None:
    """Sends the signal, repeatedly, at calls of this verb and name after so many writes."""

    async def send(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, key.name) == at and res == APISERVICES and len(cluster.writes) >= writes:
            signal.raise_signal(number)

    cluster.before = send


CORE = "v1alpha1.core.cozystack.io"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    ("at", "writes"),
    [
        pytest.param(("update", CORE), 1, id="as it is written"),
        pytest.param(("get", CORE), 1, id="before it is written"),
        pytest.param(("get", CORE), 2, id="while our server is waited for"),
    ],
)
def test_a_signal_leaves_no_group_on_a_server_that_has_not_answered(
    cluster: LiveCozystack,
    capsys: pytest.CaptureFixture[str],
    number: int,
    status: int,
    at: tuple[str, str],
    writes: int,
) -> None:
    before = registered(cluster)
    signalled(cluster, number, at, writes=writes)
    assert run("replace", lambda: move.move_to_us(cluster, options())) == status
    assert services(cluster) == [OURS, PEER, PEER]
    assert registered(cluster)[CORE] == before[CORE]
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        f"tenant-apiserver replace: interrupted by {signal.Signals(number).name}; {CORE} is as it was before; "
        f"moved: v1alpha1.apps.cozystack.io; not moved: {CORE}, v1alpha1.sdn.cozystack.io; "
        "to return what has moved: tenant-apiserver back"
    )


def test_a_signal_before_the_first_write_ends_at_once(
    cluster: LiveCozystack, capsys: pytest.CaptureFixture[str]
) -> None:
    signalled(cluster, signal.SIGINT, ("get", CORE), writes=0)
    assert run("replace", lambda: move.move_to_us(cluster, options())) == 130
    assert cluster.writes == []
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_group_that_cannot_be_returned_after_a_signal_is_named(
    cluster: LiveCozystack, capsys: pytest.CaptureFixture[str]
) -> None:
    async def interrupt(verb: str, res: ClusterResource, key: Key) -> None:
        if res == APISERVICES and cluster.writes:
            signal.raise_signal(signal.SIGTERM)
            if verb == "update":
                raise StatusError(403, "Forbidden", "a webhook denies it")

    cluster.before = interrupt
    assert run("replace", lambda: move.move_to_us(cluster, options())) == 2
    error = capsys.readouterr().err
    assert "v1alpha1.apps.cozystack.io leads to us, where nobody answers, and cannot be returned: a webhook" in error
    assert "Traceback" not in error


def test_a_return_that_a_signal_ends_can_be_repeated(
    cluster: LiveCozystack, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replace", lambda: move.move_to_us(cluster, options())) == 0
    capsys.readouterr()
    signalled(cluster, signal.SIGTERM, ("update", CORE), writes=0)
    assert run("back", lambda: back.move_back(cluster, BACK)) == 143
    expected = "tenant-apiserver back: interrupted by SIGTERM; run the command again: it continues\n"
    assert capsys.readouterr().err == expected
    assert services(cluster) == [PEER, PEER, OURS]
    cluster.before = None
    assert run("back", lambda: back.move_back(cluster, BACK)) == 0
    assert services(cluster) == [PEER, PEER, PEER]


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        pytest.param(StepRefused("because"), 1, "because", id="refused"),
        pytest.param(StepFailed("because"), 2, "because", id="not read"),
        pytest.param(down(), 2, "the answer is 503 Service Unavailable: service unavailable; run", id="no Status"),
        pytest.param(ValueError("no kubeconfig"), 2, "no kubeconfig; run the command again", id="no cluster"),
        pytest.param(KeyboardInterrupt(), 130, "interrupted by SIGINT; run the command again", id="before the loop"),
    ],
)
def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str], error: BaseException, status: int, line: str) -> None:
    async def fail() -> None:
        raise error

    assert run("back", fail) == status
    assert capsys.readouterr().err.startswith(f"tenant-apiserver back: {line}")


def test_another_command_is_for_the_same_cluster() -> None:
    assert repeated("back", None) == "tenant-apiserver back"
    assert repeated("back", Path("a.kubeconfig")) == "tenant-apiserver back --kubeconfig=a.kubeconfig"
