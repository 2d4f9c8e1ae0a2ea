"""The tables: judged changes, versions that never go back, and files that are not ours."""

from __future__ import annotations

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


@contextmanager
def opened(path: Path) -> Iterator[Tables]:
    tables = Tables.open(path)
    try:
        yield tables
    finally:
        tables.close()


def made(tables: Tables, place: StorageKey, *, deleting: bool = False) -> int:
    result = run(tables, Mutation(target=place, expected=None, uid=place.key.name, data=b"{}", deleting=deleting))
    assert isinstance(result, int)
    return result


def run(tables: Tables, mutation: Mutation) -> int | RejectReason:
    tables.begin()
    result = tables.apply(mutation)
    tables.commit()
    return result


def test_a_version_is_given_once_over_deletions_and_restarts(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with opened(path) as tables:
        first = made(tables, A)
        deletion = run(tables, Mutation(target=A, expected=first))
    with opened(path) as tables:
        assert tables.rows("things") == []
        assert [deletion, made(tables, A)] == [first + 1, first + 2]


def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with opened(path) as tables:
        tables.begin()
        rv = tables.apply(Mutation(target=A, expected=None, uid="u", data=b'{"x":1}'))
        tables.commit()
    with opened(path) as tables:
        assert tables.rows("things") == [(A.key, rv, b'{"x":1}')]
        assert tables.contains_uid("u")


def test_what_was_rolled_back_leaves_no_trace(tmp_path: Path) -> None:
    with opened(tmp_path / "host.db") as tables:
        before = tables.revision
        tables.begin()
        tables.apply(Mutation(target=A, expected=None, uid="u", data=b"{}"))
        tables.rollback()
        assert tables.row(A) is None
        assert not tables.contains_uid("u")
        assert made(tables, A) == before + 1


@pytest.mark.parametrize(
    ("stored", "mutation", "refusal"),
    [
        pytest.param([A], Mutation(target=A, expected=None, data=b"{}"), RejectReason.EXISTS, id="create twice"),
        pytest.param([], Mutation(target=A, expected=7, data=b"{}"), RejectReason.MISSING, id="update of nothing"),
        pytest.param([], Mutation(target=A, expected=7), RejectReason.MISSING, id="deletion of nothing"),
        pytest.param(
            [A], Mutation(target=A, expected=999, data=b"{}"), RejectReason.CONFLICT, id="update of an older state"
        ),
        pytest.param([A], Mutation(target=A, expected=999), RejectReason.CONFLICT, id="deletion of an older state"),
        pytest.param(
            [],
            Mutation(target=A, expected=None, data=b"{}", parent=NAMESPACE),
            RejectReason.PARENT_MISSING,
            id="create in a namespace that is not there",
        ),
        pytest.param(
            [A],
            Mutation(target=A, expected=None, data=b"{}", parent=NAMESPACE),
            RejectReason.PARENT_MISSING,
            id="the namespace is looked at first",
        ),
    ],
)
def test_a_change_that_does_not_fit_is_refused(
    tmp_path: Path, stored: list[StorageKey], mutation: Mutation, refusal: RejectReason
) -> None:
    with opened(tmp_path / "host.db") as tables:
        for place in stored:
            made(tables, place)
        before = tables.revision
        assert run(tables, mutation) is refusal
        assert tables.revision == before


def test_nothing_is_made_in_a_namespace_that_is_being_deleted(tmp_path: Path) -> None:
    with opened(tmp_path / "host.db") as tables:
        made(tables, NAMESPACE, deleting=True)
        mutation = Mutation(target=A, expected=None, data=b"{}", parent=NAMESPACE)
        assert run(tables, mutation) is RejectReason.PARENT_DELETING


def test_an_object_on_its_way_out_is_told_from_one_that_stays(tmp_path: Path) -> None:
    with opened(tmp_path / "host.db") as tables:
        made(tables, A, deleting=True)
        assert run(tables, Mutation(target=A, expected=None, data=b"{}")) is RejectReason.EXISTS_DELETING


def test_a_dry_run_is_judged_and_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "host.db") as tables:
        before = tables.revision
        assert run(tables, Mutation(target=A, expected=None, data=b"{}", dry_run=True)) == 0
        assert (tables.row(A), tables.revision) == (None, before)
        made(tables, A)
        assert run(tables, Mutation(target=A, expected=None, data=b"{}", dry_run=True)) is RejectReason.EXISTS


def test_rows_come_in_key_order(tmp_path: Path) -> None:
    keys = [Key("b", "a"), Key("a", "b"), Key("a-b", "a"), Key("a", "a")]
    with opened(tmp_path / "host.db") as tables:
        for key in keys:
            made(tables, StorageKey("things", key))
        assert [row.key for row in tables.rows("things")] == sorted(keys)


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with opened(path):
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_commit_is_on_disk_when_it_returns(tmp_path: Path) -> None:
    with opened(tmp_path / "host.db") as tables:
        settings = [
            tables._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
        ]
    assert settings == ["wal", 2]


def test_two_processes_cannot_have_it_open(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with opened(path), pytest.raises(DatabaseUnusable, match="in use by another process"):
        Tables.open(path)


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(DatabaseUnusable, match="database of something else"):
        Tables.open(path)


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    path.write_bytes(b"once upon a time" * 1000)
    with pytest.raises(DatabaseUnusable, match="cannot be used"):
        Tables.open(path)


def test_a_later_format_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with opened(path):
        pass
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DatabaseUnusable, match="has format 99"):
        Tables.open(path)


def test_damage_is_found_before_anything_is_served(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    with opened(path) as tables:
        tables.begin()
        for number in range(500):
            place = StorageKey("things", Key("ns", f"n{number}"))
            tables.apply(Mutation(target=place, expected=None, uid=f"u{number}", data=b"x" * 200))
        tables.commit()
    content = bytearray(path.read_bytes())
    content[20_000:60_000] = bytes(40_000)
    path.write_bytes(content)
    with pytest.raises(DatabaseUnusable):
        Tables.open(path)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match="cannot be opened"):
        Tables.open(tmp_path / "nowhere" / "host.db")
