"""Several servers on one kube-apiserver."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.e2e.support.clusters.cluster import ROOT_HOST
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, run_command
from tests.e2e.support.http.https_client import Client


@dataclass(frozen=True, slots=True)
class Replicas:
    """Servers on one cluster, by port."""

    kube: KubeCluster
    directory: Path
    processes: dict[int, Process]

    def start(self, port: int) -> None:
        flags = [f"--kubeconfig={self.kube.account.kubeconfig}", f"--secure-port={port}", "--bind-address=127.0.0.1"]
        log = self.directory / f"{port}.log"
        self.processes[port] = run_command("serve", *flags, f"--root-host={ROOT_HOST}", log=log)

    def client(self, port: int) -> Client:
        direct = self.kube.direct_client()
        return Client(f"https://127.0.0.1:{port}", direct.tls, direct.headers)
