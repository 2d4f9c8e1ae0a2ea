"""An embedded host whose database fails on demand."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.support.clusters import EmbeddedCluster
from tests.e2e.support.processes import REPOSITORY, Process
from tests.faults.failing_database_command import STALL, kill_instruction


class FailingDatabaseCluster(EmbeddedCluster):
    def __init__(self, directory: Path, order: str = "") -> None:
        """With an order that it does not survive it raises NotInTime."""
        self._order = directory / "order"
        self.clear_fault()
        if order:
            self._write(order)
        super().__init__(directory)

    def run(self, *arguments: str, log: Path) -> Process:
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "tests.faults.failing_database_command",
            self._order,
            *arguments,
        ]
        return Process("a mortal standalone", command, log=log, environment={"PYTHONPATH": str(REPOSITORY)})

    def kill_at_commit(self, commit: int, moment: str) -> None:
        """Have it killed at this commit, counted from now on."""
        self._write(kill_instruction(commit, moment))

    def clear_fault(self) -> None:
        self._order.unlink(missing_ok=True)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Nothing reaches the disk meanwhile."""
        self._write(STALL)
        try:
            yield
        finally:
            self.clear_fault()

    def _write(self, order: str) -> None:
        """At once: it may be read at any time."""
        fresh = self._order.with_suffix(".new")
        fresh.write_text(order)
        os.replace(fresh, self._order)
