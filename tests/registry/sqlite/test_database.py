"""The database: writes have one order, survive a crash once acknowledged, and never block the event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from apiserver.meta.errors import ServiceUnavailable
from apiserver.meta.resource import Object, Resource
from apiserver.storage.watch_cache import WatchCache
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Change, Database, Write, WriteRejected, decode_row, storage_key
from registry.sqlite.statements import DatabaseUnusable, RejectReason, Tables

# Writes objects one after the other and prints each of them once it is acknowledged.
_WRITER = """
import asyncio, sys
from pathlib import Path
from registry.sqlite.database import Database, Write, storage_key

async def main():
    database = Database(Path(sys.argv[1]))
    await database.open()
    number = 0
    while True:
        name = f"n{number}"
        target, obj = storage_key("things", "", name), {"metadata": {"name": name, "uid": name}}
        write = Write(type="ADDED", target=target, object=obj)
        stored = await database.write(write)
        print(name, stored["metadata"]["resourceVersion"], flush=True)
        number += 1

asyncio.run(main())
"""


def added(name: str, **metadata: object) -> Write:
    obj: Object = {"metadata": {"name": name, "uid": name, **metadata}}
    return Write(type="ADDED", target=storage_key("things", "", name), object=obj)


def modified(name: str, expected: int, **fields: object) -> Write:
    obj: Object = {"metadata": {"name": name, "uid": name}, **fields}
    return Write(type="MODIFIED", target=storage_key("things", "", name), object=obj, expected=expected)


def version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


async def test_listeners_get_every_write_in_resource_version_order(database: Database) -> None:
    changes: list[Change] = []
    database.subscribe(changes.append)
    stored = await asyncio.gather(*(database.write(added(f"n{number}")) for number in range(600)))
    versions = [version(obj) for obj in stored]
    assert sorted(versions) == list(range(min(versions), min(versions) + 600))
    assert [change.rv for change in changes] == sorted(versions)


async def test_a_write_returns_after_the_listeners_were_called(database: Database) -> None:
    changes: list[int] = []
    database.subscribe(lambda change: changes.append(change.rv))
    stored = await database.write(added("a"))
    assert changes == [version(stored)]


async def test_one_of_many_concurrent_updates_succeeds(database: Database) -> None:
    rv = version(await database.write(added("a")))
    writes = (database.write(modified("a", rv, spec=number)) for number in range(50))
    results = await asyncio.gather(*writes, return_exceptions=True)
    reasons = [result.why for result in results if isinstance(result, WriteRejected)]
    assert reasons == [RejectReason.CONFLICT] * 49
    row = await database.row(storage_key("things", "", "a"))
    winner = next(result for result in results if isinstance(result, dict))
    assert row is not None
    assert decode_row(row) == winner


async def test_the_resource_version_is_not_part_of_the_stored_data(database: Database) -> None:
    await database.write(added("a", resourceVersion="12345"))
    row = await database.row(storage_key("things", "", "a"))
    assert row is not None
    assert b"12345" not in row.data
    assert decode_row(row)["metadata"]["resourceVersion"] == str(row.rv)


async def test_a_cancelled_write_is_committed_and_published(database: Database) -> None:
    changes: list[Change] = []
    database.subscribe(changes.append)
    task = asyncio.create_task(database.write(added("a")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert await database.row(storage_key("things", "", "a")) is not None
    assert [change.target.key.name for change in changes] == ["a"]


async def test_an_error_in_a_listener_does_not_affect_other_listeners(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    changes: list[Change] = []

    def fail(change: Change) -> None:
        raise RuntimeError("a bug")

    database.subscribe(fail)
    database.subscribe(changes.append)
    await database.write(added("a"))
    assert len(changes) == 1
    assert "a listener failed" in caplog.text


async def test_a_dry_run_is_neither_stored_nor_published(database: Database) -> None:
    changes: list[Change] = []
    database.subscribe(changes.append)
    write = added("a")
    answer = await database.write(
        Write(type=write.type, target=write.target, object=write.object, dry_run=True),
    )
    assert "resourceVersion" not in answer["metadata"]
    assert (changes, await database.row(write.target)) == ([], None)


async def test_a_write_to_a_closed_database_is_a_503(tmp_path: Path) -> None:
    database = Database(tmp_path / "host.db")
    await database.open()
    await database.close()
    with pytest.raises(ServiceUnavailable):
        await database.write(added("a"))


async def test_a_closing_database_rejects_new_writes(tmp_path: Path) -> None:
    database = Database(tmp_path / "host.db")
    await database.open()
    closing = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    with pytest.raises(ServiceUnavailable):
        await database.write(added("a"))
    await closing


async def test_a_database_that_cannot_be_opened_raises_an_error(tmp_path: Path) -> None:
    database = Database(tmp_path / "nowhere" / "host.db")
    with pytest.raises(DatabaseUnusable):
        await database.open()
    with pytest.raises(ServiceUnavailable):
        await database.write(added("a"))
    await database.close()


async def test_closing_waits_for_pending_writes(tmp_path: Path) -> None:
    database = Database(tmp_path / "host.db")
    await database.open()
    writes = [asyncio.create_task(database.write(added(f"n{number}"))) for number in range(300)]
    await asyncio.sleep(0)
    await database.close()
    await asyncio.gather(*writes)
    again = Database(tmp_path / "host.db")
    await again.open()
    rows, _ = await again.rows("things")
    await again.close()
    assert len(rows) == 300


async def test_a_failed_transaction_is_a_503_and_the_next_one_succeeds(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    before = version(await database.write(added("before")))
    # a name that SQLite cannot encode makes the transaction fail
    broken = Write(type="ADDED", target=storage_key("things", "", "\ud800"), object={"metadata": {"uid": "x"}})
    with pytest.raises(ServiceUnavailable):
        await database.write(broken)
    assert "a transaction failed" in caplog.text
    assert version(await database.write(added("after"))) == before + 1


def test_no_acknowledged_write_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", _WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().split() for _ in range(100)]
        process.kill()
        acknowledged += [line.split() for line in process.stdout if len(line.split()) == 2 and line.endswith("\n")]

    async def stored() -> dict[str, int]:
        database = Database(path)
        await database.open()
        rows, revision = await database.rows("things")
        await database.close()
        assert revision >= max(row.rv for row in rows)
        return {row.key.name: row.rv for row in rows}

    rows = asyncio.run(stored())
    assert all(rows.get(name) == int(rv) for name, rv in acknowledged)


async def test_a_copy_that_fails_in_any_way_leaves_the_database_writable(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Tables, "copy_to", fail)
    with pytest.raises(ServiceUnavailable):
        await database.copy_to(tmp_path / "copy.db")
    assert version(await asyncio.wait_for(database.write(added("a")), 5))


async def test_a_backend_that_cannot_be_loaded_follows_no_changes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=False)
    backend = SqliteBackend(database=database, resource=resource, cache=WatchCache(resource))

    async def fail(_: str) -> None:
        raise ServiceUnavailable("the database cannot be read", retry_after=1)

    monkeypatch.setattr(database, "rows", fail)
    with pytest.raises(ServiceUnavailable):
        await backend.load()
    assert database._listeners == []
