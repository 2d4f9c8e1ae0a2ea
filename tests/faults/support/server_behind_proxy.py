"""A server of ours behind a faulty proxy to its cluster, and a comparison of the Tenants of both."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.names import RELEASE_SELECTOR
from registry.tenant.convert import to_tenant
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.faults.support.faulty_proxy import FaultyProxy
from tests.faults.support.reflector import Name, name_of

Object = dict[str, Any]
RELEASES = "/apis/helm.toolkit.fluxcd.io/v2"
PROXIED_SERVER = "proxied"


@dataclass(frozen=True, slots=True)
class ServerAndCluster:
    """Clients of our server and of its cluster."""

    client: Client
    cluster_client: Client

    def served_tenants(self) -> dict[Name, Object]:
        return {name_of(item): item for item in self.client.get(tenants_path()).expect(200)["items"]}

    def stored_tenants(self) -> dict[Name, Object]:
        """The Tenants of the HelmReleases that the cluster stores."""
        answer = self.cluster_client.get(f"{RELEASES}/helmreleases", query={"labelSelector": RELEASE_SELECTOR})
        tenants = [to_tenant(release) for release in answer.expect(200)["items"]]
        return {name_of(tenant): tenant for tenant in tenants}

    def cache_equals_cluster(self) -> bool:
        """True if our server returns exactly the objects that the cluster stores."""
        return self.served_tenants() == self.stored_tenants()


@dataclass(frozen=True, slots=True)
class ProxiedServer(ServerAndCluster):
    """A server behind `proxy`; `cluster_client` bypasses the proxy."""

    process: Process
    proxy: FaultyProxy


@contextmanager
def started_proxied_server(
    cluster: E2eCluster, identity: Identity, directory: Path, *, withheld: str = "", verbosity: int = 1
) -> Iterator[ProxiedServer]:
    """Runs a server without controllers that reaches the cluster with this identity.

    Waits until it is ready, or with a `withheld` resource until it has listed all others; the proxy holds the lists of
    that one back to the end of the context.
    """
    port, proxy = free_port(), FaultyProxy(cluster.url, identity)
    flags = [f"--kubeconfig={proxy.add_server(PROXIED_SERVER, directory)}", f"--cert-dir={directory / 'certs'}"]
    address = [f"--secure-port={port}", "--bind-address=127.0.0.1", f"--root-host={ROOT_HOST}", f"-v={verbosity}"]
    with ExitStack() as stack:
        stack.callback(proxy.close)
        if withheld:
            stack.enter_context(proxy.withholding(PROXIED_SERVER, withheld))
        process = run_command("serve", *flags, *address, "--controllers=none", log=directory / f"{PROXIED_SERVER}.log")
        stack.callback(process.stop)
        url = f"https://127.0.0.1:{port}"
        proxied = ProxiedServer(Client(url, admin_tls_context(cluster), {}), cluster.client(), process, proxy)
        wait_until(
            f"the server lacks only {withheld}" if withheld else "the server is ready",
            lambda: lacks_only(proxied.client, withheld) if withheld else is_ready(proxied.client),
            seconds=PATIENCE,
            processes=[process],
        )
        yield proxied


def admin_tls_context(cluster: E2eCluster) -> ssl.SSLContext:
    """A context with the administrator's certificate that does not verify the server."""
    tls = ssl._create_unverified_context()
    kubeconfig = cluster.admin_with_certificate.kubeconfig
    tls.load_cert_chain(kubeconfig.with_suffix(".crt"), kubeconfig.with_suffix(".key"))
    return tls


def lacks_only(client: Client, plural: str) -> bool:
    """True if the server has listed everything but this resource."""
    try:
        return client.get("/readyz/informer-sync").content.decode().rstrip().endswith(f"not synced: {plural}")
    except OSError:
        return False


def is_ready(client: Client) -> bool:
    try:
        return client.get("/readyz").status == 200
    except OSError:
        return False
