"""The data directory of a stand-alone server, seen from outside."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory


def check_integrity(data: Path) -> str:
    """Returns the result of SQLite's integrity check of a copy: opening the database itself would merge and remove its
    log."""
    with TemporaryDirectory() as scratch:
        for each in data.glob("host.db*"):
            shutil.copy(each, scratch)
        with closing(sqlite3.connect(Path(scratch, "host.db"))) as connection:
            answer: str = connection.execute("PRAGMA integrity_check").fetchone()[0]
    return answer
