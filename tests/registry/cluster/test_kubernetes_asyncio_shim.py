"""Imports of kubernetes-asyncio. Each test runs a process of its own, because imported modules are global."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[3]
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://example.org:6443"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: ["-c", PRINT],
  interactiveMode: Never}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def run(program: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error::ImportWarning", "-c", program, *arguments]
    done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_generated_models_are_not_imported() -> None:
    program = "import sys, registry.cluster.client; print(sum('kubernetes_asyncio' in name for name in sys.modules))"
    assert int(run(program)) < 30


@pytest.mark.parametrize(
    "first",
    [pytest.param("", id="alone"), pytest.param("import kubernetes_asyncio.client", id="after the whole library")],
)
def test_a_kubeconfig_with_a_credential_plugin_is_loaded(first: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    credential = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"secret"}}'
    printed = tmp_path / "credential.json"
    printed.write_text(credential)
    kubeconfig.write_text(_KUBECONFIG.replace("PRINT", f'"cat {printed}"'))
    program = f"""
{first or "pass"}
import asyncio, sys
from registry.cluster.kubernetes_asyncio_shim import Configuration, config
configuration = Configuration()
asyncio.run(config.load_kube_config(config_file=sys.argv[1], client_configuration=configuration))
print(configuration.host, configuration.api_key["BearerToken"])
"""
    assert run(program, str(kubeconfig)) == "https://example.org:6443 Bearer secret"
