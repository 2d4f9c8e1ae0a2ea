"""Certificates and CAs that are exchanged under load, in the order that operators do it in: no request fails."""

from __future__ import annotations

import base64
import os
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apiserver.tls.certificates import KeyPair, make_ca, make_client, make_serving
from tests.e2e.support.clusters import PATIENCE, ROOT, EmbeddedCluster, KubeCluster, tenants_path
from tests.e2e.support.control_plane import FRONT_PROXY
from tests.e2e.support.https_client import Client, Response
from tests.e2e.support.processes import Process, free_port, run_command, wait_until
from tests.faults.steady_requests import under_load

LIST = tenants_path(ROOT)
IDENTITY = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
# what is under way when a file is exchanged has ended by then
SETTLE_SECONDS = 1.0


def write(path: Path, content: bytes) -> None:
    """At once, as a mounted Secret changes."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content)
    os.replace(fresh, path)


@dataclass(frozen=True, slots=True)
class Generation:
    """A CA of each kind, and what they issued."""

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
    """An administrator and a front proxy, with the certificates that they show and the CAs that they trust now."""

    url: str
    directory: Path
    user: Client
    proxy: Client

    @classmethod
    def of(cls, url: str, directory: Path, generation: Generation, trusted: bytes) -> Callers:
        user = Client(url, showing(directory, generation.user, trusted), {})
        return cls(url, directory, user, Client(url, showing(directory, generation.proxy, trusted), IDENTITY))

    def become(self, generation: Generation, trusted: bytes) -> None:
        other = Callers.of(self.url, self.directory, generation, trusted)
        self.user, self.proxy = other.user, other.proxy

    def calls(self) -> list[Callable[[], Response]]:
        return [lambda: self.user.get(LIST), lambda: self.proxy.get(LIST)] * 2


def showing(directory: Path, pair: KeyPair, trusted: bytes) -> ssl.SSLContext:
    tls = ssl.create_default_context(cadata=trusted.decode())
    certificate, key = directory / "shown.crt", directory / "shown.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls.load_cert_chain(certificate, key)
    return tls


@dataclass(frozen=True, slots=True)
class Files:
    """What a server is told by flags, and reads again when it changes."""

    directory: Path
    port: int
    process: Process

    def put(self, *generations: Generation) -> None:
        """The CAs of all of these, and the serving certificate of the last one."""
        write(self.directory / "clients.crt", b"".join(each.clients.certificate for each in generations))
        write(self.directory / "proxies.crt", b"".join(each.proxies.certificate for each in generations))
        write(self.directory / "serving.crt", generations[-1].serving.certificate)
        write(self.directory / "serving.key", generations[-1].serving.key)


@pytest.fixture
def first() -> Generation:
    return Generation.make(1)


@pytest.fixture
def files(embedded: EmbeddedCluster, tmp_path: Path, first: Generation) -> Iterator[Files]:
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
    directory = Files(tmp_path, port, embedded.server)
    directory.put(first)
    process = run_command("serve", *(f"{name}={value}" for name, value in flags.items()), log=tmp_path / "log")
    yield Files(tmp_path, port, process)
    assert process.stop() == 0, process.tail()


def answers(client: Client, path: str = LIST) -> int:
    try:
        return client.get(path).status
    except OSError:
        return 0


def test_files_are_exchanged_under_load(files: Files, first: Generation, tmp_path: Path) -> None:
    url, second = f"https://127.0.0.1:{files.port}", Generation.make(2)
    old, new = first.server.certificate, second.server.certificate
    callers, successors, leavers = (
        Callers.of(url, tmp_path, generation, old + new) for generation in (first, second, first)
    )
    wait_until("it serves", lambda: answers(callers.user) == 200, seconds=PATIENCE, processes=[files.process])
    wait_until("the front proxy is known", lambda: answers(callers.proxy) == 200)
    with under_load(callers.calls()) as load:
        files.put(first, second)
        for client in (successors.user, successors.proxy):
            wait_until("the new CAs count", lambda client=client: answers(client) == 200)  # type: ignore[misc]
        trusting = Callers.of(url, tmp_path, second, new)
        wait_until("the new certificate is served", lambda: answers(trusting.user) == 200)
        callers.become(second, new)
        time.sleep(SETTLE_SECONDS)
        files.put(second)
        for client in (leavers.user, leavers.proxy):
            newer = Client(url, client.tls, client.headers)
            wait_until("the old CAs do not", lambda newer=newer: answers(newer) == 401)  # type: ignore[misc]
        time.sleep(SETTLE_SECONDS)
    print(f"{load.answered} requests")
    assert load.failures == []
    assert load.answered > 100


def served_certificate(kube: KubeCluster) -> str:
    return ssl.get_server_certificate(("127.0.0.1", kube.port))


def age(kube: KubeCluster) -> None:
    """As if most of the life of the CA in the Secret were over: everything is due to be made anew."""
    path = "/api/v1/namespaces/cozy-system/secrets/tenant-apiserver-serving-cert"
    secret = kube.client().get(path).expect(200)
    aged = make_ca("tenant-apiserver-ca", now=datetime.now(UTC) - timedelta(days=8 * 365))
    names = ["tenant-apiserver.cozy-system.svc", "localhost", "127.0.0.1"]
    serving = make_serving(aged, names)
    known = base64.b64decode(secret["data"]["ca.crt"])
    data = {
        "ca.crt": aged.certificate + known,
        "ca.key": aged.key,
        "tls.crt": serving.certificate,
        "tls.key": serving.key,
    }
    secret["data"] = {name: base64.b64encode(content).decode() for name, content in data.items()}
    kube.client().request("PUT", path, secret).expect(200)


def test_a_serving_certificate_and_its_ca_are_renewed_under_load(kube: KubeCluster) -> None:
    client, before = kube.client(), served_certificate(kube)
    with under_load([lambda: client.get(LIST)] * 4) as load:
        age(kube)
        wait_until("another certificate is served", lambda: served_certificate(kube) != before, seconds=PATIENCE)
        time.sleep(3 * SETTLE_SECONDS)
    print(f"{load.answered} requests")
    assert load.failures == []
    assert load.answered > 100


def forget(kube: KubeCluster, proxies: bytes) -> None:
    """A kube-apiserver adds its CA to those in the ConfigMap, and leaves it to others to take out what is no longer in
    use."""
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    patch = {"data": {"requestheader-client-ca-file": proxies.decode()}}
    kube.client().request("PATCH", path, patch, content_type="application/merge-patch+json").expect(200)


def test_the_aggregator_s_own_certificate_and_ca_are_exchanged_under_load(kube: KubeCluster, tmp_path: Path) -> None:
    """kube-apiserver tells of the CA in its ConfigMap, which our server follows."""
    client, ca = kube.client(), make_ca("another front-proxy CA")
    pair = make_client(ca, FRONT_PROXY)
    bundle = kube.directory / "front-proxy-ca.crt"
    old = bundle.read_bytes()
    straight, former = kube.front_proxy_client(), kube.front_proxy_client()
    certificate, key = tmp_path / "proxy.crt", tmp_path / "proxy.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    straight.tls.load_cert_chain(certificate, key)
    with under_load([lambda: client.get(LIST)] * 4) as load:
        write(bundle, old + ca.certificate)
        wait = {"seconds": 2 * PATIENCE, "processes": kube.processes}
        successor = Client(straight.url, straight.tls, IDENTITY)
        wait_until("our server knows the new CA", lambda: answers(successor) == 200, **wait)  # type: ignore[arg-type]
        for name, content in (("crt", pair.certificate), ("key", pair.key)):
            write(kube.directory / f"front-proxy.{name}", content)
        time.sleep(5 * SETTLE_SECONDS)
        write(bundle, ca.certificate)
        forget(kube, ca.certificate)
        predecessor = Client(former.url, former.tls, IDENTITY)
        wait_until("our server has forgotten the old CA", lambda: answers(predecessor) == 401, **wait)  # type: ignore[arg-type]
        time.sleep(SETTLE_SECONDS)
    print(f"{load.answered} requests")
    assert load.failures == []
