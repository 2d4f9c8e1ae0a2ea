"""A server of ours with a spoiling proxy between it and its host, and what both of them hold."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.names import RELEASE_SELECTOR
from registry.tenant.convert import to_tenant
from tests.e2e.support.clusters import PATIENCE, ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.credentials import Identity
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import Process, free_port, run_command, wait_until
from tests.faults.faulty_proxy import SpoilingProxy
from tests.faults.reflector import Name, name_of

Object = dict[str, Any]
RELEASES = "/apis/helm.toolkit.fluxcd.io/v2"
DOOR = "front"


@dataclass(frozen=True, slots=True)
class Sides:
    """`client` asks our server, `host` its host."""

    client: Client
    host: Client

    def served(self) -> dict[Name, Object]:
        return {name_of(item): item for item in self.client.get(tenants_path()).expect(200)["items"]}

    def held(self) -> dict[Name, Object]:
        """The Tenants in what the host holds."""
        found = self.host.get(f"{RELEASES}/helmreleases", query={"labelSelector": RELEASE_SELECTOR}).expect(200)
        tenants = [to_tenant(release) for release in found["items"]]
        return {name_of(tenant): tenant for tenant in tenants}

    def agrees(self) -> bool:
        """Whether our cache equals the host, object for object."""
        return self.served() == self.held()


@dataclass(frozen=True, slots=True)
class Front(Sides):
    """`host` is asked past the proxy."""

    process: Process
    proxy: SpoilingProxy


@contextmanager
def standing_before(cluster: E2eCluster, identity: Identity, directory: Path) -> Iterator[Front]:
    """A front of a host, as this identity, until the context is left."""
    port, proxy = free_port(), SpoilingProxy(cluster.url, identity)
    flags = [f"--kubeconfig={proxy.add_server(DOOR, directory)}", f"--cert-dir={directory / 'certs'}"]
    address = [f"--secure-port={port}", "--bind-address=127.0.0.1", f"--root-host={ROOT_HOST}"]
    process = run_command("serve", *flags, *address, "--controllers=none", log=directory / "front.log")
    try:
        url = f"https://127.0.0.1:{port}"
        front = Front(Client(url, admin_tls(cluster), {}), cluster.client(), process, proxy)
        wait_until("the front is ready", lambda: is_ready(front.client), seconds=PATIENCE, processes=[process])
        yield front
    finally:
        process.stop()
        proxy.close()


def admin_tls(cluster: E2eCluster) -> ssl.SSLContext:
    """The administrator's certificate, shown to a server with a CA of its own."""
    tls = ssl._create_unverified_context()
    tls.load_cert_chain(cluster.admin.kubeconfig.with_suffix(".crt"), cluster.admin.kubeconfig.with_suffix(".key"))
    return tls


def is_ready(client: Client) -> bool:
    try:
        return client.get("/readyz").status == 200
    except OSError:
        return False
