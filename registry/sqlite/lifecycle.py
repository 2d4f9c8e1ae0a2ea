"""Merges SQLite's write-ahead log into the database file, and records in both whether the file is complete.

The table `lifecycle` has one row. As long as the process runs, `open` is 1 in the file itself, and -1 in the log beside
it. So a file with its log is complete, also after another program has merged them, and a copy of the file alone is not.
Therefore SQLite does not merge by itself: between its merge and a kill, the file alone would look complete.

A closed file and a backup have 0, and need no log: one beside such a file is that of another file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

PAGE_BYTES = 4096
# SQLite's own limit (SQLITE_DEFAULT_WAL_AUTOCHECKPOINT): a log of about 4 MB
_MERGE_AT_PAGES = 1000
_TABLE = "CREATE TABLE IF NOT EXISTS lifecycle (id INTEGER PRIMARY KEY CHECK (id = 1), open INTEGER NOT NULL)"
_OPEN = "INSERT OR REPLACE INTO lifecycle VALUES (1, 1)"
_COMPLETE = "INSERT OR REPLACE INTO lifecycle VALUES (1, -1)"
_CLOSED = "INSERT OR REPLACE INTO lifecycle VALUES (1, 0)"
_MERGE_WHOLE = "PRAGMA wal_checkpoint(TRUNCATE)"


def is_complete(connection: sqlite3.Connection) -> bool:
    """True if everything is there that was written. Also creates the table; files of older versions have none."""
    connection.execute(_TABLE)
    found = connection.execute("SELECT open FROM lifecycle").fetchone()
    return found is None or found[0] <= 0


def needs_no_log(path: Path) -> bool:
    """True for a closed file or a backup. Reads the file alone, as any other connection would merge the log."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as file:
        return bool(file.execute("SELECT open FROM lifecycle").fetchone() == (0,))
    return False


def mark_closed(connection: sqlite3.Connection) -> None:
    """For a finished copy."""
    connection.execute(_CLOSED)


class Log:
    """The write-ahead log of an open database, merged when it is long."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Raises sqlite3.Error."""
        self._connection = connection
        self._pages = 0
        connection.execute(_OPEN)
        connection.execute(_MERGE_WHOLE)
        connection.execute(_COMPLETE)
        self._is_marked = True

    def add_pages(self, count: int) -> None:
        self._pages += count

    def before_commit(self) -> None:
        """Adds the mark to a transaction if the log lacks it, because the disk was full after the last merge."""
        if not self._is_marked:
            self._connection.execute(_COMPLETE)

    def after_commit(self) -> None:
        """Merges a long log. An error, such as a full disk, is ignored, because the next transaction tries again."""
        self._is_marked = True
        if self._pages < _MERGE_AT_PAGES:
            return
        with suppress(sqlite3.Error):
            self._merge()
        with suppress(sqlite3.Error):
            self._connection.execute(_COMPLETE)
            self._is_marked = True

    def close(self) -> None:
        """Merges everything. If the disk is full, the log remains beside the file."""
        with suppress(sqlite3.Error):
            # the last mark is merged by itself, so that the file has it only when it has everything else
            self._connection.execute(_MERGE_WHOLE)
            self._connection.execute(_CLOSED)
            self._connection.execute(_MERGE_WHOLE)

    def _merge(self) -> None:
        self._is_marked = False
        self._connection.execute(_OPEN)
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._pages = 0
