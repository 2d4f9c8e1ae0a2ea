"""docs/plain-kubernetes.md: its overlay is applied to a real kube-apiserver, and its commands print what is shown.

With UPDATE_PAGE=1, the output is written to the page.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import REPOSITORY

PAGE = REPOSITORY / "docs" / "plain-kubernetes.md"
_OVERLAY = REPOSITORY / "manifests" / "overlays" / "plain"
_FILE = re.compile(r"^`(?P<name>\w+\.yaml)`:\n\n```yaml\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```console\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_CHANGING = re.compile(r"\b\d+(s|ms|m\d*s?)(?=\s|$)|(?<=\s)Unknown(?=\s)|(?<=\s)<none>(?=\s)")
_INSTALLATION = ("apply --server-side", "rollout", "create -k")
Run = Callable[..., str]


def install(kube: KubeCluster, directory: Path) -> None:
    """Applies the overlay with the networks that it asks for. The Service still leads to our process, which reads the
    settings of the ConfigMap."""
    networks = [{"op": "replace", "path": "/spec", "value": {"type": "ExternalName", "externalName": "localhost"}}]
    text = yaml.load((_OVERLAY / "configmap-platform.yaml").read_text(), Loader=yaml.CSafeLoader)["data"][
        "platform.yaml"
    ]
    named = text.replace("[the-networks-of-pods-services-and-nodes]", "[10.244.0.0/16, 10.96.0.0/12, 192.0.2.0/24]")
    settings = [{"op": "replace", "path": "/data/platform.yaml", "value": named}]
    patches = [
        {"target": {"kind": "Service"}, "patch": yaml.safe_dump(networks)},
        {"target": {"kind": "ConfigMap", "name": "tenant-apiserver-platform"}, "patch": yaml.safe_dump(settings)},
    ]
    overlay = directory / "plain"
    overlay.mkdir()
    resource = os.path.relpath(_OVERLAY, overlay.resolve())
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [resource], "patches": patches}))
    kube.kubectl("apply", "--server-side", "-k", str(overlay))
    found = kube.client().get("/api/v1/namespaces/cozy-system/configmaps/tenant-apiserver-platform").expect(200)
    file = directory / "platform.yaml"
    file.write_text(found["data"]["platform.yaml"])
    kube.flags = (f"--config={file}",)
    kube.restart()


class PageRun:
    def __init__(self, kube: KubeCluster, directory: Path) -> None:
        self._kube = kube
        self._directory = directory
        for found in _FILE.finditer(PAGE.read_text()):
            (directory / found["name"]).write_text(found["text"])

    def block(self, text: str) -> str:
        """The block with the output that its commands print; of a command that is shown, once it is the same."""
        parts = [part for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE) if part]
        return "".join(self._command(*part.split("\n", 1)) for part in parts)

    def _command(self, line: str, shown: str) -> str:
        command = line.removeprefix("$ kubectl ")
        if command.startswith(_INSTALLATION):
            return f"{line}\n{shown}"
        printed = self._run(command)
        if not os.environ.get("UPDATE_PAGE"):

            def is_as_shown() -> bool:
                nonlocal printed
                same = _normal(printed) == _normal(shown)
                printed = printed if same else self._run(command)
                return same

            self._kube.wait_until(f"{command} prints {shown}", is_as_shown)
        return f"{line}\n{printed}"

    def _run(self, command: str) -> str:
        arguments = [self._path(each) for each in shlex.split(command)]
        done = self._kube.kubectl(*arguments, status=None)
        printed = (done.stdout + done.stderr).replace(f"{self._directory}/", "")
        return printed if printed.endswith("\n") or not printed else f"{printed}\n"

    def _path(self, argument: str) -> str:
        return str(self._directory / argument) if (self._directory / argument).is_file() else argument


def _normal(text: str) -> list[str]:
    return [" ".join(_CHANGING.sub("*", line).split()) for line in text.splitlines()]


@pytest.mark.timeout(900)
def test_the_page_takes_a_plain_cluster_to_its_first_tenants(own_kube: KubeCluster, tmp_path: Path) -> None:
    if not own_kube.has_controllers:
        pytest.skip("needs a kube-controller-manager beside kube-apiserver: put it into KUBEBUILDER_ASSETS")
    install(own_kube, tmp_path)
    run = PageRun(own_kube, tmp_path)
    text = PAGE.read_text()
    played = _BLOCK.sub(lambda found: f"```console\n{run.block(found['text'])}```", text)
    if os.environ.get("UPDATE_PAGE"):
        PAGE.write_text(played)
