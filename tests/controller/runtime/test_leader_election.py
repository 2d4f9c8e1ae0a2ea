"""At most one replica leads, whatever happens to its connection, its clock or its lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key, Object
from controller.runtime.leader_election import Candidate, LeaderElector, LeaseTimes, format_micro_time
from controller.runtime.write_gate import LeaseGate, NotLeading
from registry.cluster.interface import LEASES, ClusterClient, ClusterResource
from tests.fake_cluster import FakeCluster
from tests.late_answers import ClusterWithLateAnswers
from tests.virtual_time import run_virtual, virtual

NAME = ("cozy-system", "tenant-apiserver")


class Replica:
    """A candidate that writes every second while it leads."""

    def __init__(self, cluster: ClusterClient, identity: str, log: list[tuple[float, str]]) -> None:
        loop = asyncio.get_running_loop()
        # the clock of the loop is virtual: no time passes while the process is stopped
        self.gate = LeaseGate(clock=loop.time)
        self.log = log
        self.terms = 0
        self.identity = identity
        self.elector = LeaderElector(
            cluster=cluster,
            gate=self.gate,
            candidate=Candidate(identity=identity, namespace=NAME[0], name=NAME[1]),
            clock=loop.time,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=loop.time()),
            jitter=lambda: 0.5,
        )

    async def lead(self) -> None:
        self.terms += 1
        while True:
            async with self.gate.writing():
                self.log.append((asyncio.get_running_loop().time(), self.identity))
            await asyncio.sleep(1)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.elector.run(self.lead))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])


class FaultyConnection:
    """A client of the cluster whose calls fail or hang."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.fails = False
        self.hangs = False

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._cluster, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.hangs:
                await asyncio.Event().wait()
            if self.fails:
                raise errors.ServiceUnavailable("cut off")
            return await real(*args, **kwargs)

        return call


def lease(cluster: FakeCluster) -> Object:
    found = cluster.peek(LEASES, *NAME)
    assert found is not None
    spec: Object = found["spec"]
    return spec


def test_the_first_replica_creates_the_lease_and_leads() -> None:
    async def main() -> Object:
        cluster, log = FakeCluster(), list[tuple[float, str]]()
        async with Replica(cluster, "a", log).running():
            await asyncio.sleep(5)
        assert [identity for _, identity in log][:1] == ["a"]
        created = cluster.writes[0]
        assert created.verb == "create"
        return lease(cluster)

    spec = run_virtual(main)

    assert spec["leaseTransitions"] == 0
    assert spec["acquireTime"].endswith("Z")


@virtual
async def test_the_leader_renews_the_lease_and_the_others_wait() -> None:
    cluster, log = FakeCluster(), list[tuple[float, str]]()
    async with Replica(cluster, "a", log).running(), Replica(cluster, "b", log).running():
        await asyncio.sleep(120)
    assert {identity for _, identity in log if identity} == {"a"}
    assert len(cluster.writes) >= 55


def test_a_leader_that_ends_releases_the_lease_at_once() -> None:
    async def main() -> float:
        cluster, log = FakeCluster(), list[tuple[float, str]]()
        async with Replica(cluster, "b", log).running() as first:
            await asyncio.sleep(1)
            async with Replica(cluster, "a", log).running():
                await asyncio.sleep(30)
                first.cancel()
                await asyncio.sleep(10)
                spec = lease(cluster)
                assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("a", 1)
        return min(time for time, identity in log if identity == "a")

    assert run_virtual(main) <= 31 + 2 * 2.2


