"""A proxy as a process of its own, before a kube-apiserver or a source of bytes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from apiserver.tls.certificates import KeyPair
from benchmarks.client import Endpoint
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.processes import ChildProcess, free_port, wait_until
from benchmarks.targets.target import RBAC, unverified_tls, user_tls

_ACCOUNT = "bench-proxy"
_ROLE = Path(__file__).resolve().parents[2] / "manifests" / "overlays" / "proxy" / "clusterrole.yaml"
_START_SECONDS = 120.0


class RunningProxy:
    """`client_ca` signs the certificates of users."""

    def __init__(self, process: ChildProcess, directory: Path, port: int, client_ca: KeyPair) -> None:
        self.process = process
        self.port = port
        self._directory = directory
        self._client_ca = client_ca
        self._url = f"https://127.0.0.1:{port}"

    @classmethod
    @asynccontextmanager
    async def running(
        cls, directory: Path, *, kubeconfig: Path, client_ca: KeyPair, flags: Sequence[str] = ()
    ) -> AsyncIterator[RunningProxy]:
        """The proxy is listening, and need not be ready."""
        port, ca = free_port(), await asyncio.to_thread(_written, directory, client_ca)
        command = [
            *(sys.executable, "-m", "tenant_apiserver", "proxy"),
            f"--kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={directory / 'pki'}",
            f"--client-ca-file={ca}",
            *flags,
        ]
        process = await ChildProcess.start(command, directory / "proxy.log")
        try:
            proxy = cls(process, directory, port, client_ca)
            await wait_until("the proxy", proxy._listens, seconds=_START_SECONDS, child=process)
            yield proxy
        finally:
            await process.stop()

    @classmethod
    @asynccontextmanager
    async def before(cls, target: KubeTarget, directory: Path) -> AsyncIterator[RunningProxy]:
        """A proxy with the rights of the manifests, which is ready. 4,000 watches may belong to one user."""
        role = yaml.safe_load(_ROLE.read_text())
        await target.admin.call("POST", f"{RBAC}/clusterroles", role)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _ACCOUNT}
        binding = {"metadata": {"name": _ACCOUNT}, "roleRef": reference, "subjects": [subject]}
        await target.admin.call("POST", f"{RBAC}/clusterrolebindings", binding)
        kubeconfig = target.kubeconfig_of(_ACCOUNT)
        flags = ["--max-requests-inflight=2000"]
        async with cls.running(directory, kubeconfig=kubeconfig, client_ca=target.ca, flags=flags) as proxy:
            await wait_until("readyz", proxy._is_ready, seconds=_START_SECONDS, child=proxy.process)
            yield proxy

    def endpoint_of(self, user: str) -> Endpoint:
        """The proxy, as a user without groups."""
        served_ca = (self._directory / "pki" / "ca.crt").read_bytes()
        return Endpoint(self._url, user_tls(self._directory, self._client_ca, served_ca, user))

    async def _listens(self) -> bool:
        return bool(await Endpoint(self._url, unverified_tls()).text("/proxy/livez"))

    async def _is_ready(self) -> bool:
        return await Endpoint(self._url, unverified_tls()).text("/proxy/readyz") == "ok"


def _written(directory: Path, client_ca: KeyPair) -> Path:
    directory.mkdir()
    path = directory / "client-ca.crt"
    path.write_bytes(client_ca.certificate)
    return path
