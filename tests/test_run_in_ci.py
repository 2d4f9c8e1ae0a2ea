from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.run_in_ci import MOST_FAILURES, run_in_ci

REPOSITORY = Path(__file__).parents[1]
TESTS = """
import pytest
from pathlib import Path

def test_that_passes():
    pass

@pytest.mark.parametrize("name", ["a b", "c"])
def test_that_passes_alone(name):
    seen = Path(f"{name}.seen")
    assert seen.exists() or seen.touch()

def test_that_fails():
    assert %s
"""
SKIPPED_ALONE = """
import pytest
from pathlib import Path

def test_that_is_skipped_alone():
    if Path("seen").exists():
        pytest.skip("alone")
    Path("seen").touch()
    raise AssertionError
"""
CONFTEST = f"""
import pytest
import sys; sys.path.insert(0, {str(REPOSITORY)!r})
from tests.group_scheduling import name_group

def pytest_itemcollected(item):
    item.add_marker(pytest.mark.xdist_group('x'))

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    [name_group(item) for item in items if config.getoption('loadgroup', False)]
"""


class Runs:
    """Runs of pytest, each with its exit status, the tests that fail in it and those that pass."""

    def __init__(self, *runs: tuple[int, Sequence[str], Sequence[str]]) -> None:
        self._left = list(runs)
        self.failed: Sequence[str] = ()
        self.passed: Sequence[str] = ()

    def run(self, arguments: Sequence[str]) -> int:
        status, self.failed, self.passed = self._left.pop(0)
        return status

    @property
    def all_used(self) -> bool:
        return not self._left


@pytest.mark.parametrize(
    ("runs", "status"),
    [
        pytest.param(Runs((0, (), ["t::a"])), 0, id="all pass"),
        pytest.param(Runs((1, ["t::a"], ()), (0, (), ["t::a"])), 0, id="an unstable test"),
        pytest.param(Runs((1, ["t::a", "t::b"], ()), (1, ["t::b"], ["t::a"])), 1, id="one fails twice"),
        pytest.param(Runs((1, ["t::a", "t::b"], ()), (0, (), ["t::a"])), 1, id="one is skipped alone"),
        pytest.param(Runs((1, [f"t::{each}" for each in range(MOST_FAILURES + 1)], ())), 1, id="too many"),
        pytest.param(Runs((1, (), ["t::a"])), 1, id="a failure that is no test's"),
        pytest.param(Runs((1, ["test_a.py"], ())), 1, id="a file that cannot be collected"),
        pytest.param(Runs((1, ["test_a.py::test_a", "gw1"], ())), 1, id="processes that collect different tests"),
        pytest.param(Runs((2, ["t::a"], ())), 2, id="an interrupted run"),
        pytest.param(Runs((3, ["t::a"], ())), 3, id="an internal error"),
        pytest.param(Runs((1, ["t::a"], ()), (5, ["t::a"], ())), 5, id="the test is not found again"),
    ],
)
def test_only_a_few_failed_tests_run_once_more(runs: Runs, status: int) -> None:
    assert run_in_ci((), run=runs.run, failed=lambda: runs.failed, passed=lambda: runs.passed) == status
    assert runs.all_used


@pytest.mark.parametrize(("fails", "status"), [(False, 0), (True, 1)])
def test_tests_of_several_processes_are_found_again(tmp_path: Path, fails: bool, status: int) -> None:
    """The names of tests in a run of several processes have a suffix."""
    done = _run(tmp_path, TESTS % (not fails))
    assert done.returncode == status, done.stdout + done.stderr
    assert "UNSTABLE, failed beside others and passed alone: test_it.py::test_that_passes_alone[a b]" in done.stdout
    assert ("FAILED TWICE: test_it.py::test_that_fails" in done.stdout) is fails


def test_a_test_that_is_skipped_alone_has_not_passed(tmp_path: Path) -> None:
    done = _run(tmp_path, SKIPPED_ALONE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED, and did not run alone: test_it.py::test_that_is_skipped_alone" in done.stdout


def _run(directory: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Runs the tests in a project of their own, in two processes and then alone."""
    (directory / "test_it.py").write_text(tests)
    (directory / "conftest.py").write_text(CONFTEST)
    command = [sys.executable, "-m", "tests.run_in_ci", "--numprocesses=2", "--dist=loadgroup", "--rootdir=."]
    environment = {
        "PYTHONPATH": str(REPOSITORY),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "xdist.plugin",
    }
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
