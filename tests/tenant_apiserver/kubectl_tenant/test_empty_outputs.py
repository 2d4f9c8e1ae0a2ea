"""An output without rows: stdout stays empty, as kubectl's, and the advice is on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from apiserver.meta.resource import Object
from tests.e2e.support.clusters.processes import REPOSITORY
from tests.tenant_apiserver.kubectl_tenant.fake_kubectl import fake_kubectl

_MAIN = "from tenant_apiserver.kubectl_tenant.main import main; main()"
_ALICE: Object = {
    "metadata": {"name": "alice", "namespace": "tenant-root"},
    "spec": {},
    "status": {"namespace": "tenant-alice"},
}


def _run(directory: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _MAIN, *arguments],
        env={**os.environ, "KUBECTL": str(fake_kubectl(directory, script)), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _answers(directory: Path, tenants: Sequence[Object], **others: Object) -> str:
    """A script that answers lists of Tenants, and each path that contains a word of `others`; other lists are empty."""
    documents = {
        **others,
        "resourcequotas": {"items": []},
        "routes": {"items": []},
        "tenants": {"items": list(tenants)},
    }
    cases = []
    for word, document in documents.items():
        (directory / f"{word}.json").write_text(json.dumps(document))
        cases.append(f"*{word}*) cat {directory}/{word}.json ;;")
    return "\n".join(('case "$*" in', *cases, "*) echo '{\"items\":[]}' ;;", "esac"))


@pytest.mark.parametrize("command", ["tree", "quota", "hosts"])
def test_advice_about_an_empty_output_is_on_stderr(tmp_path: Path, command: str) -> None:
    done = _run(tmp_path, _answers(tmp_path, []), command)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("No tenant that you may see. Ask an administrator for a Role such as")


def test_a_tenant_that_nobody_may_get_is_told_on_stderr(tmp_path: Path) -> None:
    answer = {"verdict": "True", "summary": "0 subjects may get the tenant", "facts": []}
    done = _run(tmp_path, _answers(tmp_path, [_ALICE], explain=answer), "who-can-see", "alice")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "No binding that you may see lets anybody get the tenant.\n"


def test_diff_says_that_nothing_differs(tmp_path: Path) -> None:
    answer = {"status": {"format": 1, "changes": [], "hidden": 0}}
    script = _answers(tmp_path, [_ALICE], diff=answer)
    done = _run(tmp_path, script, "diff", "alice")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Nothing differs: the controllers would change nothing for tenant tenant-root/alice.\n"
    document = _run(tmp_path, script, "diff", "alice", "-o", "json")
    assert (json.loads(document.stdout), document.stderr) == (answer, "")


def test_a_diff_of_hidden_objects_alone_says_only_that(tmp_path: Path) -> None:
    answer = {"status": {"format": 1, "changes": [], "hidden": 2}}
    done = _run(tmp_path, _answers(tmp_path, [_ALICE], diff=answer), "diff", "alice")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "note: 2 objects that you may not see would change, too\n"
