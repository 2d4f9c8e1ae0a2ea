"""python -m tests.run_in_ci [argument of pytest …]

Runs pytest, and runs tests that failed once more, alone, if they are few. A test that passes then is unstable: the run
passes, and says so at its end. An unstable test is a bug, of the test or of the server; CONTRIBUTING.md tells how it is
found. All that is wrong with the code itself fails twice. A test that is skipped the second time has not passed: the
run fails.

The module is also the plugin of pytest that records which tests passed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import pytest

MOST_FAILURES = 5
# pytest's exit status if tests failed, unlike an interrupted run or an error of pytest itself
_TESTS_FAILED = 1
_CACHE = Path(".pytest_cache/v")
_LAST_FAILED, _LAST_PASSED = "cache/lastfailed", "run_in_ci/passed"
# one process, but with the names of tests that --dist=loadgroup gives them in a run of several
_ALONE = ("--numprocesses=1", "--dist=loadgroup", "--no-loadscope-reorder")
_FAILED_ONLY = ("--last-failed", "--last-failed-no-failures=none")
_RECORD_PASSED = ("-p", "tests.run_in_ci")

Run = Callable[[Sequence[str]], int]
"""Runs pytest with these arguments and returns its exit status."""


def run_in_ci(
    arguments: Sequence[str],
    *,
    run: Run,
    failed: Callable[[], Collection[str]],
    passed: Callable[[], Collection[str]],
) -> int:
    """`failed` and `passed` return the ids of the tests that did so in the latest run. Returns an exit status."""
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
    status = run((*_ALONE, *_FAILED_ONLY, *_RECORD_PASSED))
    for name in first:
        print(f"{_verdict(name, failed(), passed())}: {name}")
    return status or int(any(name not in passed() for name in first))


def _verdict(name: str, failed: Collection[str], passed: Collection[str]) -> str:
    if name in failed:
        return "FAILED TWICE"
    if name in passed:
        return "UNSTABLE, failed beside others and passed alone"
    return "FAILED, and did not run alone"


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(_Passed(session.config))


class _Passed:
    """Records the ids of the tests that passed, in the process that gets all reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._names = list[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._names.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        if not hasattr(self._config, "workerinput"):
            self._config.cache.set(_LAST_PASSED, self._names)


def _run_pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def _cached(name: str) -> Sequence[str]:
    file = _CACHE / name
    return sorted(json.loads(file.read_text())) if file.is_file() else ()


if __name__ == "__main__":
    for each in (_LAST_FAILED, _LAST_PASSED):
        (_CACHE / each).unlink(missing_ok=True)
    sys.exit(
        run_in_ci(
            sys.argv[1:], run=_run_pytest, failed=partial(_cached, _LAST_FAILED), passed=partial(_cached, _LAST_PASSED)
        )
    )
