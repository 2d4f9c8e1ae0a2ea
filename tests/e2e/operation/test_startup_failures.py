"""A server that cannot start prints one line, exits with status 1 and leaves existing files unchanged."""

from __future__ import annotations

import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until


def startup_error(*arguments: str, log: Path) -> str:
    """The line that a command prints when it cannot start."""
    process = run_command(*arguments, log=log)
    try:
        wait_until("the command has ended", lambda: process.ended, seconds=60)
    finally:
        status = process.stop()
    assert status == 1, process.log()
    lines = process.log().splitlines()
    assert len(lines) == 1, process.log()
    return lines[0]


def standalone(data: Path, port: int, log: Path) -> str:
    return startup_error(
        "standalone", f"--data-dir={data}", "--bind-address=127.0.0.1", f"--secure-port={port}", log=log
    )


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def stopped_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server that has been stopped."""
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("stopped"))
    assert cluster.stop() == 0
    return cluster.data


@pytest.fixture
def data(stopped_data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped_data, tmp_path / "data"))


def invalid_database(data: Path) -> None:
    (data / "host.db").write_bytes(b"not a database, but long enough to be looked at\n" * 100)


def damaged_pages(data: Path) -> None:
    with (data / "host.db").open("r+b") as file:
        size = file.seek(0, 2)
        # the first page with the header stays intact
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def truncated_database(data: Path) -> None:
    path = data / "host.db"
    path.write_bytes(path.read_bytes()[:-4096])


def foreign_database(data: Path) -> None:
    (data / "host.db").unlink()
    with sqlite3.connect(data / "host.db") as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()


def directory_as_database(data: Path) -> None:
    (data / "host.db").unlink()
    (data / "host.db").mkdir()


def empty_token_key(data: Path) -> None:
    (data / "pki" / "service-accounts.key").write_bytes(b"")


def damaged_ca(data: Path) -> None:
    (data / "pki" / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")


def key_of_another_ca(data: Path) -> None:
    shutil.copy(data / "pki" / "serving.key", data / "pki" / "ca.key")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(invalid_database, "host.db cannot be used: file is not a database", id="not a database"),
        pytest.param(damaged_pages, "host.db", id="overwritten pages"),
        pytest.param(truncated_database, "host.db", id="a missing page"),
        pytest.param(foreign_database, "host.db is a database of something else", id="a database of another program"),
        pytest.param(directory_as_database, "host.db cannot be opened: ", id="a directory"),
        pytest.param(damaged_ca, "ca.crt is damaged or does not match ca.key", id="a damaged CA"),
        pytest.param(
            empty_token_key,
            "service-accounts.key is damaged, restore it: no private key in PEM",
            id="an empty token key",
        ),
        pytest.param(key_of_another_ca, "ca.crt is damaged or does not match ca.key", id="the key of another CA"),
    ],
)
def test_a_damaged_data_directory_is_reported(
    data: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(data)
    kubeconfig = (data / "kubeconfig").read_text()
    line = standalone(data, free_port(), tmp_path / "log")
    assert line.startswith(f"tenant-apiserver standalone: --data-dir={data}: ")
    assert message in line
    assert (data / "kubeconfig").read_text() == kubeconfig


@pytest.mark.parametrize("name", ["admin.crt", "serving.crt", "component.key"])
def test_damaged_certificates_are_issued_again(data: Path, tmp_path: Path, name: str) -> None:
    (data / "pki" / name).write_text("nonsense\n")
    flags = [f"--data-dir={data}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}"]
    process = run_command("standalone", *flags, log=tmp_path / "log")
    try:
        wait_until("the server is serving", lambda: "Serving on" in process.log(), processes=[process])
    finally:
        status = process.stop()
    assert status == 0, process.tail()


def test_a_data_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    # not even root may create a directory there
    line = standalone(Path("/sys/kernel/tenants"), free_port(), tmp_path / "log")
    assert line.startswith("tenant-apiserver standalone: --data-dir=/sys/kernel/tenants: ")


def test_a_data_directory_where_none_can_be_is_told_in_words(tmp_path: Path) -> None:
    line = standalone(Path("/proc/tenants"), free_port(), tmp_path / "log")
    why = "/proc/tenants: No such file or directory; choose a directory that can be written"
    assert line == f"tenant-apiserver standalone: --data-dir=/proc/tenants: {why}"


def test_a_data_directory_below_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "Not a directory" in standalone(tmp_path / "file" / "data", free_port(), tmp_path / "log")


def test_a_second_process_on_the_same_data_is_rejected(tmp_path: Path) -> None:
    first = EmbeddedCluster(tmp_path)
    try:
        kubeconfig = (first.data / "kubeconfig").read_text()
        line = standalone(first.data, free_port(), tmp_path / "log")
        assert line.endswith("host.db is in use by another process")
        # the kubeconfig still leads to the first process
        assert (first.data / "kubeconfig").read_text() == kubeconfig
        assert first.client().get("/readyz").status == 200
    finally:
        status = first.stop()
    assert status == 0


def test_a_port_in_use_is_reported(data: Path, tmp_path: Path, busy_port: int) -> None:
    kubeconfig = (data / "kubeconfig").read_text()
    line = standalone(data, busy_port, tmp_path / "log")
    expected = (
        f"cannot listen on 127.0.0.1 port {busy_port}: Address already in use; choose another port with --secure-port"
    )
    assert line == f"tenant-apiserver standalone: {expected}"
    assert (data / "kubeconfig").read_text() == kubeconfig
    flags = ["--cert-dir", str(tmp_path / "certificates"), "--bind-address=127.0.0.1", f"--secure-port={busy_port}"]
    line = startup_error("serve", f"--kubeconfig={data / 'kubeconfig'}", *flags, log=tmp_path / "serve.log")
    assert line == f"tenant-apiserver serve: {expected}"


def test_an_address_of_another_machine_is_reported(data: Path, tmp_path: Path) -> None:
    flags = [f"--data-dir={data}", "--bind-address=192.0.2.1", f"--secure-port={free_port()}"]
    line = startup_error("standalone", *flags, log=tmp_path / "log")
    assert "cannot listen on 192.0.2.1" in line


@pytest.mark.parametrize("command", ["serve", "proxy"])
@pytest.mark.parametrize(
    ("text", "why"), [("garbage", "it has not the form of one"), ("not: [a, kubeconfig", "while parsing")]
)
def test_an_invalid_kubeconfig_is_reported(tmp_path: Path, command: str, text: str, why: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    line = startup_error(command, f"--kubeconfig={path}", f"--cert-dir={tmp_path / 'pki'}", log=tmp_path / "log")
    assert line.startswith(f"tenant-apiserver {command}: --kubeconfig={path}: no usable kubeconfig: {why}")


PAIR = ("--tls-cert-file", "--tls-private-key-file")
PEM = "must be a PEM file with a certificate"


@pytest.mark.parametrize("command", ["serve", "proxy"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param(("nonsense", "nonsense"), f"{PAIR[0]}={{0}}/nonsense: {PEM}", id="no certificate"),
        pytest.param(
            ("ca.crt", "nonsense"), f"{PAIR[1]}={{0}}/nonsense: must be a PEM file with a private key", id="no key"
        ),
        pytest.param(
            ("ca.crt", "serving.key"),
            f"{PAIR[1]}={{0}}/serving.key: must be the key of {PAIR[0]}={{0}}/ca.crt, not of another",
            id="the key of another certificate",
        ),
    ],
)
def test_an_unusable_serving_certificate_is_reported_with_its_flag(
    data: Path, tmp_path: Path, command: str, values: tuple[str, str], message: str
) -> None:
    pki = data / "pki"
    (pki / "nonsense").write_text("nonsense\n")
    flags = [f"{flag}={pki / value}" for flag, value in zip(PAIR, values, strict=True)]
    line = startup_error(command, f"--kubeconfig={data / 'kubeconfig'}", *flags, log=tmp_path / "log")
    assert line == f"tenant-apiserver {command}: {message.format(pki)}"


@pytest.mark.parametrize(
    ("command", "flag"),
    [("serve", "--client-ca-file"), ("serve", "--requestheader-client-ca-file"), ("proxy", "--client-ca-file")],
)
def test_an_unusable_ca_is_reported_with_its_flag(data: Path, tmp_path: Path, command: str, flag: str) -> None:
    (tmp_path / "nonsense").write_text("nonsense\n")
    flags = [f"--kubeconfig={data / 'kubeconfig'}", f"--cert-dir={tmp_path}", f"{flag}={tmp_path / 'nonsense'}"]
    line = startup_error(command, *flags, f"--secure-port={free_port()}", log=tmp_path / "log")
    assert line == f"tenant-apiserver {command}: {flag}={tmp_path / 'nonsense'}: {PEM}"


def test_the_kubeconfig_command_reports_a_damaged_ca(data: Path) -> None:
    damaged_ca(data)
    assert "ca.crt is damaged" in startup_error("kubeconfig", f"--data-dir={data}", "--user=x", log=data / "log")


def test_a_signal_ends_the_wait_for_the_cluster(data: Path, tmp_path: Path) -> None:
    # no server listens at the address in the kubeconfig
    flags = [f"--kubeconfig={data / 'kubeconfig'}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}"]
    process: Process = run_command("serve", *flags, log=tmp_path / "log")
    try:
        wait_until(
            "the server waits for its certificate",
            lambda: "cannot obtain the serving certificate" in process.log(),
            processes=[process],
        )
    finally:
        status = process.stop()
    assert status == 0, process.tail()
    assert "Traceback" not in process.log()
