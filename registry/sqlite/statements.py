"""The SQL tables of the embedded cluster. Synchronous: called from the thread of database.py only.

`objects` has the current state of every object, and `revision` the latest resourceVersion, which all kinds share. It
never decreases, neither by deletions nor over a restart. `lifecycle` is described in lifecycle.py.
"""

from __future__ import annotations

import enum
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from apiserver.meta.resource import Key
from apiserver.private_files import create_private
from registry.sqlite.lifecycle import PAGE_BYTES, Log, is_complete, mark_closed, needs_no_log

_PAGES_AT_ONCE = 256
# "k8s1", which distinguishes our files from other SQLite databases
_APPLICATION_ID = 0x6B387331
_FORMAT = 1
# of each mutation, besides its data, and of each transaction: an upper bound, as mutations share pages
_PAGES_TOUCHED = 4
_SCHEMA = (
    """CREATE TABLE objects (
        resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL,
        rv INTEGER NOT NULL, deleting INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (resource, namespace, name))""",
    "CREATE INDEX objects_by_uid ON objects (uid)",
    "CREATE TABLE revision (id INTEGER PRIMARY KEY CHECK (id = 1), value INTEGER NOT NULL)",
    # starts at 1, because resourceVersion 0 means "any version" in a list
    "INSERT INTO revision VALUES (1, 1)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_FORMAT}",
)


class DatabaseUnusable(Exception):
    """The file cannot be opened, is damaged, belongs to another program, or is locked by another process."""


class DatabaseInUse(DatabaseUnusable):
    """Another process has locked the file."""


class RejectReason(enum.Enum):
    """The reason why a mutation was not applied."""

    EXISTS = enum.auto()
    EXISTS_DELETING = enum.auto()
    MISSING = enum.auto()
    CONFLICT = enum.auto()
    PARENT_MISSING = enum.auto()
    PARENT_DELETING = enum.auto()


class Row(NamedTuple):
    """`data` is the object as JSON, without its resourceVersion."""

    key: Key
    rv: int
    data: bytes


