"""Starts, stops and kills of the embedded cluster lose no acknowledged write."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import manifest


def uids_by_name(client: Client) -> dict[str, str]:
    items = client.get(tenants_path(ROOT)).expect(200)["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def test_acknowledged_writes_survive_a_kill(own_embedded: EmbeddedCluster) -> None:
    client, acknowledged = own_embedded.client(), {}
    for number in range(20):
        created = client.request("POST", tenants_path(ROOT), manifest(f"t{number}")).expect(201)
        acknowledged[created["metadata"]["name"]] = created["metadata"]["uid"]
    last = int(client.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"])
    own_embedded.server.kill()
    own_embedded.start()
    found = uids_by_name(own_embedded.client())
    assert acknowledged.items() <= found.items()
    assert int(own_embedded.client().get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]) >= last


def test_a_kill_during_writes_loses_no_acknowledged_write(own_embedded: EmbeddedCluster) -> None:
    acknowledged: list[str] = []

    def write() -> None:
        client, number = own_embedded.client(), 0
        try:
            while True:
                name = f"t{number}"
                if client.request("POST", tenants_path(ROOT), manifest(name)).status == 201:
                    acknowledged.append(name)
                number += 1
        except (OSError, EOFError, http.client.HTTPException):
            # the last response may be cut in the middle
            return

    writer = threading.Thread(target=write)
    writer.start()
    wait_until("some writes are acknowledged", lambda: len(acknowledged) >= 10)
    own_embedded.server.kill()
    writer.join(timeout=30)
    own_embedded.start()
    assert set(acknowledged) <= set(uids_by_name(own_embedded.client()))


def test_sigterm_ends_watches_cleanly_and_exits_with_status_zero(own_embedded: EmbeddedCluster) -> None:
    version = own_embedded.client().get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    # a selector that matches nothing, since the status of the root tenant may still change
    query = {
        "watch": "true",
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "labelSelector": "e2e=none",
    }
    statuses: list[int] = []
    with own_embedded.client().stream(tenants_path(ROOT), query=query) as frames:
        stopper = threading.Thread(target=lambda: statuses.append(own_embedded.server.stop()))
        stopper.start()
        assert [frame["type"] for frame in frames if frame["type"] != "BOOKMARK"] == []
    stopper.join()
    assert statuses == [0]


def test_the_same_data_and_credentials_serve_after_a_restart(own_embedded: EmbeddedCluster) -> None:
    own_embedded.client().request("POST", tenants_path(ROOT), manifest("kept")).expect(201)
    before = own_embedded.client()
    kubeconfig = own_embedded.admin.kubeconfig.read_text()
    assert own_embedded.stop() == 0
    own_embedded.start()
    assert own_embedded.admin.kubeconfig.read_text() == kubeconfig
    assert "kept" in uids_by_name(before)


def test_the_kubeconfig_is_readable_by_its_owner_only(own_embedded: EmbeddedCluster) -> None:
    assert (own_embedded.data / "kubeconfig").stat().st_mode & 0o077 == 0
    keys = list((own_embedded.data / "pki").glob("*.key"))
    assert keys
    assert [key for key in keys if key.stat().st_mode & 0o077] == []


@pytest.mark.parametrize(
    "flag",
    ["--secure-port=none", "--root-host=not a host", "--controllers=unknown", "--colour=red", "--bind-address=nowhere"],
)
def test_an_invalid_flag_prints_one_line_and_exits_with_status_two(tmp_path: Path, flag: str) -> None:
    process = run_command("standalone", f"--data-dir={tmp_path / 'data'}", flag, log=tmp_path / "log")
    wait_until("the command ends", lambda: process.ended)
    assert process.stop() == 2
    assert len(process.log().splitlines()) == 1
    assert not (tmp_path / "data").exists()
