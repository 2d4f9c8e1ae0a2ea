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


def kill_at(commit: int, moment: str) -> str:
    return f"kill {commit} {moment}"


class Order:
    """What FILE says, carried out by the one thread that commits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._commits = 0

    def commit(self, commit: Callable[[], None]) -> None:
        while (told := self._told()) == STALL:
            time.sleep(_POLL_SECONDS)
        moment = self._moment(told)
        if moment == "before":
            _die()
        if moment == "during":
            threading.Timer(random.uniform(0, _COMMIT_SECONDS), _die).start()
        commit()
        if moment == "after":
            _die()

    def _moment(self, told: str) -> str:
        """Of this commit, if it is the one; else empty."""
        if not told:
            return ""
        self._commits += 1
        _, number, moment = told.split()
        return moment if self._commits == int(number) else ""

    def _told(self) -> str:
        try:
            return self._path.read_text()
        except FileNotFoundError:
            return ""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _obey(order: Order) -> None:
    commit = Tables.commit

    def ordered(self: Tables) -> None:
        order.commit(lambda: commit(self))

    Tables.commit = ordered  # type: ignore[method-assign]


if __name__ == "__main__":
    _obey(Order(Path(sys.argv.pop(1))))
    main()
