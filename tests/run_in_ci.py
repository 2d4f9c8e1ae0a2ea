"""python -m tests.run_in_ci [argument of pytest …]

Runs pytest, and runs tests that failed once more, alone, if they are few. A test that passes then is unstable: the run
passes, and says so at its end. An unstable test is a bug, of the test or of the server; CONTRIBUTING.md tells how it is
found. All that is wrong with the code itself fails twice.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

MOST_FAILURES = 5
# pytest's exit status if tests failed, unlike an interrupted run or an error of pytest itself
_TESTS_FAILED = 1
_CACHE = Path(".pytest_cache/v/cache/lastfailed")
# one process, but with the names of tests that --dist=loadgroup gives them in a run of several
_ALONE = ("--numprocesses=1", "--dist=loadgroup", "--no-loadscope-reorder")
_FAILED_ONLY = ("--last-failed", "--last-failed-no-failures=none")

Run = Callable[[Sequence[str]], int]
"""Runs pytest with these arguments and returns its exit status."""


def run_in_ci(arguments: Sequence[str], *, run: Run, failed: Callable[[], Sequence[str]]) -> int:
    """`failed` returns the ids of the tests that failed in the latest run. Returns an exit status."""
    status = run(arguments)
    if status != _TESTS_FAILED:
        return status
    first = failed()
    if not all("::" in name for name in first):
        # --last-failed selects no test by such a name, and would run all tests in one process
        print(f"no tests, but files or processes failed, and nothing runs once more: {', '.join(first)}", flush=True)
        return status
    if not 0 < len(first) <= MOST_FAILURES:
        print(f"{len(first)} tests failed, which is too many to be unstable tests", flush=True)
        return status
    print(f"\nOnce more, alone: {len(first)} tests that failed", flush=True)
    status = run((*_ALONE, *_FAILED_ONLY))
    again = failed()
    for name in first:
        print(f"{'FAILED TWICE' if name in again else 'UNSTABLE, failed beside others and passed alone'}: {name}")
    return status


def _run_pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def _last_failed() -> Sequence[str]:
    return sorted(json.loads(_CACHE.read_text())) if _CACHE.is_file() else ()


if __name__ == "__main__":
    _CACHE.unlink(missing_ok=True)
    sys.exit(run_in_ci(sys.argv[1:], run=_run_pytest, failed=_last_failed))
