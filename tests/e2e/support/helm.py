"""A real Helm 4 in end-to-end tests: from the PATH, or from the variable HELM."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.support.clusters.cluster import PATIENCE, E2eCluster


@cache
def helm() -> str:
    """The path of Helm 4; an earlier one does not wait for kinds that it does not know."""
    found = os.environ.get("HELM") or shutil.which("helm")
    if found is None:
        pytest.skip("no helm on the PATH, nor in HELM")
    version = subprocess.run([found, "version", "--short"], capture_output=True, text=True, timeout=60).stdout
    if not version.startswith("v4"):
        pytest.skip(f"{found} is {version.strip()}, not Helm 4")
    return found


def write_chart(folder: Path, obj: dict[str, Any]) -> Path:
    """A chart of one object."""
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "team", "version": "0.1.0"}))
    (chart / "templates" / "object.yaml").write_text(yaml.safe_dump(obj))
    return chart


def run_helm(cluster: E2eCluster, folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of Helm to its end."""
    return run_helm_alone(folder, *arguments, f"--kubeconfig={cluster.admin.kubeconfig}")


def run_helm_alone(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of Helm to its end, with no cluster unless a flag names one."""
    environment = {**os.environ, "HOME": str(folder)}
    command = [helm(), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
