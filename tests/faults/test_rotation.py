"""Certificates and CAs are replaced under load, in the order of the operators' manual: no request fails."""

from __future__ import annotations

import base64
import os
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apiserver.tls.certificates import KeyPair, make_ca, make_client, make_serving
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, tenants_path
from tests.e2e.support.clusters.control_plane import FRONT_PROXY
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.http.pace import Pace
from tests.faults.support.steady_requests import steady_load

LIST = tenants_path(ROOT)
IDENTITY = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
# of each of the four threads of the load, with the new certificates
REQUESTS = 25
# in which an idle kube-apiserver reads its changed files
RELOAD_SECONDS = 5.0


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file atomically, like the kubelet in a mounted Secret."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    os.replace(new, path)


@dataclass(frozen=True, slots=True)
class Generation:
    """A CA of each kind, and the certificates that they issued."""

    clients: KeyPair
    proxies: KeyPair
    server: KeyPair
    user: KeyPair
    proxy: KeyPair
    serving: KeyPair

    @classmethod
    def make(cls, number: int) -> Generation:
        clients, proxies, server = (make_ca(f"{name} {number}") for name in ("clients", "proxies", "server"))
        return cls(
            clients,
            proxies,
            server,
            make_client(clients, "admin", ("system:masters",)),
            make_client(proxies, FRONT_PROXY),
            make_serving(server, ["127.0.0.1"]),
        )


@dataclass(slots=True)
class Callers:
    """Clients of an administrator and of a front proxy, with their current certificates and trusted CAs."""

    url: str
    directory: Path
    user: Client
    proxy: Client

    @classmethod
    def create(cls, url: str, directory: Path, generation: Generation, trusted_cas: bytes) -> Callers:
        user = Client(url, tls_context_with(directory, generation.user, trusted_cas), {})
        return cls(
            url, directory, user, Client(url, tls_context_with(directory, generation.proxy, trusted_cas), IDENTITY)
        )

    def switch_to(self, generation: Generation, trusted_cas: bytes) -> None:
        other = Callers.create(self.url, self.directory, generation, trusted_cas)
        self.user, self.proxy = other.user, other.proxy

    def calls(self) -> list[Callable[[], Response]]:
        return [lambda: self.user.get(LIST), lambda: self.proxy.get(LIST)] * 2


def tls_context_with(directory: Path, pair: KeyPair, trusted_cas: bytes) -> ssl.SSLContext:
    tls = ssl.create_default_context(cadata=trusted_cas.decode())
    certificate, key = directory / "shown.crt", directory / "shown.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls.load_cert_chain(certificate, key)
    return tls


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The files named by a server's flags, which it reads again when they change."""

    directory: Path
    port: int
    process: Process

    def write_all(self, *generations: Generation) -> None:
        """Writes the CAs of all generations, and the serving certificate of the last one."""
        replace_file(self.directory / "clients.crt", b"".join(each.clients.certificate for each in generations))
        replace_file(self.directory / "proxies.crt", b"".join(each.proxies.certificate for each in generations))
        replace_file(self.directory / "serving.crt", generations[-1].serving.certificate)
        replace_file(self.directory / "serving.key", generations[-1].serving.key)


@pytest.fixture
def first() -> Generation:
    return Generation.make(1)


@pytest.fixture
def certificate_files(embedded: EmbeddedCluster, tmp_path: Path, first: Generation) -> Iterator[CertificateFiles]:
    port = free_port()
    flags = {
        "--kubeconfig": embedded.admin.kubeconfig,
        "--bind-address": "127.0.0.1",
        "--secure-port": port,
        "--controllers": "none",
        "--tls-cert-file": tmp_path / "serving.crt",
        "--tls-private-key-file": tmp_path / "serving.key",
        "--client-ca-file": tmp_path / "clients.crt",
        "--requestheader-client-ca-file": tmp_path / "proxies.crt",
        "--requestheader-allowed-names": FRONT_PROXY,
    }
    for name in ("serving.crt", "serving.key", "clients.crt", "proxies.crt"):
        (tmp_path / name).touch()
    CertificateFiles(tmp_path, port, embedded.server).write_all(first)
    process = run_command("serve", *(f"{name}={value}" for name, value in flags.items()), log=tmp_path / "log")
    yield CertificateFiles(tmp_path, port, process)
    assert process.stop() == 0, process.tail()


def status_or_zero(client: Client) -> int:
    try:
        return client.get(LIST).status
    except OSError:
        return 0


def answers(client: Client, status: int) -> bool:
    return status_or_zero(client) == status


