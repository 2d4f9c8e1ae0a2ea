"""Events are written once, counted when they repeat, and limited for each object."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from apiserver.meta import errors
from apiserver.meta.name_validation import dns1123_subdomain_errors
from apiserver.meta.resource import GroupResource, Key, Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Event, EventRecorder, Regarding
from controller.runtime.write_gate import LeaseGate, OpenGate, WriteGate
from registry.cluster.interface import EVENTS, ClusterResource
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual

ALPHA = Regarding(
    api_version="apps.cozystack.io/v1alpha1", kind="Tenant", namespace="tenant-root", name="alpha", uid="uid"
)
PROBLEM = Event("Warning", "NamespaceConflict", "Reconcile", "it belongs to somebody else")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Running:
    """An event recorder at work on a fake cluster."""

    def __init__(self, cluster: FakeCluster | None = None, gate: WriteGate | None = None) -> None:
        self.cluster = cluster or FakeCluster()
        loop = asyncio.get_running_loop()
        self.recorder = EventRecorder(
            writer=ClusterWriter(cluster=self.cluster, gate=gate or OpenGate()),
            controller="apps.cozystack.io/tenant-controller",
            instance="here",
            now=lambda: NOW,
            clock=loop.time,
        )

    async def __aenter__(self) -> Running:
        self._task = asyncio.create_task(self.recorder.run())
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def events(self) -> list[Object]:
        found: list[Object] = (await self.cluster.list(EVENTS))["items"]
        return found


@virtual
async def test_the_name_of_an_event_is_valid_for_an_object_with_a_long_name() -> None:
    """ATTACK-16: a name that is cut must not end with a dot or a hyphen."""
    async with Running() as running:
        running.recorder.record(replace(ALPHA, name=f"{'a' * 235}.-{'b' * 16}"), PROBLEM)
        await asyncio.sleep(1)
        [event] = await running.events()
    assert dns1123_subdomain_errors(event["metadata"]["name"]) == []


@virtual
async def test_an_event_has_the_fields_that_kubectl_describe_shows() -> None:
    async with Running() as running:
        running.recorder.record(ALPHA, PROBLEM)
        await asyncio.sleep(1)
        [event] = await running.events()
    assert event["metadata"]["namespace"] == "tenant-root"
    assert event["metadata"]["name"].startswith("alpha.")
    assert event["regarding"] == {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "namespace": "tenant-root",
        "name": "alpha",
        "uid": "uid",
    }
    fields = {field: event[field] for field in ("type", "reason", "action", "note", "eventTime", "reportingInstance")}
    assert fields == {
        "type": "Warning",
        "reason": "NamespaceConflict",
        "action": "Reconcile",
        "note": "it belongs to somebody else",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingInstance": "here",
    }
    assert "series" not in event


@virtual
async def test_a_hot_loop_writes_one_event_and_updates_its_series_once_a_minute() -> None:
    async with Running() as running:
        for _ in range(300):
            running.recorder.record(ALPHA, PROBLEM)
            await asyncio.sleep(1)
        await asyncio.sleep(120)
        [event] = await running.events()
        assert event["series"]["count"] == 300
        assert len(running.cluster.writes) <= 7
        await asyncio.sleep(600)
        running.recorder.record(ALPHA, PROBLEM)
        await asyncio.sleep(1)
        assert len(await running.events()) == 2


@virtual
async def test_new_events_of_one_object_are_limited() -> None:
    async with Running() as running:
        for number in range(200):
            running.recorder.record(ALPHA, Event("Warning", "X", "Reconcile", f"note {number}"))
        other = Regarding(api_version="v1", kind="Tenant", namespace="tenant-root", name="bob", uid="bob")
        running.recorder.record(other, PROBLEM)
        await asyncio.sleep(10)
        names = [event["regarding"]["name"] for event in await running.events()]
    assert names.count("alpha") == 25
    assert names.count("bob") == 1


@virtual
async def test_an_event_that_cannot_be_written_is_dropped() -> None:
    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "create":
            raise errors.Forbidden(GroupResource("events.k8s.io", "events"), key.name, "it is terminating")

    async with Running(FakeCluster(before=before)) as running:
        running.recorder.record(ALPHA, PROBLEM)
        await asyncio.sleep(1)
        running.cluster.before = None
        running.recorder.record(ALPHA, PROBLEM)
        await asyncio.sleep(1)
        assert len(await running.events()) == 1


@virtual
async def test_an_event_that_expired_is_created_again() -> None:
    async with Running() as running:
        running.recorder.record(ALPHA, PROBLEM)
        await asyncio.sleep(1)
        [event] = await running.events()
        await running.cluster.delete(EVENTS, "tenant-root", event["metadata"]["name"])
        running.recorder.record(ALPHA, PROBLEM)
        await asyncio.sleep(61)
        assert await running.events() == []
        running.recorder.record(ALPHA, PROBLEM)
        await asyncio.sleep(1)
        assert len(await running.events()) == 1


@virtual
async def test_nothing_is_written_while_the_gate_is_closed() -> None:
    async with Running(gate=LeaseGate()) as running:
        running.recorder.record(ALPHA, PROBLEM)
        await asyncio.sleep(1)
        assert await running.events() == []


@virtual
async def test_a_long_note_is_shortened_by_bytes() -> None:
    async with Running() as running:
        running.recorder.record(ALPHA, Event("Warning", "X", "Reconcile", "ä" * 1000))
        await asyncio.sleep(1)
        [event] = await running.events()
    assert len(event["note"].encode()) <= 1024
    assert event["note"].endswith("ä...")
