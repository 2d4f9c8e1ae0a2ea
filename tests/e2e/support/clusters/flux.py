"""A real helm-controller of Flux, which installs the charts of HelmReleases. HELM_CONTROLLER names its program.

There is no source-controller: `offer_charts` makes the ExternalArtifacts that the HelmReleases name, each of one small
chart that a server on loopback has.
"""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port, wait_until

PROGRAM = "HELM_CONTROLLER"
RELEASES = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
_SOURCES = "source.toolkit.fluxcd.io"
_SOURCE_KINDS = {"HelmChart": "helmcharts", "OCIRepository": "ocirepositories", "ExternalArtifact": "externalartifacts"}
_ARTIFACTS = f"/apis/{_SOURCES}/v1/namespaces/{{}}/externalartifacts"
_MERGE_PATCH = "application/merge-patch+json"
_REVISION = "0.1.0"


def program() -> Path | None:
    """The real helm-controller, if there is one."""
    found = os.environ.get(PROGRAM)
    return Path(found) if found else None


@contextmanager
def running(kube: KubeCluster) -> Iterator[Process]:
    """The program works on all HelmReleases of the cluster."""
    crds = [_open_crd(kind, plural) for kind, plural in _SOURCE_KINDS.items()]
    kube.kubectl(
        "apply", "--server-side", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": crds})
    )
    kube.kubectl(
        "wait", "--for=condition=Established", "crd", *(each["metadata"]["name"] for each in crds), "--timeout=60s"
    )
    with _served(_chart()) as url:
        offer_charts(kube, url)
        found = program()
        assert found is not None
        addresses = [f"--{name}-addr=127.0.0.1:{free_port()}" for name in ("metrics", "health")]
        arguments: list[str | Path] = [found, *addresses, "--feature-gates=ExternalArtifact=true"]
        environment = {"KUBECONFIG": str(kube.admin.kubeconfig)}
        log = kube.directory / "helm-controller.log"
        process = Process("helm-controller", arguments, log=log, environment=environment)
        try:
            yield process
        finally:
            process.stop()


def offer_charts(kube: KubeCluster, url: str) -> None:
    """All HelmReleases that are stored now find the chart at `url`, and the values that they refer to."""
    client = kube.client()
    for release in client.get(RELEASES).expect(200)["items"]:
        chart, home = release["spec"]["chartRef"], release["metadata"]["namespace"]
        path = _ARTIFACTS.format(chart["namespace"])
        body = {
            "apiVersion": f"{_SOURCES}/v1",
            "kind": "ExternalArtifact",
            "metadata": {"name": chart["name"]},
            "spec": {},
        }
        if client.request("POST", path, body).status == 201:
            status = {"artifact": _artifact(url), "conditions": []}
            patched = f"{path}/{chart['name']}/status"
            client.request("PATCH", patched, {"status": status}, content_type=_MERGE_PATCH).expect(200)
        for values in release["spec"].get("valuesFrom", ()):
            secret = {
                "metadata": {"name": values["name"]},
                "stringData": {values.get("valuesKey", "values.yaml"): "{}"},
            }
            client.request("POST", f"/api/v1/namespaces/{home}/secrets", secret)


def wait_until_installed(kube: KubeCluster, process: Process, names: Sequence[str]) -> dict[str, Any]:
    """Returns the HelmReleases of these names, each installed as it is stored."""

    def found() -> dict[str, Any]:
        items = {each["metadata"]["name"]: each for each in kube.client().get(RELEASES).expect(200)["items"]}
        return {name: items[name] for name in names}

    def are_installed() -> bool:
        return all(_is_installed(each) for each in found().values())

    wait_until("the charts are installed", are_installed, seconds=120, processes=[process])
    return found()


def _is_installed(release: dict[str, Any]) -> bool:
    status = release.get("status", {})
    ready = [each for each in status.get("conditions", ()) if each["type"] == "Ready" and each["status"] == "True"]
    return bool(ready) and status.get("observedGeneration") == release["metadata"]["generation"]


def _open_crd(kind: str, plural: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": kind, "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_SOURCES}"},
        "spec": {"group": _SOURCES, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _chart() -> bytes:
    """A chart of one ConfigMap with the values of the release."""
    values = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}"}}
    files = {
        "Chart.yaml": yaml.safe_dump({"apiVersion": "v2", "name": "sample", "version": _REVISION}),
        "templates/values.yaml": yaml.safe_dump({**values, "data": {"host": "{{ .Values.host }}"}}),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"sample/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def _artifact(url: str) -> dict[str, Any]:
    digest = url.rpartition("/")[2].removesuffix(".tgz")
    updated = "2026-01-01T00:00:00Z"
    return {
        "digest": f"sha256:{digest}",
        "path": "sample.tgz",
        "revision": _REVISION,
        "url": url,
        "lastUpdateTime": updated,
    }


@contextmanager
def _served(chart: bytes) -> Iterator[str]:
    """The URL of the chart, which has its digest as its name."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(chart)))
            self.end_headers()
            self.wfile.write(chart)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{hashlib.sha256(chart).hexdigest()}.tgz"
    finally:
        server.shutdown()
        server.server_close()
