"""The address that the stand-alone server listens on, and the names in its certificate."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client

# every address that begins with 127 is a loopback address on Linux
OTHER_LOOPBACK = "127.0.0.2"


class Standalone:
    def __init__(self, directory: Path, *flags: str) -> None:
        self.data, self.port = directory / "data", free_port()
        arguments = [f"--data-dir={self.data}", f"--secure-port={self.port}", "--controllers=none", *flags]
        self.process: Process = run_command("standalone", *arguments, log=directory / "log")
        kubeconfig = self.data / "kubeconfig"
        wait_until("the kubeconfig is written", kubeconfig.is_file, processes=[self.process])
        self.admin = credentials.from_kubeconfig(kubeconfig)
        client = Client(self.admin.server, self.admin.tls, {})
        wait_until("the server is ready", lambda: client.serves("/readyz"), processes=[self.process])

    def accepts(self, address: str) -> bool:
        try:
            with socket.create_connection((address, self.port), timeout=60):
                return True
        except ConnectionRefusedError:
            return False

    def is_trusted_at(self, address: str, name: str = "") -> bool:
        """True if a client that trusts the CA accepts the certificate for this address, or for `name`."""
        with socket.create_connection((address, self.port), timeout=60) as raw:
            try:
                with self.admin.tls.wrap_socket(raw, server_hostname=name or address):
                    return True
            except ssl.SSLCertVerificationError:
                return False


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Standalone]]:
    started: list[Standalone] = []

    def begin(*flags: str) -> Standalone:
        started.append(Standalone(tmp_path, *flags))
        return started[-1]

    yield begin
    for each in started:
        each.process.stop()


def test_other_machines_cannot_connect_by_default(start: Callable[..., Standalone]) -> None:
    server = start()
    assert server.admin.server == f"https://127.0.0.1:{server.port}"
    assert server.accepts("127.0.0.1")
    assert not server.accepts(OTHER_LOOPBACK)


def test_the_address_of_the_flag_is_in_the_kubeconfig_and_the_certificate(start: Callable[..., Standalone]) -> None:
    server = start(f"--bind-address={OTHER_LOOPBACK}")
    assert server.admin.server == f"https://{OTHER_LOOPBACK}:{server.port}"
    assert server.is_trusted_at(OTHER_LOOPBACK)
    assert not server.accepts("127.0.0.1")


def test_the_certificate_of_a_server_on_all_addresses_has_the_names_of_the_machine(
    start: Callable[..., Standalone],
) -> None:
    server = start("--bind-address=0.0.0.0")
    assert server.admin.server == f"https://127.0.0.1:{server.port}"
    assert server.is_trusted_at("127.0.0.1")
    assert server.is_trusted_at("127.0.0.1", socket.gethostname())
    for address in {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}:
        assert server.is_trusted_at(str(address))
