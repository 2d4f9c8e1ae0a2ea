"""The fakes keep the promises of a host, since so many tests rely on them."""

from __future__ import annotations

import pytest

from apiserver.meta import errors
from registry.cluster.interface import CONFIGMAPS, MERGE_PATCH, HostUnreachable
from tests.fakes import FakeHost


def configmap(name: str, **metadata: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default", **metadata}}


async def test_a_stale_update_is_a_conflict(host: FakeHost) -> None:
    first = await host.create(CONFIGMAPS, configmap("a"))
    await host.update(CONFIGMAPS, {**first, "data": {"k": "1"}})
    with pytest.raises(errors.Conflict):
        await host.update(CONFIGMAPS, {**first, "data": {"k": "2"}})


async def test_a_dry_run_stores_nothing_and_is_recorded(host: FakeHost) -> None:
    await host.create(CONFIGMAPS, configmap("a"), dry_run=True)
    assert host.peek(CONFIGMAPS, "default", "a") is None
    assert [write.dry_run for write in host.writes] == [True]


async def test_an_object_with_a_finalizer_goes_when_the_finalizer_does(host: FakeHost) -> None:
    host.add(CONFIGMAPS, configmap("a", finalizers=["example.org/keep"]))
    await host.delete(CONFIGMAPS, "default", "a")
    kept = await host.get(CONFIGMAPS, "default", "a")
    assert kept["metadata"]["deletionTimestamp"]
    await host.patch(CONFIGMAPS, "default", "a", {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
    assert host.peek(CONFIGMAPS, "default", "a") is None


async def test_a_watch_tells_who_leaves_its_selection(host: FakeHost) -> None:
    host.add(CONFIGMAPS, configmap("a", labels={"team": "x"}))
    start = str(host.rv)
    body = {"metadata": {"labels": {"team": "y"}}}
    await host.patch(CONFIGMAPS, "default", "a", body, content_type=MERGE_PATCH)
    events = host.watch(CONFIGMAPS, resource_version=start, label_selector="team=x")
    event = await anext(events)
    assert (event.type, event.object["metadata"]["name"]) == ("DELETED", "a")


async def test_a_compacted_history_is_expired(host: FakeHost) -> None:
    start = str(host.rv)
    host.add(CONFIGMAPS, configmap("a"))
    host.compact()
    with pytest.raises(errors.Expired):
        await anext(host.watch(CONFIGMAPS, resource_version=start))


async def test_an_unreachable_host_ends_watches_and_refuses_calls(host: FakeHost) -> None:
    events = host.watch(CONFIGMAPS, resource_version="", send_initial_events=True)
    assert (await anext(events)).type == "BOOKMARK"
    host.unreachable = True
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    with pytest.raises(HostUnreachable):
        await host.get(CONFIGMAPS, "default", "a")
