"""`kubectl tenant tree --watch` while the server is away, and after."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import KUBECTL
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import REPOSITORY, Process, wait_until
from tests.e2e.support.tenants import Tenants

_MAIN = "from tenant_apiserver.kubectl_tenant.main import main; main()"


@pytest.fixture
def watching(own_embedded: EmbeddedCluster, tmp_path: Path) -> Iterator[Process]:
    """The command, with a kubeconfig of its own."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(own_embedded.admin.kubeconfig.read_text())
    environment = {"KUBECONFIG": str(kubeconfig), "KUBECTL": str(KUBECTL), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", _MAIN, "tree", "--watch"]
    process = Process("kubectl tenant tree", command, log=tmp_path / "tree.log", environment=environment)
    yield process
    process.stop()


def _wait_for(process: Process, text: str, *, after: int = 0) -> None:
    wait_until(f"{text!r} is printed", lambda: text in process.log()[after:], processes=(process,))


def test_a_watched_tree_goes_on_after_a_restart_of_the_server(own_embedded: EmbeddedCluster, watching: Process) -> None:
    _wait_for(watching, "root")
    assert own_embedded.stop() == 0
    _wait_for(watching, "trying again in 2 s")
    shown = len(watching.log())
    own_embedded.start()
    _wait_for(watching, "root", after=shown)
    tenants = Tenants(own_embedded)

    created: list[str] = []

    def shows_a_new_tenant() -> bool:
        # the watch may begin after a tenant has been created, and prints one that it sees a moment later
        created.append(tenants.create()["metadata"]["name"])
        return any(name in watching.log() for name in created)

    wait_until("a new tenant is shown", shows_a_new_tenant, processes=(watching,))
    watching.signal(signal.SIGINT)
    assert watching.wait(seconds=30) == 130


def test_a_watched_tree_ends_when_the_credentials_are_refused(
    own_embedded: EmbeddedCluster, watching: Process, tmp_path: Path
) -> None:
    _wait_for(watching, "root")
    assert own_embedded.stop() == 0
    _wait_for(watching, "trying again")
    lines = (tmp_path / "kubeconfig").read_text().splitlines(keepends=True)
    kept = [each for each in lines if "client-key" not in each]
    (tmp_path / "kubeconfig").write_text(
        "".join(
            f"{each.partition('client-certificate')[0]}token: wrong\n" if "client-certificate" in each else each
            for each in kept
        )
    )
    own_embedded.start()
    assert watching.wait(seconds=60) == 1
    assert "Unauthorized" in watching.log()
