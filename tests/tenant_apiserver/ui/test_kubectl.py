"""The command with a real kubectl whose cluster does not answer."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import yaml

from tests.e2e.support.clusters.cluster import tenants_path
from tests.e2e.support.clusters.processes import free_port
from tests.e2e.support.tenant_page import Browser, start_page


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        pytest.param({"token": "t"}, "connection refused", id="no server"),
        pytest.param(
            {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "/bin/false",
                    "interactiveMode": "Never",
                }
            },
            "getting credentials: exec: executable /bin/false failed with exit code 1",
            id="a plugin that fails",
        ),
    ],
)
def test_the_reason_for_which_kubectl_has_no_answer_is_told(
    tmp_path: Path, user: dict[str, object], reason: str
) -> None:
    page = start_page(_kubeconfig(tmp_path, user), log=tmp_path / "page.log")
    try:
        browser = Browser.of(page)
        assert browser.get("/session")[1]["namespace"] is None
        status, answer = browser.get(tenants_path())
        assert (status, answer["reason"]) == (503, "ServiceUnavailable")
        assert answer["message"].startswith("kubectl cannot reach the cluster: ")
        assert reason in answer["message"]
        page.signal(signal.SIGTERM)
        assert page.wait(seconds=30) == 0
    finally:
        page.stop()


def test_a_kubectl_that_asks_for_a_name_ends_the_command(tmp_path: Path) -> None:
    page = start_page(_kubeconfig(tmp_path, {}), log=tmp_path / "page.log")
    assert page.wait(seconds=60) == 1
    assert "error: kubectl proxy did not start" in page.log()


def _kubeconfig(directory: Path, user: dict[str, object]) -> Path:
    path = directory / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "gone", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "user"}}],
        "current-context": "gone",
    }
    path.write_text(yaml.safe_dump(document))
    return path
