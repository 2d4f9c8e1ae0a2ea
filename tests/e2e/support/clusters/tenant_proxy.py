"""`tenant-apiserver proxy` before a cluster, with the rights of its manifests."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.audit_log import PROXY
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import REPOSITORY, Process, free_port, run_command
from tests.e2e.support.http.https_client import Client

ACCOUNT = PROXY
_OVERLAYS = REPOSITORY / "manifests" / "overlays"
_RIGHTS = (
    "proxy/clusterrole",
    "proxy/clusterrolebinding",
    "proxy-persistent-volumes/clusterrole",
    "proxy-persistent-volumes/clusterrolebinding",
    "proxy/rolebinding-auth-reader",
)


class TenantProxy:
    """A running proxy. Its account is a user with a certificate, bound to the roles of the manifests."""

    def __init__(
        self, cluster: E2eCluster, directory: Path, *flags: str, account: Identity | None = None, is_ready: bool = True
    ) -> None:
        """`account` is what the proxy sends requests with, by default a user bound to the roles. Without `is_ready`,
        only livez is waited for."""
        self._cluster = cluster
        self._port = free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        directory.mkdir(parents=True, exist_ok=True)
        self.ca = directory / "pki" / "ca.crt"
        _grant_rights(cluster)
        identity = account or cluster.identity(ACCOUNT)
        self.process = run_command(
            "proxy",
            f"--kubeconfig={identity.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={directory / 'pki'}",
            *_client_ca(cluster),
            *flags,
            log=directory / "proxy.log",
        )
        try:
            cluster.wait_until("the proxy listens", self.ca.is_file)
            path = "/proxy/readyz" if is_ready else "/proxy/livez"
            cluster.wait_until(f"the proxy answers {path}", lambda: self.client().serves(path))
        except BaseException:
            self.process.stop()
            raise

    def client(self, user: str = "", groups: Sequence[str] = ()) -> Client:
        """A client of the proxy as this user, anonymous by default."""
        tls = self._tls()
        if not user:
            return Client(self.url, tls, {})
        identity = self._cluster.identity(user, groups)
        tls.load_cert_chain(identity.kubeconfig.with_suffix(".crt"), identity.kubeconfig.with_suffix(".key"))
        return Client(self.url, tls, {})

    def token_client(self, token: str) -> Client:
        return Client(self.url, self._tls(), {"Authorization": f"Bearer {token}"})

    def _tls(self) -> ssl.SSLContext:
        return credentials.tls_context(self.ca.read_text())

    def kubectl(
        self,
        *arguments: str,
        user: str,
        groups: Sequence[str] = (),
        input: str = "",
        status: int | None = 0,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs the real kubectl through the proxy as this user."""
        return self._cluster.kubectl(
            *self._options,
            *arguments,
            as_user=user,
            groups=groups,
            input=input,
            status=status,
            environment=environment,
        )

    def start_kubectl(self, *arguments: str, user: str, environment: Mapping[str, str] | None = None) -> Process:
        """Starts a kubectl that keeps running; the caller stops it."""
        command, *others = arguments
        return self._cluster.start_kubectl(command, *self._options, *others, as_user=user, environment=environment)

    @property
    def _options(self) -> Sequence[str]:
        return f"--server={self.url}", f"--certificate-authority={self.ca}"

    def stop(self) -> None:
        """Fails unless the proxy exits cleanly and has logged no traceback."""
        assert self.process.stop() == 0, self.process.tail()
        assert "Traceback" not in self.process.log(), self.process.log()[-4000:]


def _grant_rights(cluster: E2eCluster) -> None:
    documents = [yaml.load((_OVERLAYS / f"{name}.yaml").read_text(), Loader=yaml.CSafeLoader) for name in _RIGHTS]
    for document in documents:
        if "subjects" in document:
            document["subjects"] = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": ACCOUNT}]
    chosen = documents[:-1] if isinstance(cluster, EmbeddedCluster) else documents
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(chosen))


def _client_ca(cluster: E2eCluster) -> Sequence[str]:
    """A kube-apiserver publishes the CA in a ConfigMap, an embedded cluster has it in a file."""
    return [f"--client-ca-file={cluster.data / 'pki' / 'ca.crt'}"] if isinstance(cluster, EmbeddedCluster) else []
