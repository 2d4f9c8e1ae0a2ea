"""The plugin as a process: signals and encodings never end in a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e.support.clusters.processes import REPOSITORY, Process, wait_until
from tests.tenant_apiserver.kubectl_tenant.fake_kubectl import fake_kubectl

_MAIN = "from tenant_apiserver.kubectl_tenant.main import {entry}; {entry}()"
_INTERRUPTED_IMPORT = """\
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "registry.names":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
"""
_MODULES_OF_THE_SERVER = {
    "aiohttp",
    "asyncio",
    "cryptography",
    "kubernetes_asyncio",
    "orjson",
    "pydantic",
    "ssl",
    "yaml",
}
_TENANTS = {
    "items": [
        {
            "metadata": {"name": name, "namespace": namespace, "annotations": {"note": "größer"}},
            "spec": {"resourceQuotas": {"cpu": "2"}},
            "status": {"namespace": workload},
        }
        for name, namespace, workload in (
            ("root", "tenant-root", "tenant-root"),
            ("alice", "tenant-root", "tenant-alice"),
        )
    ]
}
_LISTS_TENANTS = """\
case "$*" in
    *resourcequotas*) echo '{"items":[]}' ;;
    *) cat "$(dirname "$0")/tenants.json" ;;
esac
"""


def _run(
    directory: Path, script: str, *arguments: str, code: str = "", entry: str = "main", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    (directory / "tenants.json").write_text(json.dumps(_TENANTS, ensure_ascii=False), encoding="utf-8")
    kubectl = fake_kubectl(directory, script)
    return subprocess.run(
        [sys.executable, "-c", f"{code}{_MAIN.format(entry=entry)}", *arguments],
        env={**os.environ, "KUBECTL": str(kubectl), "PYTHONPATH": str(REPOSITORY), **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_a_command_starts_without_the_modules_of_the_server() -> None:
    """They take longer to import than the command to answer."""
    program = "import sys, tenant_apiserver.kubectl_tenant.commands; print(*sys.modules)"
    imported = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert set(imported.stdout.split()) & _MODULES_OF_THE_SERVER == set()


@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}],
    ids=["ascii", "locale C"],
)
def test_a_terminal_without_utf_8_gets_characters_of_ascii(tmp_path: Path, environment: dict[str, str]) -> None:
    done = _run(tmp_path, _LISTS_TENANTS, "tree", **environment)
    assert (done.returncode, done.stderr) == (0, b"")
    root, alice = done.stdout.decode("ascii").splitlines()[1:]
    assert root.startswith("root       Unknown")
    assert root.endswith("########## cpu 0 left")
    assert alice.startswith("`- alice   Unknown")
    assert alice.endswith(".......... cpu 2 left")


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_document_is_utf_8_whatever_the_terminal_is(tmp_path: Path, form: str) -> None:
    done = _run(tmp_path, _LISTS_TENANTS, "tree", "-o", form, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "größer" in done.stdout.decode()


def test_an_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = _run(tmp_path, _LISTS_TENANTS, "tree", code="import sys; sys.stdout = open('/dev/full', 'w')\n")
    assert done.returncode == 1
    assert done.stderr.decode() == "error: No space left on device\n"


@pytest.mark.parametrize(
    ("entry", "words"),
    [("main", ["tree"]), ("main", ["tree", "-o", "json"]), ("main", ["--help"]), ("complete", ["tree", ""])],
)
def test_a_reader_that_has_ended_is_no_error(tmp_path: Path, entry: str, words: list[str]) -> None:
    code = "import os, sys\nread, write = os.pipe()\nos.close(read)\nsys.stdout = open(write, 'w')\n"
    done = _run(tmp_path, _LISTS_TENANTS, *words, code=code, entry=entry)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("entry", ["main", "complete"])
def test_a_ctrl_c_while_modules_are_imported_ends_silently(tmp_path: Path, entry: str) -> None:
    done = _run(tmp_path, "exit 1", "tree", "x", code=_INTERRUPTED_IMPORT, entry=entry)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_ctrl_c_while_kubectl_runs_ends_silently(tmp_path: Path) -> None:
    done = _run(tmp_path, "kill -INT $PPID; exec sleep 60", "tree")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_sigint_that_a_shell_has_ignored_stays_ignored(tmp_path: Path) -> None:
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{_INTERRUPTED_IMPORT}"
    assert _run(tmp_path, _LISTS_TENANTS, "tree", code=code).returncode == 0


@pytest.mark.parametrize(
    ("number", "script"),
    [
        pytest.param(signal.SIGINT, "exec sleep 60", id="kubectl has not heard of it"),
        pytest.param(signal.SIGINT, "trap 'exit 130' INT; while :; do sleep 0.1; done", id="kubectl ends too"),
        pytest.param(signal.SIGTERM, "exec sleep 60", id="SIGTERM"),
    ],
)
def test_a_signal_while_the_page_starts_ends_with_its_status(
    tmp_path: Path, number: signal.Signals, script: str
) -> None:
    started = tmp_path / "started"
    kubectl = fake_kubectl(tmp_path, f"echo $$ >{started}.new; mv {started}.new {started}; {script}")
    page = Process(
        "kubectl tenant ui",
        [sys.executable, "-c", _MAIN.format(entry="main"), "ui"],
        log=tmp_path / "ui.log",
        environment={"KUBECTL": str(kubectl), "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        wait_until("kubectl starts", started.exists, processes=[page])
        if "trap" in script:
            os.kill(int(started.read_text()), number)
        page.signal(number)
        assert page.wait(seconds=20) == 128 + number
        assert page.log() == ""
    finally:
        page.stop()


_CONTROL = "\x1b[2J\x9b2J\u202eno\x7f\u061c\u200b\U000e0041"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_no_text_of_an_object_in_a_document_controls_the_terminal(tmp_path: Path, form: str) -> None:
    """JSON escapes control characters of ASCII alone, and YAML none that change the order of others; terminals obey
    those of ISO 6429 in UTF-8, too."""
    notes = {"note": _CONTROL, "city": "Zürich"}
    items = {"items": [{"metadata": {"name": "x", "namespace": "y", "annotations": notes}, "status": {}}]}
    (tmp_path / "answer").write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    done = _run(tmp_path, f"cat {tmp_path}/answer", "tree", "-o", form)
    text = done.stdout.decode()
    assert all(each.isprintable() for each in text.split("\n")), text
    document = json.loads(text) if form == "json" else yaml.load(text, Loader=yaml.CSafeLoader)
    assert document["items"][0]["tenant"]["metadata"]["annotations"] == notes


@pytest.mark.parametrize(("status", "end"), [(0, "Warning: "), (1, "Error from server: ")])
def test_no_message_of_the_cluster_controls_the_terminal(tmp_path: Path, status: int, end: str) -> None:
    """Webhooks write warnings and denials."""
    (tmp_path / "message").write_text(f"{end}{_CONTROL}\nsecond line\n", encoding="utf-8")
    script = f"""cat {tmp_path}/message >&2; cat "$(dirname "$0")/tenants.json"; exit {status}"""
    done = _run(tmp_path, script, "tree")
    assert done.returncode == status
    escaped = _CONTROL.encode("unicode_escape").decode()
    assert done.stderr.decode().splitlines() == [f"{end}{escaped}", "second line"]
