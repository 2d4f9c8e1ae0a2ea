"""An embedded cluster whose database fails on demand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import ModuleProcess, Process
from tests.faults.support.failing_database_command import STALL, kill_instruction


class FailingDatabaseCluster(EmbeddedCluster):
    """Runs failing_database_command.py, and controls it by the file with the instruction."""

    def __init__(self, directory: Path, instruction: str = "") -> None:
        """Raises WaitTimeout if the instruction kills the process during its start."""
        self._file = directory / "instruction"
        self.clear_fault()
        if instruction:
            self._write(instruction)
        super().__init__(directory)

    def run(self, *arguments: str, log: Path) -> Process:
        command: list[str | Path] = ["tests.faults.support.failing_database_command", self._file, *arguments]
        return ModuleProcess("standalone with a failing database", command, log=log)

    def kill_at_commit(self, commit: int, moment: str) -> None:
        """Has the process killed at this commit, counted from now on."""
        self._write(kill_instruction(commit, moment))

    def clear_fault(self) -> None:
        self._file.unlink(missing_ok=True)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Blocks all commits inside the context."""
        self._write(STALL)
        try:
            yield
        finally:
            self.clear_fault()

    def _write(self, instruction: str) -> None:
        """Replaces the file atomically: the process may read it at any time."""
        new = self._file.with_suffix(".new")
        new.write_text(instruction)
        os.replace(new, self._file)
