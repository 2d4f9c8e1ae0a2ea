"""The data of a stand-alone server can be copied into one file while it runs, and restored from that file."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from tests.e2e.operation.test_startup_failures import standalone
from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import REPOSITORY, free_port

CONFIGMAPS = f"/api/v1/namespaces/{ROOT}/configmaps"


def back_up(cluster: EmbeddedCluster, to: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tenant_apiserver", "backup", f"--data-dir={cluster.data}", f"--to={to}"]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=180)


def names(cluster: EmbeddedCluster) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.client().get(CONFIGMAPS).expect(200)["items"]}


def test_a_running_server_is_backed_up_and_restored(own_embedded: EmbeddedCluster, tmp_path: Path) -> None:
    client = own_embedded.client()
    body = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": "alice"}}
    client.request("POST", tenants_path(ROOT), body).expect(201)
    client.request("POST", CONFIGMAPS, {"metadata": {"name": "before"}}).expect(201)
    done = back_up(own_embedded, tmp_path / "backup.db")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert stat.S_IMODE((tmp_path / "backup.db").stat().st_mode) == 0o600
    assert not list(own_embedded.data.glob("backup-*"))
    client.request("POST", CONFIGMAPS, {"metadata": {"name": "after"}}).expect(201)
    assert own_embedded.stop() == 0
    for path in own_embedded.data.glob("host.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", own_embedded.data / "host.db")
    own_embedded.start()
    own_embedded.client().get(tenants_path(ROOT, "alice")).expect(200)
    assert "before" in names(own_embedded)
    assert "after" not in names(own_embedded)


def test_writes_go_on_during_a_backup_and_those_before_it_are_in_it(
    own_embedded: EmbeddedCluster, tmp_path: Path
) -> None:
    client = own_embedded.client()
    content = {"data": "x" * 50_000}
    for number in range(40):
        client.request("POST", CONFIGMAPS, {"metadata": {"name": f"old{number}"}, "data": content}).expect(201)
    stop = threading.Event()
    written: list[str] = []

    def write() -> None:
        writer = own_embedded.client()
        while not stop.is_set():
            name = f"new{len(written)}"
            writer.request("POST", CONFIGMAPS, {"metadata": {"name": name}}).expect(201)
            written.append(name)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        own_embedded.wait_until("writes have begun", lambda: len(written) >= 3)
        before = set(written)
        done = back_up(own_embedded, tmp_path / "backup.db")
    finally:
        stop.set()
        thread.join(timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert own_embedded.stop() == 0
    for path in own_embedded.data.glob("host.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", own_embedded.data / "host.db")
    own_embedded.start()
    assert {f"old{number}" for number in range(40)} | before <= names(own_embedded)


def test_a_stopped_server_is_backed_up(own_embedded: EmbeddedCluster, tmp_path: Path) -> None:
    own_embedded.client().request("POST", CONFIGMAPS, {"metadata": {"name": "stored"}}).expect(201)
    assert own_embedded.stop() == 0
    done = back_up(own_embedded, tmp_path / "backup.db")
    assert (done.returncode, done.stderr) == (0, "")
    shutil.copy(tmp_path / "backup.db", own_embedded.data / "host.db")
    own_embedded.start()
    assert "stored" in names(own_embedded)


def test_a_database_that_was_copied_without_its_log_is_refused(own_embedded: EmbeddedCluster, tmp_path: Path) -> None:
    own_embedded.client().request("POST", CONFIGMAPS, {"metadata": {"name": "stored"}}).expect(201)
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copytree(own_embedded.data / "pki", copy / "pki")
    shutil.copy(own_embedded.data / "host.db", copy / "host.db")
    line = standalone(copy, free_port(), tmp_path / "log")
    assert "host.db-wal, which has the latest writes, is missing" in line


def test_another_program_may_open_the_database_of_a_killed_server(own_embedded: EmbeddedCluster) -> None:
    own_embedded.client().request("POST", CONFIGMAPS, {"metadata": {"name": "stored"}}).expect(201)
    own_embedded.server.kill()
    with closing(sqlite3.connect(own_embedded.data / "host.db")) as connection:
        assert connection.execute("SELECT count(*) FROM objects").fetchone()[0] > 0
    assert not (own_embedded.data / "host.db-wal").exists()
    own_embedded.start()
    assert "stored" in names(own_embedded)


def test_only_administrators_make_the_server_write_a_copy(own_embedded: EmbeddedCluster) -> None:
    assert own_embedded.client("bob").request("POST", "/backup").status == 403
    assert own_embedded.client().request("GET", "/backup").status == 405


def test_a_directory_without_data_cannot_be_backed_up(own_embedded: EmbeddedCluster, tmp_path: Path) -> None:
    own_embedded.data, data = tmp_path / "nothing", own_embedded.data
    done = back_up(own_embedded, tmp_path / "backup.db")
    own_embedded.data = data
    assert done.returncode == 1
    problem = f"{tmp_path / 'nothing'} is not the data directory of a standalone server; name it with --data-dir"
    assert done.stderr == f"tenant-apiserver backup: {problem}\n"
