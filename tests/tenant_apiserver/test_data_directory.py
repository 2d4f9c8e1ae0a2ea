"""The commands that write a file at a user's path leave the server's own files, devices and FIFOs alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from registry.sqlite.statements import Tables
from tenant_apiserver.backup import backup
from tenant_apiserver.certificates.local_pki import LocalPki, admin_kubeconfig, kubeconfig
from tenant_apiserver.data_directory import refused_kind
from tenant_apiserver.options.command_line import (
    BackupOptions,
    KubeconfigOptions,
    StandaloneOptions,
    parse_command_line,
)
from tenant_apiserver.standalone import standalone


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a stopped server."""
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "kubeconfig").write_text(admin_kubeconfig(LocalPki(directory / "pki"), "https://127.0.0.1:8443"))
    Tables.open(directory / "host.db").close()
    return directory


def back_up(data: Path, to: Path) -> int:
    options = parse_command_line(["backup", f"--data-dir={data}", f"--to={to}"], {})
    assert isinstance(options, BackupOptions)
    return backup(options)


def write_kubeconfig(data: Path, output: Path) -> int:
    options = parse_command_line(["kubeconfig", f"--data-dir={data}", "--user=bob", f"--output={output}"], {})
    assert isinstance(options, KubeconfigOptions)
    return kubeconfig(options)


Command = Callable[[Path, Path], int]
BOTH = [pytest.param(back_up, id="backup"), pytest.param(write_kubeconfig, id="kubeconfig")]


def content(directory: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in directory.rglob("*") if each.is_file()}


def refused(command: Command, data: Path, to: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Runs the command, which fails and leaves the data directory as it is. Returns its single line."""
    before = content(data)
    assert command(data, to) == 1
    assert content(data) == before
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


@pytest.mark.parametrize("command", BOTH)
@pytest.mark.parametrize(
    "name", ["host.db", "host.db-wal", "host.db-shm", "host.db-journal", "kubeconfig", "pki/ca.key", "pki/new", "pki"]
)
def test_files_of_the_server_are_not_replaced(
    command: Command, name: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert str(data / name) in refused(command, data, data / name, capsys)


@pytest.mark.parametrize("command", BOTH)
def test_the_database_of_a_running_server_is_not_replaced(
    command: Command, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Tables.open(data / "host.db")
    try:
        line = refused(command, data, data / "host.db", capsys)
    finally:
        running.close()
    assert line.endswith("belongs to the server: choose another file\n")


@pytest.mark.parametrize("command", BOTH)
def test_other_names_of_the_same_files_are_refused(
    command: Command, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "pki").symlink_to(data / "pki")
    (tmp_path / "hard.db").hardlink_to(data / "host.db")
    monkeypatch.chdir(data)
    others = (
        tmp_path / "link" / "host.db-wal",
        tmp_path / "pki" / "new",
        tmp_path / "hard.db",
        data / "pki" / ".." / "host.db",
        Path("host.db"),
    )
    for other in others:
        assert "belongs to the server" in refused(command, data, other, capsys)


@pytest.mark.parametrize("command", BOTH)
def test_a_database_that_is_a_link_is_protected_at_both_places(
    command: Command, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (data / "host.db").rename(disk / "large.db")
    (data / "host.db").symlink_to(disk / "large.db")
    for other in (data / "host.db", disk / "large.db", disk / "large.db-wal"):
        assert "belongs to the server" in refused(command, data, other, capsys)
        assert (data / "host.db").is_symlink()


@pytest.mark.parametrize("command", BOTH)
@pytest.mark.parametrize("name", ["monday.db", "host.database", "other/host.db", "pkis"])
def test_other_files_are_written_in_the_data_directory_too(command: Command, name: str, data: Path) -> None:
    (data / "other").mkdir()
    assert command(data, data / name) == 0
    assert stat.S_IMODE((data / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("command", BOTH)
def test_a_link_to_a_file_is_replaced(command: Command, data: Path, tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("untouched")
    link.symlink_to(victim)
    assert command(data, link) == 0
    assert not link.is_symlink()
    assert victim.read_text() == "untouched"


@pytest.mark.parametrize("command", BOTH)
def test_a_fifo_is_not_replaced(
    command: Command, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    for path in (fifo, link):
        assert "is a FIFO" in refused(command, data, path, capsys)
    assert fifo.is_fifo()
    assert link.is_symlink()


@pytest.mark.parametrize("command", BOTH)
def test_a_link_to_a_descriptor_of_the_process_is_not_replaced(
    command: Command, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As /dev/stdout is one, whatever standard output is at the moment."""
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    assert str(link) in refused(command, data, link, capsys)
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        pytest.param(stat.S_IFREG, "", id="file"),
        pytest.param(stat.S_IFDIR, "a directory", id="directory"),
        pytest.param(stat.S_IFCHR, "a device", id="character device"),
        pytest.param(stat.S_IFBLK, "a device", id="block device"),
        pytest.param(stat.S_IFIFO, "a FIFO", id="FIFO"),
        pytest.param(stat.S_IFSOCK, "a socket", id="socket"),
    ],
)
def test_only_regular_files_are_replaced(mode: int, kind: str) -> None:
    assert refused_kind(mode | 0o600) == kind


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("missing/file", "No such file or directory", id="no directory"),
        pytest.param("file/file", "Not a directory", id="a file as directory"),
        pytest.param("folder", "is a directory", id="directory"),
        pytest.param("to-folder", "is a directory", id="link to a directory"),
        pytest.param("x" * 300, "File name too long", id="long name"),
    ],
)
@pytest.mark.parametrize(("command", "flag"), [(back_up, "backup: --to"), (write_kubeconfig, "kubeconfig: --output")])
def test_a_path_that_cannot_be_written_is_reported_in_one_line(
    command: Command, flag: str, path: str, reason: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-folder").symlink_to(tmp_path / "folder")
    line = refused(command, data, tmp_path / path, capsys)
    assert line == f"tenant-apiserver {flag}={tmp_path / path}: {reason}\n"


@pytest.mark.parametrize("name", ["host.db", "host.db-wal", "pki/ca.key", "link"])
def test_the_audit_log_is_not_appended_to_a_file_of_the_server(
    name: str, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenant_apiserver.standalone.configure", lambda **_: None)
    (data / "link").symlink_to(data / "host.db")
    before = content(data)
    options = parse_command_line(["standalone", f"--data-dir={data}", f"--audit-log-path={data / name}"], {})
    assert isinstance(options, StandaloneOptions)
    assert standalone(options) == 1
    assert content(data) == before
    error = f"--audit-log-path={data / name}: belongs to the server: choose another file"
    assert capsys.readouterr().err == f"tenant-apiserver standalone: {error}\n"
