"""A cluster without controllers of ours, and a sequence of servers that work on it through a proxy that kills them."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import KUBECTL, KUBECTL_PATIENCE, PATIENCE
from tests.e2e.support.clusters.control_plane import ControlPlane
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.processes import REPOSITORY, Process, free_port, run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.recording_proxy import RecordingProxy

GROUP = "/apis/helm.toolkit.fluxcd.io/v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSize:
    """The number of Tenants, and for each server the highest request number at which it is killed.

    The server after the last listed one is not killed.
    """

    parents: int
    children: int
    kills_while_creating: Sequence[int]
    kills_while_deleting: Sequence[int]

    @property
    def total(self) -> int:
        return self.parents * (1 + self.children)


class KillTestbed(ABC):
    """`admin` is the identity of the servers and of the test."""

    size: WorkloadSize

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._servers = 0

    @property
    @abstractmethod
    def admin(self) -> Identity: ...

    @property
    @abstractmethod
    def processes(self) -> Sequence[Process]: ...

    @abstractmethod
    def stop_cluster(self) -> None: ...

    @cached_property
    def client(self) -> Client:
        return Client(self.admin.server, self.admin.tls, self.admin.headers)

    @cached_property
    def proxy(self) -> RecordingProxy:
        return RecordingProxy(self.admin.server, self.admin)

    @contextmanager
    def run_server(self, *, kill_at: int = 0, after_response: bool = False) -> Iterator[Process]:
        """Runs a server that is killed at this request, before or after the cluster has answered it."""
        self._servers += 1
        name, running = f"server{self._servers}", list[Process]()

        def kill(number: int, answered: bool) -> None:
            if number == kill_at and answered == after_response and running:
                os.kill(running[0].pid, signal.SIGKILL)

        kubeconfig = self.proxy.add_server(name, self.directory, observer=kill)
        flags = [f"--kubeconfig={kubeconfig}", f"--cert-dir={self.directory / 'certs'}", "--leader-elect=false"]
        address = ["--bind-address=127.0.0.1", f"--secure-port={free_port()}"]
        running.append(run_command("serve", *flags, *address, log=self.directory / f"{name}.log"))
        try:
            yield running[0]
        finally:
            running[0].stop()

    def list(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.client.get(path).expect(200)["items"]
        return items

    def create_tenant(self, name: str, namespace: str) -> None:
        body = {
            "apiVersion": GROUP.removeprefix("/apis/"),
            "kind": "HelmRelease",
            "metadata": {
                "name": f"tenant-{name}",
                "labels": {
                    "apps.cozystack.io/application.kind": "Tenant",
                    "apps.cozystack.io/application.group": "apps.cozystack.io",
                    "apps.cozystack.io/application.name": name,
                },
            },
            # the CRD requires an interval and a chart
            "spec": {"interval": "5m", "chartRef": {"kind": "ExternalArtifact", "name": "tenant"}, "values": {}},
        }
        self.client.request("POST", f"{GROUP}/namespaces/{namespace}/helmreleases", body).expect(201)

    def stop(self) -> None:
        self.proxy.close()
        self.stop_cluster()


class EmbeddedKillTestbed(KillTestbed):
    # Creating all Tenants takes over 2,000 requests, so the first kill always happens.
    size = WorkloadSize(parents=20, children=9, kills_while_creating=(1600, 400, 400), kills_while_deleting=(600, 200))

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        data = directory / "data"
        flags = ["--bind-address=127.0.0.1", f"--secure-port={free_port()}", "--controllers=none"]
        self._cluster = run_command("standalone", f"--data-dir={data}", *flags, log=directory / "cluster.log")
        self._wait_until("the kubeconfig is written", (data / "kubeconfig").is_file)
        self._admin = credentials.from_kubeconfig(data / "kubeconfig")
        self._wait_until("the cluster is ready", lambda: self.client.serves("/readyz"))

    @property
    def admin(self) -> Identity:
        return self._admin

    @property
    def processes(self) -> Sequence[Process]:
        return (self._cluster,)

    def stop_cluster(self) -> None:
        self._cluster.stop()

    def _wait_until(self, what: str, check: Callable[[], bool]) -> None:
        wait_until(what, check, seconds=PATIENCE, processes=self.processes)


class KubeKillTestbed(KillTestbed):
    """A real kube-apiserver that stores Tenants as HelmReleases only.

    There is no APIService, so a killed server of ours does not disturb discovery.
    """

    # Creating all Tenants takes over 400 requests, and the namespace controller needs a while for each namespace.
    size = WorkloadSize(parents=5, children=7, kills_while_creating=(300, 120, 120), kills_while_deleting=(150,))

    def __init__(self, directory: Path, control_plane: ControlPlane) -> None:
        """`control_plane` has the CRDs of Flux, Gateway API and cert-manager."""
        super().__init__(directory)
        self._control_plane = control_plane
        try:
            self._kubectl(
                "apply",
                "--server-side",
                f"--filename={REPOSITORY / 'manifests/overlays/prerequisites/tenantgateway-crd.yaml'}",
            )
            self._kubectl("wait", "--for=condition=Established", "crd", "--all", KUBECTL_PATIENCE)
            self._control_plane.start_controllers()
        except BaseException:
            self._control_plane.stop()
            raise

    @property
    def admin(self) -> Identity:
        return self._control_plane.admin

    @property
    def processes(self) -> Sequence[Process]:
        return self._control_plane.processes

    def stop_cluster(self) -> None:
        self._control_plane.stop()

    def _kubectl(self, *arguments: str) -> None:
        command = [str(KUBECTL), f"--kubeconfig={self.admin.kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
        assert done.returncode == 0, done.stderr