class StorageKey(NamedTuple):
    """The primary key of an object: the name of its storage, and its namespace and name."""

    resource: str
    key: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A change of one object.

    `expected` is the resourceVersion that must be stored, None if the object must not exist. Without `data` the object
    is deleted. `parent` must exist and not be terminating. A dry run checks these preconditions and changes nothing.
    """

    target: StorageKey
    expected: int | None
    uid: str = ""
    data: bytes | None = None
    deleting: bool = False
    parent: StorageKey | None = None
    dry_run: bool = False


class Tables:
    """An open database. All methods except `open` and `close` are called between `begin` and `commit`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._log = Log(connection)
        self.revision = _number(connection, "SELECT value FROM revision")

    @classmethod
    def open(cls, path: Path) -> Tables:
        """Opens or creates the file. Raises DatabaseUnusable."""
        log = path.with_name(f"{path.name}-wal")
        try:
            has_log = log.exists()
            if has_log and log.stat().st_size and needs_no_log(path):
                raise DatabaseUnusable(
                    f"{path} needs no log, and {log.name} beside it is the log of another file: if you have restored a "
                    f"backup, remove {log.name}"
                )
            # the file contains Secrets; SQLite creates its other files with the same mode
            create_private(path)
            connection = sqlite3.connect(path, isolation_level=None, timeout=2)
        except (OSError, sqlite3.Error) as error:
            raise DatabaseUnusable(f"{path} cannot be opened: {error}") from error
        try:
            _prepare(connection, path)
            _check_complete(connection, path, has_log=has_log)
            return cls(connection)
        except sqlite3.Error as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise DatabaseInUse(f"{path} is in use by another process") from error
            raise DatabaseUnusable(f"{path} cannot be used: {error}") from error
        except DatabaseUnusable:
            connection.close()
            raise

    def close(self) -> None:
        """Writes everything into the file itself. If the disk is full, the log remains beside it."""
        self._log.close()
        self._connection.close()

    def copy_to(self, path: Path, between_steps: Callable[[], None]) -> None:
        """Copies the database into a new file of mode 0600, which needs no other file. Called outside of transactions.
        `between_steps` may write; the copy has everything that was written before. Raises OSError and sqlite3.Error."""
        create_private(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            self._connection.backup(copy, pages=_PAGES_AT_ONCE, progress=lambda *_: between_steps(), sleep=0)
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("PRAGMA synchronous = FULL")
            mark_closed(copy)

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Returns when the transaction is on disk."""
        self._connection.execute("UPDATE revision SET value = ?", (self.revision,))
        self._log.before_commit()
        self._connection.execute("COMMIT")
        self._log.after_commit()

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self.revision = _number(self._connection, "SELECT value FROM revision")

    def rows(self, resource: str) -> Sequence[Row]:
        """All objects of a resource, in key order."""
        query = "SELECT namespace, name, rv, data FROM objects WHERE resource = ? ORDER BY namespace, name"
        return [Row(Key(row[0], row[1]), row[2], row[3]) for row in self._connection.execute(query, (resource,))]

    def row(self, key: StorageKey) -> Row | None:
        query = "SELECT rv, data FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
        found = self._connection.execute(query, (key.resource, *key.key)).fetchone()
        return None if found is None else Row(key.key, found[0], found[1])

    def contains_uid(self, uid: str) -> bool:
        return self._connection.execute("SELECT 1 FROM objects WHERE uid = ?", (uid,)).fetchone() is not None

    def apply(self, mutation: Mutation) -> int | RejectReason:
        """Applies the mutation and returns the new resourceVersion, 0 for a dry run."""
        reason = self._check_preconditions(mutation)
        if reason is not None:
            return reason
        if mutation.dry_run:
            return 0
        self.revision += 1
        self._log.add_pages(_PAGES_TOUCHED + len(mutation.data or b"") // PAGE_BYTES)
        key = mutation.target
        if mutation.data is None:
            query = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
            self._connection.execute(query, (key.resource, *key.key))
        else:
            values = (key.resource, *key.key, mutation.uid, self.revision, mutation.deleting, mutation.data)
            self._connection.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        return self.revision

    def _check_preconditions(self, mutation: Mutation) -> RejectReason | None:
        stored = self._state(mutation.target)
        if mutation.expected is not None:
            if stored is None:
                return RejectReason.MISSING
            return None if stored[0] == mutation.expected else RejectReason.CONFLICT
        if mutation.parent is not None:
            parent = self._state(mutation.parent)
            if parent is None:
                return RejectReason.PARENT_MISSING
            if parent[1]:
                return RejectReason.PARENT_DELETING
        if stored is not None:
            return RejectReason.EXISTS_DELETING if stored[1] else RejectReason.EXISTS
        return None

    def _state(self, key: StorageKey) -> tuple[int, bool] | None:
        """The resourceVersion of the object, and whether it is terminating. None if it does not exist."""
        query = "SELECT rv, deleting FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
        found = self._connection.execute(query, (key.resource, *key.key)).fetchone()
        return None if found is None else (found[0], bool(found[1]))


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # locked until the connection is closed, because the caches of two processes would miss each other's writes
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # lifecycle.py merges the log
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("BEGIN IMMEDIATE")
    if not _number(connection, "SELECT count(*) FROM sqlite_master"):
        for statement in _SCHEMA:
            connection.execute(statement)
    connection.execute("COMMIT")
    if _number(connection, "PRAGMA application_id") != _APPLICATION_ID:
        raise DatabaseUnusable(f"{path} is a database of something else")
    found = _number(connection, "PRAGMA user_version")
    if found != _FORMAT:
        raise DatabaseUnusable(f"{path} has format {found}, and this version reads format {_FORMAT}")
    problems = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    if problems != ["ok"]:
        # SQLite reports several problems in one text of several lines
        lines = [line for problem in problems for line in problem.splitlines() if line]
        raise DatabaseUnusable(f"{path} is damaged: {'; '.join(lines)}")


def _check_complete(connection: sqlite3.Connection, path: Path, *, has_log: bool) -> None:
    """Raises DatabaseUnusable for a file that was copied without its log while it was open."""
    if not (is_complete(connection) or has_log):
        raise DatabaseUnusable(
            f"{path} was in use when it was copied, and {path.name}-wal, which has the latest writes, is missing: "
            "restore that file too, or a copy that `tenant-apiserver backup` made"
        )


def _number(connection: sqlite3.Connection, query: str) -> int:
    value: int = connection.execute(query).fetchone()[0]
    return value
