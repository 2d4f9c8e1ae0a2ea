"""The generic store over a real database, as used by every kind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.meta.selectors import parse_field_selector, parse_label_selector
from apiserver.request.context import RequestContext, User
from apiserver.request.options import DeleteOptions, ListOptions, Preconditions
from apiserver.storage.watch_cache import WatchCache
from registry.embedded.kinds.core import CONFIGMAP, NAMESPACE
from registry.embedded.storage.strategies import KindStrategy
from registry.generic.store import Store
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Database
from tests.apiserver.endpoints.request_contexts import make_context

X = Key("default", "x")


def context() -> RequestContext:
    return make_context(user=User(name="alice"))


@asynccontextmanager
async def admitted(new: Object | None, old: Object | None) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def rejected(new: Object | None, old: Object | None) -> AsyncIterator[None]:
    if new is not None or old is not None:
        raise errors.BadRequest("rejected")
    yield


def configmap(name: str = "x", **metadata: object) -> Object:
    named = {"name": name} if name else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", **named, **metadata},
        "data": {"a": "1"},
    }


def put(obj: Object) -> Callable[[Object | None], Awaitable[Object]]:
    async def change(current: Object | None) -> Object:
        return {**obj, "metadata": dict(obj["metadata"])}

    return change


def set_data(key: str, value: str) -> Callable[[Object | None], Awaitable[Object]]:
    async def change(current: Object | None) -> Object:
        assert current is not None
        current["data"] = {**current.get("data", {}), key: value}
        return current

    return change


def deletion(uid: str | None = None, version: str | None = None, *, dry_run: bool = False) -> DeleteOptions:
    return DeleteOptions(
        dry_run=dry_run,
        propagation_policy=None,
        orphan_dependents=None,
        grace_period_seconds=None,
        preconditions=Preconditions(uid=uid, resource_version=version),
    )


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(tmp_path / "host.db")
    await opened.open()
    namespaces = NAMESPACE.resources()[0]
    backend = SqliteBackend(database=opened, resource=namespaces, cache=WatchCache(namespaces))
    await backend.load()
    store = Store(backend=backend, strategy=KindStrategy(NAMESPACE, namespaces))
    await store.create(context(), {"metadata": {"name": "default"}}, admitted, dry_run=False)
    yield opened
    await opened.close()


@pytest.fixture
async def store(database: Database) -> Store:
    resource = CONFIGMAP.resources()[0]
    backend = SqliteBackend(database=database, resource=resource, cache=WatchCache(resource))
    await backend.load()
    return Store(backend=backend, strategy=KindStrategy(CONFIGMAP, resource))


async def test_a_created_object_can_be_read(store: Store) -> None:
    created = await store.create(context(), configmap(), admitted, dry_run=False)
    read = (await store.get(context(), X)).object()
    assert read == created
    assert read["metadata"]["uid"]
    assert read["metadata"]["creationTimestamp"]


async def test_a_dry_run_creates_nothing(store: Store) -> None:
    answer = await store.create(context(), configmap(), admitted, dry_run=True)
    assert answer["metadata"]["uid"]
    with pytest.raises(errors.NotFound):
        await store.get(context(), X)


async def test_an_object_that_admission_rejects_is_not_stored(store: Store) -> None:
    with pytest.raises(errors.BadRequest, match="rejected"):
        await store.create(context(), configmap(), rejected, dry_run=False)
    with pytest.raises(errors.NotFound):
        await store.get(context(), X)


async def test_admission_judges_an_object_as_it_is_shown_and_it_is_stored_as_it_was_sent(
    database: Database,
) -> None:
    resource, judged = CONFIGMAP.resources()[0], list[Object]()
    backend = SqliteBackend(database=database, resource=resource, cache=WatchCache(resource))
    await backend.load()
    store = Store(
        backend=backend,
        strategy=KindStrategy(CONFIGMAP, resource),
        shown=lambda obj: {**obj, "data": {"default": "1", **obj["data"]}},
    )

    @asynccontextmanager
    async def admission(new: Object | None, old: Object | None) -> AsyncIterator[None]:
        assert new is not None
        judged.append(new["data"])
        yield

    await store.create(context(), configmap(), admission, dry_run=False)
    await store.update(context(), X, set_data("b", "2"), admission, dry_run=False)
    assert judged == [{"default": "1", "a": "1"}, {"default": "1", "a": "1", "b": "2"}]
    assert (await store.get(context(), X)).object()["data"] == {"a": "1", "b": "2"}


async def test_a_second_object_with_the_same_name_is_rejected(store: Store) -> None:
    await store.create(context(), configmap(), admitted, dry_run=False)
    with pytest.raises(errors.AlreadyExists):
        await store.create(context(), configmap(), admitted, dry_run=False)


async def test_a_generated_name_starts_with_generate_name(store: Store) -> None:
    obj = configmap("", generateName="made-")
    created = await store.create(context(), obj, admitted, dry_run=False)
    assert created["metadata"]["name"].startswith("made-")
    assert len(created["metadata"]["name"]) == len("made-") + 5


async def test_generate_name_fails_if_every_attempt_collides(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.create(context(), configmap("taken"), admitted, dry_run=False)
    monkeypatch.setattr("apiserver.meta.object_meta.generate_name", lambda base: "taken")
    with pytest.raises(errors.GenerateNameExhausted) as raised:
        await store.create(context(), configmap("", generateName="t"), admitted, dry_run=False)
    assert raised.value.retry_after == 1


async def test_an_object_without_a_name_is_invalid(store: Store) -> None:
    with pytest.raises(errors.Invalid, match="name or generateName is required"):
        await store.create(context(), configmap(""), admitted, dry_run=False)


async def test_an_update_with_an_old_resource_version_is_a_conflict(store: Store) -> None:
    old = await store.create(context(), configmap(), admitted, dry_run=False)
    await store.update(context(), X, set_data("a", "2"), admitted, dry_run=False)
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        await store.update(context(), X, put(old), admitted, dry_run=False)


async def test_an_update_without_a_resource_version_applies_to_the_current_object(store: Store) -> None:
    await store.create(context(), configmap(), admitted, dry_run=False)
    await store.update(context(), X, set_data("a", "2"), admitted, dry_run=False)
    updated, created = await store.update(context(), X, put(configmap()), admitted, dry_run=False)
    assert (updated["data"], created) == ({"a": "1"}, False)


async def test_concurrent_changes_are_all_applied(store: Store) -> None:
    await store.create(context(), configmap(), admitted, dry_run=False)
    changes = (store.update(context(), X, set_data(f"k{n}", "v"), admitted, dry_run=False) for n in range(20))
    await asyncio.gather(*changes)
    data = (await store.get(context(), X)).object()["data"]
    assert sorted(data) == sorted(["a", *(f"k{n}" for n in range(20))])


async def test_no_concurrent_change_runs_out_of_attempts(store: Store) -> None:
    await store.create(context(), configmap(), admitted, dry_run=False)
    attempts = 0

    def counting(number: int) -> Callable[[Object | None], Awaitable[Object]]:
        async def change(current: Object | None) -> Object:
            nonlocal attempts
            attempts += 1
            assert current is not None
            current["data"] = {**current["data"], f"k{number}": "v"}
            return current

        return change

    await asyncio.gather(*(store.update(context(), X, counting(n), admitted, dry_run=False) for n in range(100)))
    assert len((await store.get(context(), X)).object()["data"]) == 101
    # after a conflict, a writer waits for the lock instead of competing with all others
    assert attempts <= 300


async def test_an_update_that_changes_nothing_writes_nothing(store: Store) -> None:
    before = await store.create(context(), configmap(), admitted, dry_run=False)
    after, _ = await store.update(context(), X, put(configmap()), admitted, dry_run=False)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_an_update_of_a_missing_object_is_not_found(store: Store) -> None:
    with pytest.raises(errors.NotFound):
        await store.update(context(), X, put(configmap()), admitted, dry_run=False)


async def test_an_update_that_may_create_creates_a_missing_object(store: Store) -> None:
    obj, created = await store.update(context(), X, put(configmap()), admitted, dry_run=False, validate_create=admitted)
    assert created
    assert obj["metadata"]["name"] == "x"


async def test_an_update_with_another_uid_is_a_conflict(store: Store) -> None:
    await store.create(context(), configmap(), admitted, dry_run=False)
    with pytest.raises(errors.Conflict, match="Precondition failed: UID in precondition: other"):
        await store.update(context(), X, put(configmap(uid="other")), admitted, dry_run=False)


async def test_metadata_of_the_server_is_restored_if_a_client_omits_it(store: Store) -> None:
    created = await store.create(context(), configmap(), admitted, dry_run=False)
    updated, _ = await store.update(context(), X, set_data("a", "2"), admitted, dry_run=False)
    fields = ("uid", "creationTimestamp")
    assert [updated["metadata"][field] for field in fields] == [created["metadata"][field] for field in fields]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(deletion(uid="other"), "the UID in the precondition \\(other\\)", id="uid"),
        pytest.param(deletion(version="1"), "the ResourceVersion in the precondition \\(1\\)", id="resourceVersion"),
    ],
)
async def test_a_delete_with_a_failed_precondition_is_a_conflict(
    store: Store, options: DeleteOptions, why: str
) -> None:
    await store.create(context(), configmap(), admitted, dry_run=False)
    with pytest.raises(errors.Conflict, match=why):
        await store.delete(context(), X, options, admitted)
    assert await store.get(context(), X)


async def test_a_delete_with_matching_preconditions_succeeds(store: Store) -> None:
    metadata = (await store.create(context(), configmap(), admitted, dry_run=False))["metadata"]
    options = deletion(metadata["uid"], metadata["resourceVersion"])
    deleted = await store.delete(context(), X, options, admitted)
    assert deleted.removed
    with pytest.raises(errors.NotFound):
        await store.get(context(), X)


async def test_an_object_whose_deletion_admission_rejects_is_not_deleted(store: Store) -> None:
    await store.create(context(), configmap(), admitted, dry_run=False)
    with pytest.raises(errors.BadRequest, match="rejected"):
        await store.delete(context(), X, deletion(), rejected)
    assert await store.get(context(), X)


async def test_delete_collection_deletes_the_selected_objects(store: Store) -> None:
    for name, team in (("a", "x"), ("b", "y"), ("c", "x")):
        await store.create(context(), configmap(name, labels={"team": team}), admitted, dry_run=False)
    listing = ListOptions(
        label_selector=parse_label_selector("team=x"),
        field_selector=parse_field_selector(""),
        resource_version=None,
        resource_version_match="",
        limit=0,
        continue_token="",
    )
    deleted, _ = await store.delete_collection(context(), "default", listing, deletion(), admitted)
    remaining = await store.list(context(), "default", listing)
    assert [obj["metadata"]["name"] for obj in deleted] == ["a", "c"]
    assert remaining.items == []
    assert await store.get(context(), Key("default", "b"))


class ThreadRecordingStrategy(KindStrategy):
    """A KindStrategy that records the threads in which it validates."""

    def __init__(self) -> None:
        super().__init__(CONFIGMAP, CONFIGMAP.resources()[0])
        self.threads: list[int] = []

    def validate(self, obj: Object) -> list[errors.FieldError]:
        self.threads.append(threading.get_ident())
        return super().validate(obj)

    def validate_update(self, new: Object, old: Object) -> list[errors.FieldError]:
        self.threads.append(threading.get_ident())
        return super().validate_update(new, old)


@pytest.mark.parametrize(
    ("size", "offloaded"), [pytest.param(10, False, id="small"), pytest.param(10**6, True, id="large")]
)
async def test_a_large_object_is_validated_outside_of_the_event_loop(
    database: Database, size: int, offloaded: bool
) -> None:
    strategy = ThreadRecordingStrategy()
    backend = SqliteBackend(database=database, resource=strategy.resource, cache=WatchCache(strategy.resource))
    await backend.load()
    store = Store(backend=backend, strategy=strategy)
    large = {**configmap(), "data": {"a": "x" * size}}
    await store.create(context(), large, admitted, dry_run=False)
    stored, _ = await store.update(context(), X, set_data("b", "2"), admitted, dry_run=False)
    assert stored["data"] == {"a": "x" * size, "b": "2"}
    assert [thread != threading.get_ident() for thread in strategy.threads] == [offloaded, offloaded]
