"""The commands of docs/upgrade.md after a roll-back, which has written fields of the Deployment under another name.

No Pod runs here: the image that the Deployment names is what is looked at.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import yaml

from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import REPOSITORY

PAGE = REPOSITORY / "docs" / "upgrade.md"
ONLY = "--selector=app.kubernetes.io/name=tenant-apiserver"
IMAGE = "jsonpath={.spec.template.spec.containers[0].image}"
DEPLOYMENT = ("-n", "cozy-system", "deployment/tenant-apiserver")


def overlay(folder: Path, tag: str) -> Path:
    """The manifests with an image of this version, and nothing else changed."""
    made = folder / tag
    made.mkdir()
    base = os.path.relpath(REPOSITORY / "manifests" / "base", made.resolve())
    (made / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": [base], "images": [{"name": "tenant-apiserver", "newTag": tag}]})
    )
    return made


def command_of_the_page(mark: str, manifests: Path) -> list[str]:
    """The arguments for kubectl in the page's only line with this flag."""
    [line] = [each for each in PAGE.read_text().splitlines() if each.startswith("$ kubectl") and mark in each]
    words = shlex.split(line.removeprefix("$ kubectl "))
    return [str(manifests) if each == "manifests" else each for each in words]


def test_an_upgrade_after_a_roll_back_is_the_command_of_the_page(kube: KubeCluster, tmp_path: Path) -> None:
    before = kube.kubectl("get", *DEPLOYMENT, "-o", IMAGE).stdout
    kube.kubectl("apply", "--server-side", "-k", str(overlay(tmp_path, "0.2.0")), ONLY)
    # the write of `kubectl rollout undo`, which itself needs the ReplicaSets of a deployment controller
    undo = f'[{{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"{before}"}}]'
    kube.kubectl("patch", *DEPLOYMENT, "--type=json", "--patch", undo, "--field-manager=kubectl")
    third = overlay(tmp_path, "0.3.0")
    refused = kube.kubectl("apply", "--server-side", "-k", str(third), ONLY, status=1)
    assert 'containers[name="tenant-apiserver"].image' in refused.stderr
    applied = kube.kubectl(*command_of_the_page("--force-conflicts", third)).stdout
    assert applied.splitlines() == ["deployment.apps/tenant-apiserver serverside-applied"]
    assert kube.kubectl("get", *DEPLOYMENT, "-o", IMAGE).stdout.endswith(":0.3.0")
    # once is enough
    kube.kubectl("apply", "--server-side", "-k", str(overlay(tmp_path, before.rpartition(":")[2])), ONLY)
    assert kube.kubectl("get", *DEPLOYMENT, "-o", IMAGE).stdout == before


def test_a_deployment_that_uninstall_has_scaled_is_run_again_by_the_command_that_it_prints(
    kube: KubeCluster, tmp_path: Path
) -> None:
    """The number of replicas belongs to `uninstall` then, and an apply of the manifests alone is refused."""
    manifests = overlay(tmp_path, kube.kubectl("get", *DEPLOYMENT, "-o", IMAGE).stdout.rpartition(":")[2])
    zero = '{"spec":{"replicas":0}}'
    kube.kubectl("patch", *DEPLOYMENT, "--type=merge", "--patch", zero, "--field-manager=tenant-apiserver-operator")
    refused = kube.kubectl("apply", "--server-side", "-k", str(manifests), ONLY, status=1)
    assert ".spec.replicas" in refused.stderr
    kube.kubectl("scale", *DEPLOYMENT, "--replicas=2")
    kube.kubectl("apply", "--server-side", "-k", str(manifests), ONLY)
    assert kube.kubectl("get", *DEPLOYMENT, "-o", "jsonpath={.spec.replicas}").stdout == "2"