@virtual
async def test_a_leader_that_ends_amid_a_renewal_releases_the_lease() -> None:
    """The renewal is stored, and its answer has not come."""
    cluster, log = ClusterWithLateAnswers(), list[tuple[float, str]]()
    amid = asyncio.Event()

    async def delay(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "update" and not amid.is_set():
            amid.set()
            await asyncio.sleep(1)

    async with Replica(cluster, "a", log).running() as task:
        await asyncio.sleep(10)
        cluster.before_answer = delay
        await amid.wait()
        task.cancel()
        await asyncio.sleep(5)
    assert lease(cluster)["holderIdentity"] == ""


@pytest.mark.parametrize("way", [pytest.param("fails", id="calls fail"), pytest.param("hangs", id="calls hang")])
@virtual
async def test_a_leader_without_connection_stops_before_another_one_starts(way: str) -> None:
    cluster, log = FakeCluster(), list[tuple[float, str]]()
    connection: Any = FaultyConnection(cluster)
    old = Replica(connection, "old", log)
    async with old.running(), Replica(cluster, "new", log).running():
        await asyncio.sleep(29.5)
        setattr(connection, way, True)
        await asyncio.sleep(60)
        last = max(time for time, identity in log if identity == "old")
        first = min(time for time, identity in log if identity == "new")
        assert last <= 29.5 + 10
        assert last < first <= 29.5 + 20
        assert not old.elector.is_leader
        setattr(connection, way, False)
        await asyncio.sleep(30)
        assert old.elector.leader == "new"
        assert max(time for time, identity in log if identity == "old") == last


@virtual
async def test_a_leader_leads_again_after_an_outage() -> None:
    cluster, log = FakeCluster(), list[tuple[float, str]]()
    async with Replica(cluster, "a", log).running():
        await asyncio.sleep(5)
        cluster.unreachable = True
        await asyncio.sleep(60)
        silent = max(time for time, _ in log)
        assert silent <= 15
        cluster.unreachable = False
        await asyncio.sleep(20)
        assert max(time for time, _ in log) > 70


@virtual
async def test_an_outage_that_ends_before_the_deadline_does_not_end_the_leadership() -> None:
    cluster, log = FakeCluster(), list[tuple[float, str]]()
    replica = Replica(cluster, "a", log)
    async with replica.running():
        await asyncio.sleep(5)
        cluster.unreachable = True
        await asyncio.sleep(7)
        cluster.unreachable = False
        await asyncio.sleep(30)
        assert replica.terms == 1
    times = [time for time, _ in log]
    assert max(later - earlier for earlier, later in pairwise(times)) <= 1


@virtual
async def test_the_deadline_counts_from_before_the_request_that_renews() -> None:
    """The cluster may store the lease at once and answer late: other replicas count from when it was stored."""
    cluster = FakeCluster()
    replica = Replica(cluster, "a", [])

    async def slow(verb: str, res: ClusterResource, key: Key) -> None:
        await asyncio.sleep(3)

    cluster.before = slow
    async with replica.running():
        await asyncio.sleep(6.5)
        cluster.unreachable = True
        assert replica.elector.is_leader
        await asyncio.sleep(4)
        assert not replica.elector.is_leader


@virtual
async def test_a_frozen_leader_finds_its_gate_closed() -> None:
    """As after SIGSTOP: only the clock has advanced."""
    skipped = 0.0
    loop = asyncio.get_running_loop()

    def clock() -> float:
        return loop.time() + skipped

    gate = LeaseGate(clock=clock)
    elector = LeaderElector(
        cluster=FakeCluster(), gate=gate, candidate=Candidate(identity="a", namespace="n", name="l"), clock=clock
    )
    ended = asyncio.Event()

    async def lead() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(elector.run(lead))
    await asyncio.sleep(1)
    assert elector.is_leader
    skipped = 20.0
    with pytest.raises(NotLeading):
        async with gate.writing():
            pytest.fail("the write was sent")
    await asyncio.sleep(2.5)
    assert ended.is_set()
    task.cancel()
    await asyncio.wait([task])


@virtual
async def test_a_leader_stops_at_once_if_somebody_else_takes_the_lease() -> None:
    cluster, log = FakeCluster(), list[tuple[float, str]]()
    replica = Replica(cluster, "a", log)
    async with replica.running():
        await asyncio.sleep(5.5)
        stolen = await cluster.get(LEASES, *NAME)
        stolen["spec"]["holderIdentity"] = "thief"
        await cluster.update(LEASES, stolen)
        await asyncio.sleep(2.5)
        assert not replica.elector.is_leader
        assert replica.elector.leader == "thief"


@virtual
async def test_an_edit_of_the_lease_metadata_does_not_end_the_leadership() -> None:
    cluster, log = FakeCluster(), list[tuple[float, str]]()
    replica = Replica(cluster, "a", log)
    async with replica.running():
        await asyncio.sleep(5.5)
        touched = await cluster.get(LEASES, *NAME)
        touched["metadata"]["annotations"] = {"note": "x"}
        await cluster.update(LEASES, touched)
        await asyncio.sleep(20)
        assert replica.elector.is_leader
        edited = cluster.peek(LEASES, *NAME)
        assert edited is not None
        assert edited["metadata"]["annotations"] == {"note": "x"}
        assert replica.terms == 1


def test_the_times_in_a_foreign_lease_are_ignored() -> None:
    """The clocks of other replicas may be wrong by years: only the time at which we saw the lease change counts."""

    async def main() -> float:
        cluster, log = FakeCluster(), list[tuple[float, str]]()
        spec = {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z"}
        cluster.add(LEASES, {"metadata": {"namespace": NAME[0], "name": NAME[1]}, "spec": spec})
        async with Replica(cluster, "a", log).running():
            await asyncio.sleep(30)
        return log[0][0]

    assert 15 <= run_virtual(main) <= 15 + 2 * 2.2


def test_one_of_two_replicas_that_start_together_leads() -> None:
    async def main() -> set[str]:
        cluster, log = FakeCluster(), list[tuple[float, str]]()

        async def slow(verb: str, res: ClusterResource, key: Key) -> None:
            await asyncio.sleep(0.1)

        cluster.before = slow
        async with Replica(cluster, "a", log).running(), Replica(cluster, "b", log).running():
            await asyncio.sleep(60)
        return {identity for _, identity in log}

    assert len(run_virtual(main)) == 1


@pytest.mark.parametrize("fails", [pytest.param(True, id="fails"), pytest.param(False, id="returns")])
def test_the_election_ends_when_the_task_of_the_leader_ends(fails: bool) -> None:
    async def main() -> Object:
        cluster = FakeCluster()
        replica = Replica(cluster, "a", [])

        async def lead() -> None:
            await asyncio.sleep(3)
            if fails:
                raise LookupError("a bug")

        with pytest.raises(LookupError if fails else RuntimeError):
            await replica.elector.run(lead)
        return lease(cluster)

    assert run_virtual(main)["holderIdentity"] == ""


def test_a_replica_waits_until_the_namespace_of_the_lease_exists() -> None:
    async def main() -> float:
        cluster, log = FakeCluster(), list[tuple[float, str]]()
        loop = asyncio.get_running_loop()

        async def missing(verb: str, res: ClusterResource, key: Key) -> None:
            if verb == "create" and loop.time() < 30:
                raise errors.NotFound(GroupResource("", "namespaces"), "cozy-system")

        cluster.before = missing
        async with Replica(cluster, "a", log).running():
            await asyncio.sleep(60)
        return log[0][0]

    assert 30 <= run_virtual(main) <= 35


def test_a_lease_duration_below_the_renew_deadline_is_rejected() -> None:
    with pytest.raises(ValueError, match="must exceed the renew deadline"):
        LeaseTimes(duration=10, renew_deadline=10)


def test_a_micro_time_is_utc() -> None:
    there = datetime(2026, 1, 1, 2, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))

    assert format_micro_time(there) == "2026-01-01T00:00:00.000005Z"
