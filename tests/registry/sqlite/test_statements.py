"""The tables: preconditions of mutations, increasing resourceVersions, and files that cannot be used."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apiserver.meta.resource import Key
from registry.sqlite.statements import DatabaseUnusable, Mutation, RejectReason, StorageKey, Tables

A = StorageKey("things", Key("ns", "a"))
NAMESPACE = StorageKey("namespaces", Key("", "ns"))
# objects of ten pages each
_ENOUGH_FOR_A_MERGE = 400


@contextmanager
def open_tables(path: Path) -> Iterator[Tables]:
    tables = Tables.open(path)
    try:
        yield tables
    finally:
        tables.close()


def create(tables: Tables, key: StorageKey, *, deleting: bool = False, data: bytes = b"{}") -> int:
    result = run(tables, Mutation(target=key, expected=None, uid=key.key.name, data=data, deleting=deleting))
    assert isinstance(result, int)
    return result


def run(tables: Tables, mutation: Mutation) -> int | RejectReason:
    tables.begin()
    result = tables.apply(mutation)
    tables.commit()
    return result


def test_resource_versions_increase_over_deletions_and_restarts(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with open_tables(path) as tables:
        first = create(tables, A)
        deletion = run(tables, Mutation(target=A, expected=first))
    with open_tables(path) as tables:
        assert tables.rows("things") == []
        assert [deletion, create(tables, A)] == [first + 1, first + 2]


def test_committed_objects_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with open_tables(path) as tables:
        tables.begin()
        rv = tables.apply(Mutation(target=A, expected=None, uid="u", data=b'{"x":1}'))
        tables.commit()
    with open_tables(path) as tables:
        assert tables.rows("things") == [(A.key, rv, b'{"x":1}')]
        assert tables.contains_uid("u")


def test_a_rollback_undoes_everything(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        before = tables.revision
        tables.begin()
        tables.apply(Mutation(target=A, expected=None, uid="u", data=b"{}"))
        tables.rollback()
        assert tables.row(A) is None
        assert not tables.contains_uid("u")
        assert create(tables, A) == before + 1


@pytest.mark.parametrize(
    ("stored", "mutation", "reason"),
    [
        pytest.param([A], Mutation(target=A, expected=None, data=b"{}"), RejectReason.EXISTS, id="create twice"),
        pytest.param(
            [], Mutation(target=A, expected=7, data=b"{}"), RejectReason.MISSING, id="update of a missing object"
        ),
        pytest.param([], Mutation(target=A, expected=7), RejectReason.MISSING, id="deletion of a missing object"),
        pytest.param(
            [A], Mutation(target=A, expected=999, data=b"{}"), RejectReason.CONFLICT, id="update of an older state"
        ),
        pytest.param([A], Mutation(target=A, expected=999), RejectReason.CONFLICT, id="deletion of an older state"),
        pytest.param(
            [],
            Mutation(target=A, expected=None, data=b"{}", parent=NAMESPACE),
            RejectReason.PARENT_MISSING,
            id="create in a missing namespace",
        ),
        pytest.param(
            [A],
            Mutation(target=A, expected=None, data=b"{}", parent=NAMESPACE),
            RejectReason.PARENT_MISSING,
            id="the namespace is checked first",
        ),
    ],
)
def test_a_mutation_with_a_failed_precondition_is_rejected(
    tmp_path: Path, stored: list[StorageKey], mutation: Mutation, reason: RejectReason
) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        for key in stored:
            create(tables, key)
        before = tables.revision
        assert run(tables, mutation) is reason
        assert tables.revision == before


def test_creation_in_a_terminating_namespace_is_rejected(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        create(tables, NAMESPACE, deleting=True)
        mutation = Mutation(target=A, expected=None, data=b"{}", parent=NAMESPACE)
        assert run(tables, mutation) is RejectReason.PARENT_DELETING


def test_creating_over_a_terminating_object_has_a_reason_of_its_own(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        create(tables, A, deleting=True)
        assert run(tables, Mutation(target=A, expected=None, data=b"{}")) is RejectReason.EXISTS_DELETING


def test_a_dry_run_checks_preconditions_and_changes_nothing(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        before = tables.revision
        assert run(tables, Mutation(target=A, expected=None, data=b"{}", dry_run=True)) == 0
        assert (tables.row(A), tables.revision) == (None, before)
        create(tables, A)
        assert run(tables, Mutation(target=A, expected=None, data=b"{}", dry_run=True)) is RejectReason.EXISTS


def test_rows_are_sorted_by_key(tmp_path: Path) -> None:
    keys = [Key("b", "a"), Key("a", "b"), Key("a-b", "a"), Key("a", "a")]
    with open_tables(tmp_path / "host.db") as tables:
        for key in keys:
            create(tables, StorageKey("things", key))
        assert [row.key for row in tables.rows("things")] == sorted(keys)


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with open_tables(path):
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_commits_are_synchronous(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        settings = [
            tables._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
        ]
    assert settings == ["wal", 2]


def test_a_second_process_cannot_open_the_file(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with open_tables(path), pytest.raises(DatabaseUnusable, match="in use by another process"):
        Tables.open(path)


def test_a_database_of_another_program_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(DatabaseUnusable, match="database of something else"):
        Tables.open(path)


def test_a_file_that_is_not_a_database_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    path.write_bytes(b"once upon a time" * 1000)
    with pytest.raises(DatabaseUnusable, match="cannot be used"):
        Tables.open(path)


def test_a_newer_format_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with open_tables(path):
        pass
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DatabaseUnusable, match="has format 99"):
        Tables.open(path)


def test_a_damaged_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with open_tables(path) as tables:
        tables.begin()
        for number in range(500):
            key = StorageKey("things", Key("ns", f"n{number}"))
            tables.apply(Mutation(target=key, expected=None, uid=f"u{number}", data=b"x" * 200))
        tables.commit()
    content = bytearray(path.read_bytes())
    content[20_000:60_000] = bytes(40_000)
    path.write_bytes(content)
    with pytest.raises(DatabaseUnusable):
        Tables.open(path)


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match="cannot be opened"):
        Tables.open(tmp_path / "nowhere" / "host.db")


def test_a_copy_needs_no_other_file_and_does_not_prevent_writes(tmp_path: Path) -> None:
    b = StorageKey("things", Key("ns", "b"))
    with open_tables(tmp_path / "host.db") as tables:
        create(tables, A)
        made: list[int] = []

        def write_once() -> None:
            if not made:
                made.append(create(tables, b))

        tables.copy_to(tmp_path / "copy.db", write_once)
        assert [row.key.name for row in tables.rows("things")] == ["a", "b"]
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    assert not list(tmp_path.glob("copy.db-*"))
    with open_tables(tmp_path / "copy.db") as tables:
        assert "a" in [row.key.name for row in tables.rows("things")]


def test_a_file_that_was_copied_without_its_log_while_it_was_open_is_refused(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        create(tables, A)
        shutil.copy(tmp_path / "host.db", tmp_path / "copy.db")
    with pytest.raises(DatabaseUnusable, match=r"copy\.db-wal, which has the latest writes, is missing"):
        Tables.open(tmp_path / "copy.db")
    shutil.copy(tmp_path / "host.db", tmp_path / "closed.db")
    with open_tables(tmp_path / "closed.db") as tables:
        assert [row.key.name for row in tables.rows("things")] == ["a"]


def test_a_file_whose_process_was_killed_has_its_log(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        create(tables, A)
        for path in tmp_path.glob("host.db*"):
            shutil.copy(path, tmp_path / path.name.replace("host", "killed"))
    with open_tables(tmp_path / "killed.db") as tables:
        assert [row.key.name for row in tables.rows("things")] == ["a"]


def test_a_killed_process_leaves_a_file_that_another_program_may_open(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        create(tables, A)
        killed = copy_as_killed(tmp_path)
    read_with_another_program(killed)
    assert not killed.with_name("killed.db-wal").exists()
    with open_tables(killed) as tables:
        assert [row.key.name for row in tables.rows("things")] == ["a"]


def test_a_process_that_is_killed_before_its_first_write_leaves_a_complete_file(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        create(tables, A)
    with open_tables(tmp_path / "host.db"):
        killed = copy_as_killed(tmp_path)
    read_with_another_program(killed)
    with open_tables(killed) as tables:
        assert [row.key.name for row in tables.rows("things")] == ["a"]


def test_after_the_log_was_merged_the_file_alone_is_refused_and_with_its_log_complete(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        for number in range(_ENOUGH_FOR_A_MERGE):
            create(tables, StorageKey("things", Key("ns", f"n{number}")), data=b"x" * 40_000)
        assert (tmp_path / "host.db").stat().st_size > 10_000_000, "nothing was merged into the file"
        shutil.copy(tmp_path / "host.db", tmp_path / "alone.db")
        killed = copy_as_killed(tmp_path)
    with pytest.raises(DatabaseUnusable, match=r"alone\.db-wal, which has the latest writes, is missing"):
        Tables.open(tmp_path / "alone.db")
    read_with_another_program(killed)
    with open_tables(killed) as tables:
        assert len(tables.rows("things")) == _ENOUGH_FOR_A_MERGE


def test_the_log_does_not_grow_without_bound(tmp_path: Path) -> None:
    log = tmp_path / "host.db-wal"
    with open_tables(tmp_path / "host.db") as tables:
        rv = create(tables, A)
        sizes = []
        for _ in range(2000):
            result = run(tables, Mutation(target=A, expected=rv, uid="a", data=b"x" * 8000))
            assert isinstance(result, int)
            rv = result
            sizes.append(log.stat().st_size)
    assert max(sizes) < 8 * 1024 * 1024


def test_a_log_that_could_not_be_merged_is_merged_later(tmp_path: Path) -> None:
    with open_tables(tmp_path / "host.db") as tables:
        tables._connection.set_authorizer(_deny_merges)
        for number in range(_ENOUGH_FOR_A_MERGE):
            create(tables, StorageKey("things", Key("ns", f"n{number}")), data=b"x" * 40_000)
        killed = copy_as_killed(tmp_path)
        assert (tmp_path / "host.db").stat().st_size < 1_000_000, "the log was merged"
        tables._connection.set_authorizer(None)
        create(tables, A)
        assert (tmp_path / "host.db").stat().st_size > 10_000_000
    read_with_another_program(killed)
    with open_tables(killed) as tables:
        assert len(tables.rows("things")) == _ENOUGH_FOR_A_MERGE


def test_a_backup_beside_the_log_of_another_file_is_refused_and_not_changed(tmp_path: Path) -> None:
    path, log = tmp_path / "killed.db", tmp_path / "killed.db-wal"
    with open_tables(tmp_path / "host.db") as tables:
        create(tables, A)
        tables.copy_to(tmp_path / "backup.db", lambda: None)
        create(tables, StorageKey("things", Key("ns", "later")))
        copy_as_killed(tmp_path)
    shutil.copy(tmp_path / "backup.db", path)
    with pytest.raises(DatabaseUnusable, match=r"killed\.db-wal beside it is the log of another file"):
        Tables.open(path)
    assert path.read_bytes() == (tmp_path / "backup.db").read_bytes()
    log.unlink()
    with open_tables(path) as tables:
        assert [row.key.name for row in tables.rows("things")] == ["a"]


def test_a_file_that_is_killed_while_it_is_closed_is_complete(tmp_path: Path) -> None:
    """The copies are those of a kill before each statement of the closing, and after the last one."""
    tables = Tables.open(tmp_path / "host.db")
    create(tables, A)
    copies: list[Path] = []

    def copy(_statement: str) -> None:
        folder = tmp_path / f"copy{len(copies)}"
        folder.mkdir()
        copies.extend(Path(shutil.copy(each, folder)) for each in tmp_path.glob("host.db*"))

    tables._connection.set_trace_callback(copy)
    tables.close()
    for path in {each for each in copies if each.name == "host.db"}:
        with open_tables(path) as found:
            assert [row.key.name for row in found.rows("things")] == ["a"], path


def test_a_file_that_could_not_be_merged_when_it_was_closed_is_complete_with_its_log(tmp_path: Path) -> None:
    tables = Tables.open(tmp_path / "host.db")
    create(tables, A)
    tables._connection.set_authorizer(_deny_merges)
    tables.close()
    with open_tables(tmp_path / "host.db") as tables:
        assert [row.key.name for row in tables.rows("things")] == ["a"]


def _deny_merges(_action: int, argument: str | None, *_: str | None) -> int:
    return sqlite3.SQLITE_DENY if argument == "wal_checkpoint" else sqlite3.SQLITE_OK


def copy_as_killed(folder: Path) -> Path:
    """Copies the files of an open database: what a SIGKILL would leave."""
    for path in folder.glob("host.db*"):
        shutil.copy(path, folder / path.name.replace("host", "killed"))
    return folder / "killed.db"


def read_with_another_program(path: Path) -> None:
    """SQLite merges the log into the file and removes it when the last connection is closed."""
    connection = sqlite3.connect(path)
    connection.execute("SELECT count(*) FROM objects").fetchone()
    connection.close()