def test_certificate_files_are_replaced_under_load(
    certificate_files: CertificateFiles, first: Generation, tmp_path: Path
) -> None:
    url, second = f"https://127.0.0.1:{certificate_files.port}", Generation.make(2)
    old, new = first.server.certificate, second.server.certificate
    callers, new_callers, old_callers = (
        Callers.create(url, tmp_path, generation, old + new) for generation in (first, second, first)
    )
    wait_until(
        "it serves",
        lambda: status_or_zero(callers.user) == 200,
        seconds=PATIENCE,
        processes=[certificate_files.process],
    )
    wait_until("the front proxy is known", lambda: status_or_zero(callers.proxy) == 200, seconds=PATIENCE)
    with steady_load(callers.calls()) as load:
        certificate_files.write_all(first, second)
        for client in (new_callers.user, new_callers.proxy):
            wait_until("the new CAs are trusted", partial(answers, client, 200), seconds=PATIENCE)
        trusting = Callers.create(url, tmp_path, second, new)
        wait_until("the new certificate is served", partial(answers, trusting.user, 200), seconds=PATIENCE)
        callers.switch_to(second, new)
        # the requests with the old certificates have ended
        load.wait_for_more()
        certificate_files.write_all(second)
        for client in (old_callers.user, old_callers.proxy):
            newer = Client(url, client.tls, client.headers)
            wait_until("the old CAs are not trusted", partial(answers, newer, 401), seconds=PATIENCE)
        load.wait_for_more(REQUESTS)
    print(f"{sum(load.requests)} requests")
    assert load.failures == []


def served_certificate(kube: KubeCluster) -> str:
    return ssl.get_server_certificate(("127.0.0.1", kube.port))


def expire_serving_ca(kube: KubeCluster) -> None:
    """Replaces the CA in the Secret by one near the end of its lifetime, so that the server renews all
    certificates."""
    path = "/api/v1/namespaces/cozy-system/secrets/tenant-apiserver-serving-cert"
    aged = make_ca("tenant-apiserver-ca", now=datetime.now(UTC) - timedelta(days=8 * 365))
    names = ["tenant-apiserver.cozy-system.svc", "localhost", "127.0.0.1"]
    serving = make_serving(aged, names)

    def age(secret: dict[str, Any]) -> dict[str, Any]:
        data = {
            "ca.crt": aged.certificate + base64.b64decode(secret["data"]["ca.crt"]),
            "ca.key": aged.key,
            "tls.crt": serving.certificate,
            "tls.key": serving.key,
        }
        return {**secret, "data": {name: base64.b64encode(content).decode() for name, content in data.items()}}

    kube.client().update(path, age).expect(200)


def test_a_serving_certificate_and_its_ca_are_renewed_under_load(kube: KubeCluster) -> None:
    client, before = kube.client(), served_certificate(kube)
    with steady_load([lambda: client.get(LIST)] * 4) as load:
        expire_serving_ca(kube)
        wait_until("another certificate is served", lambda: served_certificate(kube) != before, seconds=PATIENCE)
        load.wait_for_more(REQUESTS)
    print(f"{sum(load.requests)} requests")
    assert load.failures == []


def remove_old_proxy_ca(kube: KubeCluster, proxies: bytes) -> None:
    """Removes all other CAs from the ConfigMap: kube-apiserver adds its own, but never removes old ones."""
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    patch = {"data": {"requestheader-client-ca-file": proxies.decode()}}
    kube.client().request("PATCH", path, patch, content_type="application/merge-patch+json").expect(200)


def test_the_certificate_and_ca_of_the_aggregator_are_replaced_under_load(kube: KubeCluster, tmp_path: Path) -> None:
    """kube-apiserver publishes the CA in a ConfigMap, which our server watches."""
    client, ca = kube.client(), make_ca("another front-proxy CA")
    pair = make_client(ca, FRONT_PROXY)
    bundle = kube.directory / "front-proxy-ca.crt"
    old = bundle.read_bytes()
    new_client, old_client = kube.front_proxy_client(), kube.front_proxy_client()
    certificate, key = tmp_path / "proxy.crt", tmp_path / "proxy.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    new_client.tls.load_cert_chain(certificate, key)
    pace = Pace(kube.direct_client())
    with steady_load([lambda: client.get(LIST)] * 4) as load:
        replace_file(bundle, old + ca.certificate)
        wait = {"seconds": 2 * PATIENCE, "processes": kube.processes}
        with_new_ca = Client(new_client.url, new_client.tls, IDENTITY)
        wait_until("our server trusts the new CA", lambda: status_or_zero(with_new_ca) == 200, **wait)  # type: ignore[arg-type]
        for name, content in (("crt", pair.certificate), ("key", pair.key)):
            replace_file(kube.directory / f"front-proxy.{name}", content)
        # it does not say when it has read them
        time.sleep(pace.limit(RELOAD_SECONDS))
        replace_file(bundle, ca.certificate)
        remove_old_proxy_ca(kube, ca.certificate)
        with_old_ca = Client(old_client.url, old_client.tls, IDENTITY)
        wait_until("our server rejects the old CA", lambda: status_or_zero(with_old_ca) == 401, **wait)  # type: ignore[arg-type]
        load.wait_for_more(REQUESTS)
    print(f"{sum(load.requests)} requests")
    assert load.failures == []
