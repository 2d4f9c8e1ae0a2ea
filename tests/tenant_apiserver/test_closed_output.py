"""`tenant-apiserver … | head` ends without a traceback, and a command that writes ends its work first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.support.clusters.processes import REPOSITORY

_STEP = """\
import sys
from tenant_apiserver.lifecycle.command import StepRefused, run_command

async def action():
    for number in range(3):
        print("line", number)
    open(sys.argv[1], "w").write("done")
    {end}

raise SystemExit(run_command("replace", action, after="nothing was written"))
"""


def ended(*command: str, stdout: int, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    # argparse takes no notice of help that cannot be written, if it is written at once
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment = {**buffered, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, *command], stdout=stdout, stderr=stderr, env=environment, timeout=60, check=False
    )
    return done.returncode, (done.stderr or b"").decode()


@pytest.fixture
def unread() -> int:
    """A pipe whose reader has ended."""
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--help",), id="help"),
        pytest.param(("--version",), id="option"),
        pytest.param(("version",), id="version"),
        pytest.param(("uninstall", "--help"), id="help of a command"),
    ],
)
def test_what_only_prints_ends_as_by_sigpipe(unread: int, words: tuple[str, ...]) -> None:
    assert ended("-m", "tenant_apiserver", *words, stdout=unread) == (141, "")


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("return 0", ""),
        ("return 1", ""),
        ('raise StepRefused("no group has moved")', "tenant-apiserver replace: no group has moved\n"),
    ],
)
def test_a_step_is_ended_before(unread: int, tmp_path: Path, end: str, text: str) -> None:
    written = tmp_path / "written"
    assert ended("-c", _STEP.format(end=end), str(written), stdout=unread) == (141, text)
    assert written.read_text() == "done"


def test_nobody_need_read_the_errors_either(unread: int, tmp_path: Path) -> None:
    step = _STEP.format(end='raise StepRefused("no group has moved")')
    assert ended("-c", step, str(tmp_path / "written"), stdout=unread, stderr=unread) == (141, "")


def test_an_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    full = os.open("/dev/full", os.O_WRONLY)
    status, text = ended("-c", _STEP.format(end="return 0"), str(tmp_path / "written"), stdout=full)
    assert (status, text) == (2, "the output cannot be written: No space left on device\n")
    assert (tmp_path / "written").read_text() == "done"
