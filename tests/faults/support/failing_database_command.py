"""Our command with a database that fails on demand.

python -m tests.faults.support.failing_database_command FILE ARGUMENT...

FILE contains the instruction for all commits while it exists. `kill NUMBER before|during|after` kills the process with
SIGKILL at that commit, counted from 1; `stall` blocks every commit until FILE is deleted.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from registry.sqlite.statements import Tables
from tenant_apiserver.__main__ import main

MOMENTS = ("before", "during", "after")
STALL = "stall"
# about the duration of a commit: the kill comes at a random time within it
_COMMIT_SECONDS = 0.003
_POLL_SECONDS = 0.02


def kill_instruction(commit: int, moment: str) -> str:
    return f"kill {commit} {moment}"


class DatabaseFault:
    """Executes the instruction in FILE. Used by the single thread that commits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._commits = 0

    def commit(self, commit: Callable[[], None]) -> None:
        while (instruction := self._read_instruction()) == STALL:
            time.sleep(_POLL_SECONDS)
        moment = self._moment_of_kill(instruction)
        if moment == "before":
            _kill_self()
        if moment == "during":
            threading.Timer(random.uniform(0, _COMMIT_SECONDS), _kill_self).start()
        commit()
        if moment == "after":
            _kill_self()

    def _moment_of_kill(self, instruction: str) -> str:
        """Counts this commit; returns the moment of the kill if it is due at this commit, else ""."""
        if not instruction:
            return ""
        self._commits += 1
        _, number, moment = instruction.split()
        return moment if self._commits == int(number) else ""

    def _read_instruction(self) -> str:
        try:
            return self._path.read_text()
        except FileNotFoundError:
            return ""


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _install(fault: DatabaseFault) -> None:
    commit = Tables.commit

    def commit_with_fault(self: Tables) -> None:
        fault.commit(lambda: commit(self))

    Tables.commit = commit_with_fault  # type: ignore[method-assign]


if __name__ == "__main__":
    _install(DatabaseFault(Path(sys.argv.pop(1))))
    main()
