"""The real kube-apiserver, with our server behind it, that the end-to-end tests run on."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path

from apiserver.tls.certificates import KeyPair
from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import (
    AGGREGATED_DISCOVERY,
    API_SERVICE,
    CORE_API_SERVICE,
    CORE_GROUP_VERSION,
    GROUP_VERSION,
    PATIENCE,
    ROOT_HOST,
    SDN_API_SERVICE,
    SDN_GROUP_VERSION,
    E2eCluster,
)
from tests.e2e.support.clusters.control_plane import FRONT_PROXY, ControlPlane
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.installation import install, register
from tests.e2e.support.clusters.processes import Process, free_port, run_command
from tests.e2e.support.http.https_client import Client


class KubeCluster(E2eCluster):
    """`tenant-apiserver serve` behind a real kube-apiserver, installed from our manifests under its own account."""

    kind = "kube"
    is_disposable = True

    def __init__(
        self,
        directory: Path,
        control_plane: ControlPlane,
        crds: Path,
        *,
        run: Callable[..., Process] = run_command,
        flags: Sequence[str] = (),
    ) -> None:
        """Installs the manifests, unless the control plane has begun with them. `run` starts our command."""
        super().__init__(directory)
        self.flags = flags
        self._run = run
        self._control_plane = control_plane
        self.crds = crds
        self.has_controllers = control_plane.has_controllers
        self.kube_apiserver = control_plane.processes[-1]
        self.audit_log = control_plane.audit_log
        self.url, self.admin = control_plane.url, control_plane.admin
        self.processes, self.server = control_plane.processes, control_plane.processes[-1]
        self.port = free_port()
        self.direct_url = f"https://127.0.0.1:{self.port}"
        if not control_plane.is_prepared:
            install(self.kubectl, directory, crds)
        self.account = self.account_of("tenant-apiserver")
        # before our server starts, which then writes its CA into the APIServices at once, instead of when it next looks
        register(self.kubectl, directory, self.port)
        self.server = self.start()
        self.processes = [self.server, *control_plane.processes]
        try:
            self.wait_until_available()
            # started last, so that they discover every kind at once instead of at their next resync
            control_plane.start_controllers()
            self.processes = [self.server, *control_plane.processes]
            self._wait_until_ready(self.anonymous_client())
        except BaseException:
            self.server.stop()
            raise

    @cached_property
    def admin_with_certificate(self) -> Identity:
        return self._control_plane.admin_with_certificate()

    def client_of_another_apiserver(self) -> Client:
        """An administrator's client of a second kube-apiserver, which runs from now on."""
        return Client(self._control_plane.start_another_apiserver(), self.admin.tls, self.admin.headers)

    def create_user(self, user: str, groups: tuple[str, ...]) -> Identity:
        return self._control_plane.identity(user, groups)

    def restart(self) -> None:
        self.server.stop()
        self.server = self.start()
        self.processes = [self.server, *self._control_plane.processes]
        self.wait_until_available()
        self._wait_until_ready(self.anonymous_client())

    def stop(self) -> int:
        status = self.server.stop()
        self._control_plane.stop()
        return status

    def compact(self) -> None:
        """Compacts etcd to the current revision, as kube-apiserver does periodically."""
        self._control_plane.compact()
        self.kube_apiserver.restart_after_kill()

    def start(self) -> Process:
        """Starts our server with the permissions of the ServiceAccount of the manifests and no others."""
        return self._run(
            "serve",
            f"--kubeconfig={self.account.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--root-host={ROOT_HOST}",
            *self.flags,
            log=self.directory / "serve.log",
        )

    def direct_client(self, user: str = "", groups: Sequence[str] = ()) -> Client:
        """A client that bypasses the aggregator, with a client certificate of the cluster."""
        identity = self.identity(user, groups) if user else self.admin_with_certificate
        tls = self._direct_tls()
        tls.load_cert_chain(identity.kubeconfig.with_suffix(".crt"), identity.kubeconfig.with_suffix(".key"))
        return Client(self.direct_url, tls, {})

    def client_at(self, port: int, ca: Path) -> Client:
        """A client with an administrator's certificate of the cluster, for a server at a port of this machine."""
        tls = credentials.tls_context(ca.read_text())
        kubeconfig = self.admin_with_certificate.kubeconfig
        tls.load_cert_chain(kubeconfig.with_suffix(".crt"), kubeconfig.with_suffix(".key"))
        return Client(f"https://127.0.0.1:{port}", tls, {})

    def kubelet_files(self, directory: Path) -> tuple[Path, Path, Path]:
        """The certificate and the key of a kubelet at 127.0.0.1, and the CA of its clients."""
        return self._control_plane.kubelet_files(directory)

    def account_of(self, name: str) -> Identity:
        """The credentials of a ServiceAccount in cozy-system."""
        token = self.kubectl("create", "token", name, "-n", "cozy-system", "--duration=24h").stdout
        return self._control_plane.token_identity(name, token.strip())

    def anonymous_client(self) -> Client:
        """A client for our server without credentials."""
        return Client(self.direct_url, self._direct_tls(), {})

    def front_proxy_client(self, name: str = FRONT_PROXY) -> Client:
        """A client with the aggregator's certificate, or with one of the same CA and another name."""
        tls, control_plane = self._direct_tls(), self._control_plane
        pair = control_plane.front_proxy if name == FRONT_PROXY else control_plane.proxy_certificate(name)
        _load(tls_directory=self.directory, tls=tls, pair=pair, name=f"test-{name}")
        return Client(self.direct_url, tls, {})

    def _direct_tls(self) -> ssl.SSLContext:
        secret = self.client().get("/api/v1/namespaces/cozy-system/secrets/tenant-apiserver-serving-cert").expect(200)
        return credentials.tls_context(base64.b64decode(secret["data"]["ca.crt"]).decode())

    def wait_until_available(self) -> None:
        """Waits until the aggregator serves all of our groups, and their discovery and OpenAPI documents.

        It fetches each of these on its own, up to a minute later than the others. kubectl needs all of them.
        """
        client = self.client()
        versions = {each.removeprefix("/apis/") for each in (GROUP_VERSION, CORE_GROUP_VERSION, SDN_GROUP_VERSION)}

        def is_available(name: str) -> bool:
            found = client.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}").json()
            conditions = found.get("status", {}).get("conditions", [])
            return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)

        def is_discovered() -> bool:
            groups = client.get("/apis", headers={"Accept": AGGREGATED_DISCOVERY}).expect(200)["items"]
            return versions <= {
                f"{group['metadata']['name']}/{each['version']}"
                for group in groups
                for each in group["versions"]
                if each["freshness"] == "Current" and each["resources"]
            }

        def has_openapi_documents() -> bool:
            paths = client.get("/openapi/v3").expect(200)["paths"]
            return all(f"apis/{each}" in paths for each in versions)

        for name in (API_SERVICE, CORE_API_SERVICE, SDN_API_SERVICE):
            self.wait_until(f"{name} is Available", partial(is_available, name))
        self.wait_until("the aggregator has our discovery documents", is_discovered, seconds=2 * PATIENCE)
        self.wait_until("the aggregator has our OpenAPI documents", has_openapi_documents, seconds=2 * PATIENCE)


def _load(*, tls_directory: Path, tls: ssl.SSLContext, pair: KeyPair, name: str) -> None:
    # under other file names, because kube-apiserver reloads its own certificate files
    certificate, key = tls_directory / f"{name}.crt", tls_directory / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls.load_cert_chain(certificate, key)
