"""Starting, ending and being killed: nothing that was acknowledged is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.client import Client
from tests.e2e.hosts import ROOT, EmbeddedHost, tenants_path
from tests.e2e.processes import run_command, wait_until
from tests.e2e.tenants import manifest


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedHost]:
    """An embedded host of the test's own, to be ended as it likes."""
    running = EmbeddedHost(tmp_path)
    yield running
    running.stop()


def names(client: Client) -> dict[str, str]:
    items = client.get(tenants_path(ROOT)).expect(200)["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def test_what_was_acknowledged_survives_a_kill(own: EmbeddedHost) -> None:
    client, acknowledged = own.session(), {}
    for number in range(20):
        created = client.request("POST", tenants_path(ROOT), manifest(f"t{number}")).expect(201)
        acknowledged[created["metadata"]["name"]] = created["metadata"]["uid"]
    last = int(client.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"])
    own.server.kill()
    own.start()
    found = names(own.session())
    assert acknowledged.items() <= found.items()
    assert int(own.session().get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]) >= last


def test_a_kill_amid_writes_loses_none_that_was_answered(own: EmbeddedHost) -> None:
    acknowledged: list[str] = []

    def write() -> None:
        client, number = own.session(), 0
        try:
            while True:
                name = f"t{number}"
                if client.request("POST", tenants_path(ROOT), manifest(name)).status == 201:
                    acknowledged.append(name)
                number += 1
        except (OSError, EOFError):
            return

    writer = threading.Thread(target=write)
    writer.start()
    wait_until("some writes are acknowledged", lambda: len(acknowledged) >= 10)
    own.server.kill()
    writer.join(timeout=30)
    own.start()
    assert set(acknowledged) <= set(names(own.session()))


def test_a_term_signal_ends_watches_cleanly_and_exits_zero(own: EmbeddedHost) -> None:
    version = own.session().get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
    statuses: list[int] = []
    with own.session().stream(tenants_path(ROOT), query=query, seconds=30) as frames:
        stopper = threading.Thread(target=lambda: statuses.append(own.server.stop(seconds=10)))
        stopper.start()
        assert [frame["type"] for frame in frames if frame["type"] != "BOOKMARK"] == []
    stopper.join(timeout=15)
    assert statuses == [0]


def test_the_same_data_and_credentials_serve_after_a_restart(own: EmbeddedHost) -> None:
    own.session().request("POST", tenants_path(ROOT), manifest("kept")).expect(201)
    before = own.session()
    kubeconfig = own.admin.kubeconfig.read_text()
    assert own.stop() == 0
    own.start()
    assert own.admin.kubeconfig.read_text() == kubeconfig
    assert "kept" in names(before)


def test_the_kubeconfig_is_its_owner_s_alone(own: EmbeddedHost) -> None:
    assert (own.data / "kubeconfig").stat().st_mode & 0o077 == 0
    keys = list((own.data / "pki").glob("*.key"))
    assert keys
    assert [key for key in keys if key.stat().st_mode & 0o077] == []


@pytest.mark.parametrize(
    "flag",
    ["--secure-port=none", "--root-host=not a host", "--controllers=unknown", "--colour=red", "--bind-address=nowhere"],
)
def test_a_bad_flag_is_one_line_and_status_two(tmp_path: Path, flag: str) -> None:
    process = run_command("standalone", f"--data-dir={tmp_path / 'data'}", flag, log=tmp_path / "log")
    wait_until("the command ends", lambda: process.ended)
    assert process.stop() == 2
    assert len(process.log().splitlines()) == 1
    assert not (tmp_path / "data").exists()
