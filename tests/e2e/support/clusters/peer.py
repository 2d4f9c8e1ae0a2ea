"""A live Cozystack: a server that is not ours has the groups, and ours is installed beside it.

The peer is the real cozystack-api if COZYSTACK_API names its program, or else a second server of ours under another
Service, which is a stand-in for everything that a move is about: whose APIServices they are, and whose CA.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from apiserver.tls import certificates
from tests.e2e.support.clusters.audit_log import OPERATOR
from tests.e2e.support.clusters.cainjector import certificates_of
from tests.e2e.support.clusters.cluster import API_SERVICE, GROUP_VERSION, ROOT_HOST
from tests.e2e.support.clusters.control_plane import COZYSTACK_CRDS
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port, run_command, wait_until

PROGRAM = "COZYSTACK_API"
NAME = "cozystack-api"
REAL_GROUPS = ("apps", "core", "sdn")
STAND_IN_GROUPS = ("apps", "core")
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
HOME = "/api/v1/namespaces/cozy-system"
ANNOTATIONS = {
    "cert-manager.io/inject-ca-from": "cozy-system/cozystack-api",
    "meta.helm.sh/release-name": "cozystack-api",
    "meta.helm.sh/release-namespace": "cozy-system",
}


def program() -> Path | None:
    """The real cozystack-api, if there is one."""
    found = os.environ.get(PROGRAM)
    return Path(found) if found else None


class LiveCluster:
    """`kube` with the peer in front of it. Our server runs beside it, with its controllers."""

    def __init__(self, kube: KubeCluster, *, real: bool) -> None:
        self.kube = kube
        self.client = kube.client()
        self.groups = REAL_GROUPS if real else STAND_IN_GROUPS
        self.real = real
        self._port = free_port()
        self._ca = certificates.make_ca("peer")
        self.ca = self._ca.certificate
        kube.client().request("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cozy:tenants:visible")
        self._install_catalogue()
        self.peer = self._start()
        try:
            self._lead("tenant-apiserver", kube.port)
            self._register()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.peer.stop()
        self.kube.stop()

    def command(
        self, *arguments: str, user: str = OPERATOR, groups: Sequence[str] = ("system:masters",)
    ) -> tuple[int, str]:
        """Runs one of our commands as an operator. Returns its exit status and what it has printed."""
        kubeconfig = self.kube.identity(user, tuple(groups)).kubeconfig
        log = self.kube.directory / f"{arguments[0]}.log"
        log.unlink(missing_ok=True)
        process = run_command(*arguments, f"--kubeconfig={kubeconfig}", log=log)
        return process.wait(seconds=180), process.log()

    def api_services(self) -> dict[str, Any]:
        """The metadata that owners write, and the spec, by group."""
        found = {}
        for group in self.groups:
            each = self.client.get(f"{API_SERVICES}/v1alpha1.{group}.cozystack.io").expect(200)
            metadata = {field: each["metadata"].get(field) for field in ("uid", "labels", "annotations")}
            found[group] = {"metadata": metadata, "spec": each["spec"]}
        return found

    def served_by(self) -> str:
        """The name of the Service that has the group of Tenants."""
        name: str = self.api_services()["apps"]["spec"]["service"]["name"]
        return name

    def restart_ours(self, *flags: str) -> None:
        """Our server runs with these flags from now on."""
        kube = self.kube
        kube.flags = flags
        kube.server.stop()
        kube.server = kube.start()
        kube.processes = [kube.server, *kube.processes[1:]]
        client = kube.direct_client()
        wait_until("our server is ready", lambda: client.serves("/readyz"), seconds=120, processes=[kube.server])

    def has_ca(self, ca: bytes) -> bool:
        """True if each APIService trusts the certificates of this bundle."""
        bundles = (base64.b64decode(each["spec"]["caBundle"]) for each in self.api_services().values())
        return all(certificates_of(ca) <= certificates_of(each) for each in bundles)

    def write_chart(self, folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
        """The APIServices of cozystack-api's chart, as a chart: without a CA, which cert-manager writes. `changes` are
        fields of the spec that are other than now."""
        chart = folder / NAME
        (chart / "templates").mkdir(parents=True, exist_ok=True)
        (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": NAME, "version": "0.1.0"}))
        injected = {"cert-manager.io/inject-ca-from": f"cozy-system/{NAME}"}
        documents = [
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"v1alpha1.{group}.cozystack.io", "annotations": injected},
                "spec": {**self._registration(group), **(changes or {})},
            }
            for group in self.groups
        ]
        (chart / "templates" / "apiservice.yaml").write_text(yaml.safe_dump_all(documents))
        return chart

    def _registration(self, group: str) -> dict[str, Any]:
        return {
            "group": f"{group}.cozystack.io",
            "version": "v1alpha1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": {"namespace": "cozy-system", "name": NAME, "port": self._port},
        }

    def _start(self) -> Process:
        directory = self.kube.directory
        serving = certificates.make_serving(self._ca, [f"{NAME}.cozy-system.svc"])
        files = directory / "peer.crt", directory / "peer.key"
        for file, content in zip(files, (serving.certificate, serving.key), strict=True):
            file.write_bytes(content)
        common = [
            f"--kubeconfig={self.kube.admin.kubeconfig}",
            f"--tls-cert-file={files[0]}",
            f"--tls-private-key-file={files[1]}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
        ]
        if self.real:
            return self._start_real(common)
        # as cozystack-api it has none of the Leases of ours, which are in cozy-system
        flags = ["--controllers=none", f"--service-name={NAME}", "--service-namespace=kube-public"]
        flags.append(f"--root-host={ROOT_HOST}")
        return run_command("serve", *common, *flags, log=directory / "peer.log")

    def _start_real(self, common: Sequence[str]) -> Process:
        kubeconfig = self.kube.admin.kubeconfig
        flags = [f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]
        found = program()
        assert found is not None
        environment = {"KUBECONFIG": str(kubeconfig)}
        log = self.kube.directory / "peer.log"
        return Process(NAME, [found, *common, *flags], log=log, environment=environment)

    def _install_catalogue(self) -> None:
        """Cozystack's CRDs, and two of its ApplicationDefinitions besides that of Tenants."""
        from tests.application_definitions.samples import definition

        crds = self.kube.crds / COZYSTACK_CRDS
        self.kube.kubectl("apply", "--server-side", f"--filename={crds}")
        self.kube.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
        for name in ("tenant", "redis", "postgres"):
            self.kube.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition(name)))

    def _lead(self, service: str, port: int) -> None:
        """The Service leads to a port of this machine."""
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port, "name": "https"}]}
        path = f"{HOME}/services/{service}"
        if self.client.get(path).status == 404:
            self.client.request("POST", f"{HOME}/services", {"metadata": {"name": service}, "spec": spec}).expect(201)
            return
        patch = {"spec": spec}
        self.client.request("PATCH", path, patch, content_type="application/merge-patch+json").expect(200)

    def _register(self) -> None:
        """The APIServices are as the peer's chart and cert-manager have made them."""
        self._lead(NAME, self._port)
        self._wait("the peer listens", lambda: "erving" in self.peer.log() or "listens" in self.peer.log())
        for group in self.groups:
            name = f"v1alpha1.{group}.cozystack.io"
            self.client.request("DELETE", f"{API_SERVICES}/{name}")
            spec = {**self._registration(group), "caBundle": base64.b64encode(self.ca).decode()}
            labels = {"app.kubernetes.io/managed-by": "Helm"}
            body = {"metadata": {"name": name, "annotations": ANNOTATIONS, "labels": labels}, "spec": spec}
            self.client.request("POST", API_SERVICES, body).expect(201)
        self._wait("the peer serves Tenants", lambda: self.client.serves(f"{GROUP_VERSION}/tenants"))
        self._wait("the peer is available", lambda: self._is_available(API_SERVICE))

    def _is_available(self, name: str) -> bool:
        found = self.client.get(f"{API_SERVICES}/{name}").expect(200)
        conditions = found.get("status", {}).get("conditions", [])
        return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)

    def _wait(self, what: str, check: Callable[[], bool]) -> None:
        wait_until(what, check, seconds=120, processes=[self.peer, self.kube.server])
