from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key, Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Event, EventRecorder, Regarding
from controller.runtime.write_gate import LeaseGate, OpenGate, WriteGate
from controller.tenant.event_messages import events_for_conditions
from registry.cluster.interface import EVENTS, ClusterResource
from tests.fakes import FakeCluster
from tests.virtual_time import virtual

ALPHA = Regarding(
    api_version="apps.cozystack.io/v1alpha1", kind="Tenant", namespace="tenant-root", name="alpha", uid="uid"
)
BAD = Event("Warning", "NamespaceConflict", "Reconcile", "it is somebody else's")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Running:
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
async def test_an_event_has_what_describe_shows() -> None:
    async with Running() as running:
        running.recorder.record(ALPHA, BAD)
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
    told = {field: event[field] for field in ("type", "reason", "action", "note", "eventTime", "reportingInstance")}
    assert told == {
        "type": "Warning",
        "reason": "NamespaceConflict",
        "action": "Reconcile",
        "note": "it is somebody else's",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingInstance": "here",
    }
    assert "series" not in event


@virtual
async def test_a_loop_that_runs_hot_writes_one_event_and_a_series_once_a_minute() -> None:
    async with Running() as running:
        for _ in range(300):
            running.recorder.record(ALPHA, BAD)
            await asyncio.sleep(1)
        await asyncio.sleep(120)
        [event] = await running.events()
        assert event["series"]["count"] == 300
        assert len(running.cluster.writes) <= 7
        await asyncio.sleep(600)
        running.recorder.record(ALPHA, BAD)
        await asyncio.sleep(1)
        assert len(await running.events()) == 2


@virtual
async def test_one_object_has_no_more_than_its_share() -> None:
    async with Running() as running:
        for number in range(200):
            running.recorder.record(ALPHA, Event("Warning", "X", "Reconcile", f"note {number}"))
        other = Regarding(api_version="v1", kind="Tenant", namespace="tenant-root", name="bob", uid="bob")
        running.recorder.record(other, BAD)
        await asyncio.sleep(10)
        told = [event["regarding"]["name"] for event in await running.events()]
    assert told.count("alpha") == 25
    assert told.count("bob") == 1


@virtual
async def test_what_cannot_be_written_is_forgotten() -> None:
    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "create":
            raise errors.Forbidden(GroupResource("events.k8s.io", "events"), key.name, "it is terminating")

    async with Running(FakeCluster(before=before)) as running:
        running.recorder.record(ALPHA, BAD)
        await asyncio.sleep(1)
        running.cluster.before = None
        running.recorder.record(ALPHA, BAD)
        await asyncio.sleep(1)
        assert len(await running.events()) == 1


@virtual
async def test_an_event_that_expired_is_told_anew() -> None:
    async with Running() as running:
        running.recorder.record(ALPHA, BAD)
        await asyncio.sleep(1)
        [event] = await running.events()
        await running.cluster.delete(EVENTS, "tenant-root", event["metadata"]["name"])
        running.recorder.record(ALPHA, BAD)
        await asyncio.sleep(61)
        assert await running.events() == []
        running.recorder.record(ALPHA, BAD)
        await asyncio.sleep(1)
        assert len(await running.events()) == 1


@virtual
async def test_nothing_is_written_while_the_gate_is_closed() -> None:
    async with Running(gate=LeaseGate()) as running:
        running.recorder.record(ALPHA, BAD)
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


def condition(type_: str, status: str, reason: str, message: str = "why") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


READY = condition("Ready", "True", "Reconciled")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([], [READY], [("Normal", "Reconciled")], id="ready"),
        pytest.param([READY], [READY], [], id="no news"),
        pytest.param(
            [READY],
            [condition("NamespaceReady", "False", "X"), condition("Ready", "False", "X")],
            [("Warning", "X")],
            id="one sentence is told once",
        ),
        pytest.param([], [condition("GatewayReady", "False", "NoGateway")], [], id="information"),
        pytest.param([], [condition("GatewayReady", "Unknown", "Pending")], [], id="not known yet"),
        pytest.param([], [condition("HostConflict", "True", "Duplicate")], [("Warning", "HostConflict")], id="a fault"),
        pytest.param(
            [condition("Terminating", "True", "ChildTenantsRemain")],
            [condition("Terminating", "True", "NamespaceRemains")],
            [("Normal", "NamespaceRemains")],
            id="what a deletion waits for",
        ),
        pytest.param("damaged", [READY], [("Normal", "Reconciled")], id="what was written before is damaged"),
    ],
)
def test_what_of_conditions_is_told(
    before: object, after: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    assert [(each.type, each.reason) for each in events_for_conditions(before, after)] == expected
