"""Our command with a database that fails on demand: python -m tests.faults.failing_database_command FILE ARGUMENT...

While FILE exists it says what becomes of commits from then on: `kill NUMBER before|during|after` ends the process by
SIGKILL around that commit, counted from 1; `stall` holds every commit up until FILE is gone.
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
# about what a commit takes: the kill may come at any time of it
_COMMIT_SECONDS = 0.003
_POLL_SECONDS = 0.02


def kill_instruction(commit: int, moment: str) -> str:
    return f"kill {commit} {moment}"


class DatabaseFault:
    """What FILE says, carried out by the one thread that commits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._commits = 0

    def commit(self, commit: Callable[[], None]) -> None:
        while (order := self._read_order()) == STALL:
            time.sleep(_POLL_SECONDS)
        moment = self._moment_of_kill(order)
        if moment == "before":
            _kill_self()
        if moment == "during":
            threading.Timer(random.uniform(0, _COMMIT_SECONDS), _kill_self).start()
        commit()
        if moment == "after":
            _kill_self()

    def _moment_of_kill(self, order: str) -> str:
        """Of this commit, if it is the one; else empty."""
        if not order:
            return ""
        self._commits += 1
        _, number, moment = order.split()
        return moment if self._commits == int(number) else ""

    def _read_order(self) -> str:
        try:
            return self._path.read_text()
        except FileNotFoundError:
            return ""


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _install(order: DatabaseFault) -> None:
    commit = Tables.commit

    def ordered(self: Tables) -> None:
        order.commit(lambda: commit(self))

    Tables.commit = ordered  # type: ignore[method-assign]


if __name__ == "__main__":
    _install(DatabaseFault(Path(sys.argv.pop(1))))
    main()
