"""A process that a library aborts says where it was."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os
from tenant_apiserver.crash_log import log_crashes

def fail():
    os.abort()

log_crashes()
fail()
"""


def test_an_abort_prints_the_stack() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in run.stderr
    assert "in fail" in run.stderr


@pytest.mark.parametrize("closed", ["sys.stderr = None", "sys.stderr.close()"])
def test_a_closed_stderr_is_no_error(closed: str) -> None:
    script = f"import sys; {closed}; from tenant_apiserver.crash_log import log_crashes; log_crashes()"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
