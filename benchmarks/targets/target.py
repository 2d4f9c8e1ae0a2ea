"""The target of a benchmark: our server, the cluster that stores its state, and an ordinary user of both."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from apiserver.tls import certificates
from apiserver.tls.certificates import KeyPair
from benchmarks.client import Endpoint, UnexpectedStatus
from benchmarks.targets.processes import ChildProcess, ObservedProcess, wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
HELM = "helm.toolkit.fluxcd.io"
TENANTS = "apps.cozystack.io"
USER = "bench"
NAMESPACE = "tenant-root"
_START_SECONDS = 300.0


def settings_flag(directory: Path, settings: str) -> list[str]:
    """The flag with a file of these settings; none if they are empty."""
    if not settings:
        return []
    file = directory / "platform.yaml"
    file.write_text(settings)
    return [f"--config={file}"]


class Target(ABC):
    """`user` and `cluster_user` are the same user, at our server and at the cluster; `admin` sets up the cluster,
    `anonymous` checks the health of our server."""

    title: str
    server: ChildProcess
    user: Endpoint
    cluster_user: Endpoint
    admin: Endpoint
    anonymous: Endpoint

    def processes(self) -> Mapping[str, ObservedProcess]:
        """Our server and those of the cluster, by name."""
        return {"tenant-apiserver": self.server}

    @abstractmethod
    async def start(self) -> None:
        """Starts our server without waiting until it is ready."""

    def program(self) -> list[str]:
        """The module that is run, and its arguments before the command."""
        return ["tenant_apiserver"]

    async def ready(self) -> None:
        """Waits for /readyz."""
        await wait_until("readyz", self._is_ready, seconds=_START_SECONDS, child=self.server)

    async def _is_ready(self) -> bool:
        connection = await self.anonymous.connect()
        try:
            await connection.call("GET", "/readyz")
        except UnexpectedStatus:
            return False
        finally:
            connection.close()
        return True

    async def _has_root(self) -> bool:
        try:
            await self.admin.call("GET", f"/api/v1/namespaces/{NAMESPACE}")
        except UnexpectedStatus:
            return False
        return True

    async def grant(self, *more: Mapping[str, Sequence[str]]) -> None:
        """Grants the user all verbs on Tenants and HelmReleases in one namespace and nowhere else; `more` are further
        rules."""
        rules = [
            {"apiGroups": [TENANTS], "resources": ["tenants"], "verbs": ["*"]},
            {"apiGroups": [HELM], "resources": ["helmreleases", "helmreleases/status"], "verbs": ["*"]},
            *more,
        ]
        role = {"metadata": {"name": USER}, "rules": rules}
        binding = {
            "metadata": {"name": USER},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": USER},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        }
        await wait_until("the root's namespace", self._has_root, seconds=_START_SECONDS, child=self.server)
        for plural, obj in (("roles", role), ("rolebindings", binding)):
            await self.admin.call("POST", f"{RBAC}/namespaces/{NAMESPACE}/{plural}", obj)


def unverified_tls() -> ssl.SSLContext:
    """A context without a client certificate that accepts any server certificate: for health checks."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def user_tls(directory: Path, ca: KeyPair, server_ca: bytes, user: str, groups: tuple[str, ...] = ()) -> ssl.SSLContext:
    """A context with a client certificate of `user`, signed by `ca`, that trusts `server_ca`."""
    pair = certificates.make_client(ca, user, groups)
    path = directory / f"{user}.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=server_ca.decode())
    context.load_cert_chain(path)
    return context
