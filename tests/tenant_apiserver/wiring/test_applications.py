"""Replicas that follow the ApplicationDefinitions of one cluster: which forms they serve, and what they tell."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from admission.chain import ignore_observation
from apiserver.authorization.authorizer import PrivilegedGroups
from apiserver.meta.resource import Key, Object
from apiserver.metrics import Metrics
from controller.platform.settings import PlatformSettings, ReloadableSettings
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Event, Recorder, Regarding
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.runtime.write_gate import OpenGate
from controller.tenant.workloads_ready_step import WORKLOADMONITORS
from registry.application.kept_forms import NAME, read_sources
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import (
    APPLICATIONDEFINITIONS,
    CONFIGMAPS,
    EVENTS,
    HELMRELEASES,
    LEASES,
    NAMESPACES,
    ClusterResource,
    NotServed,
)
from tenant_apiserver.wiring.applications.api import ApplicationApi, ApplicationApiConfig
from tenant_apiserver.wiring.applications.controllers import workloads_controller
from tenant_apiserver.wiring.applications.forms_keeper import LEASE, FormsKeeper
from tenant_apiserver.wiring.controllers import ControllerContext, Controllers
from tenant_apiserver.wiring.releases import watch_releases
from tenant_apiserver.wiring.visibility import by_rbac
from tests.fake_cluster import FakeCluster
from tests.registry.application.applications import definition_object, release_of
from tests.virtual_time import virtual

REDIS = definition_object()
OTHER = definition_object("other", kind="Other", plural="others", prefix="other-")
_SECONDS = 20.0


class Events(Recorder):
    def __init__(self) -> None:
        self.reasons: list[tuple[str, str]] = []
        self.notes: list[str] = []

    def record(self, regarding: Regarding, event: Event) -> None:
        self.reasons.append((regarding.name, event.reason))
        self.notes.append(event.note)


class ServingReplica:
    """One process. With `leads`, it keeps the forms in force. With `chosen`, it is a replica with these controllers:
    a Lease decides, and Events are written to the cluster."""

    def __init__(self, cluster: FakeCluster, *, leads: bool, chosen: Sequence[str] | None) -> None:
        self.metrics = Metrics()
        self.events = Events()
        namespaces = Informer(cluster, NAMESPACES)
        releases = watch_releases(cluster)
        tenants: Any = SimpleNamespace(
            informers=(),
            object_caches={},
            namespaces=namespaces,
            visibility=by_rbac(cluster),
            releases=releases.informer,
            release_events=releases.events,
        )
        self.api = ApplicationApi(
            ApplicationApiConfig(
                cluster=cluster,
                tenants=tenants,
                authorizer=PrivilegedGroups(),
                metrics=self.metrics,
                observe=ignore_observation,
                cluster_admission=lambda _: (),
                admission_informers=(),
            )
        )
        self.tasks: list[Any] = [releases.informer.run, self.api.run]
        if chosen is not None:
            settings = ReloadableSettings(PlatformSettings())
            context = ControllerContext(
                cluster=cluster, tenants=tenants, settings=settings, metrics=self.metrics, applications=self.api
            )
            self.tasks.append(Controllers(context, chosen=chosen, lease_namespace="cozy-system").run)
            return
        if leads:
            informers = InformerFactory(cluster)
            writer = ClusterWriter(cluster=cast(Any, cluster), gate=OpenGate())
            queues = WorkQueueMetrics(self.metrics.registry)
            keeper = FormsKeeper(self.api, cluster=cluster, queues=queues, reporting_controller="example.org/test")
            workloads = workloads_controller(self.api, informers, writer, queues)
            self.tasks += [informers.run, keeper.run, workloads.run]
        self.api.recorder = self.events

    def workloads_ready(self, name: str) -> tuple[str, str, str] | None:
        """The status, reason and message of the condition, as the watch cache has it."""
        (served,) = self.api.served
        found = {each.key.name: each.object() for each in served.feed.cache}[name]
        conditions = found["status"].get("conditions", ())
        shown = [each for each in conditions if each["type"] == "WorkloadsReady"]
        return (shown[0]["status"], shown[0]["reason"], shown[0]["message"]) if shown else None

    @property
    def kinds(self) -> dict[str, str]:
        """The prefixes of the kinds that are served, by the names of their definitions."""
        return {each.definition.name: each.definition.prefix for each in self.api.served}

    def metric(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"tenant_apiserver_application_{name}", labels)


@asynccontextmanager
async def serving(
    cluster: FakeCluster, *, leads: bool = True, chosen: Sequence[str] | None = None
) -> AsyncIterator[ServingReplica]:
    replica = ServingReplica(cluster, leads=leads, chosen=chosen)
    tasks = [asyncio.create_task(each()) for each in replica.tasks]
    try:
        await until(lambda: replica.api.forms is not None)
        yield replica
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(_SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing signals what the informers have done
            await asyncio.sleep(0.01)


async def change(cluster: FakeCluster, name: str, **release: Any) -> None:
    obj = copy.deepcopy(await cluster.get(APPLICATIONDEFINITIONS, "", name))
    obj["spec"]["release"] |= release
    await cluster.update(APPLICATIONDEFINITIONS, obj)


def kept(cluster: FakeCluster) -> dict[str, str]:
    found = cluster.peek(CONFIGMAPS, "cozy-system", NAME) or {}
    releases = {name: each["spec"]["release"] for name, each in read_sources(found)}
    return {name: each["prefix"] if isinstance(each, dict) else "" for name, each in releases.items()}


def cluster_with(*definitions: Object) -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(APPLICATIONDEFINITIONS, *copy.deepcopy(definitions))
    return cluster


async def test_the_form_in_force_survives_a_restart() -> None:
    """Also if the definition becomes bad while no process runs."""
    cluster = cluster_with(REDIS)
    async with serving(cluster):
        await until(lambda: kept(cluster) == {"redis": "redis-"})
    await change(cluster, "redis", prefix="Bad!")
    async with serving(cluster) as replica:
        assert replica.kinds == {"redis": "redis-"}
        assert "serves the form of generation 1; generation 2 is refused because" in replica.api.describe()
        await change(cluster, "redis", prefix="new-")
        await until(lambda: replica.kinds == {"redis": "new-"})
        await until(lambda: kept(cluster) == {"redis": "new-"})


async def test_replicas_serve_what_the_leader_has_decided() -> None:
    """Two definitions claim one prefix: a process that sees both at once decides otherwise than one that sees one
    after the other."""
    cluster = cluster_with(REDIS, OTHER)
    async with AsyncExitStack() as stack:
        leader = await stack.enter_async_context(serving(cluster))
        await change(cluster, "redis", prefix="x-")
        await until(lambda: leader.kinds["redis"] == "x-")
        await change(cluster, "other", prefix="x-")
        await until(lambda: "refused" in leader.api.describe())
        await until(lambda: kept(cluster) == {"redis": "x-", "other": "other-"})
        follower = await stack.enter_async_context(serving(cluster, leads=False))
        await until(lambda: follower.kinds == {"redis": "x-", "other": "other-"})
        await change(cluster, "redis", prefix="y-")
        await until(lambda: leader.kinds == follower.kinds == {"redis": "y-", "other": "x-"})
    writes = [each for each in cluster.writes if each.resource == CONFIGMAPS]
    assert {each.field_manager for each in writes} == {"tenant-controller"}


async def test_a_follower_that_has_decided_otherwise_follows_the_leader() -> None:
    cluster = cluster_with(REDIS, OTHER)
    async with serving(cluster, leads=False) as follower:
        assert follower.kinds == {"redis": "redis-", "other": "other-"}
        await change(cluster, "redis", prefix="x-")
        await until(lambda: follower.kinds["redis"] == "x-")
        await change(cluster, "other", prefix="x-")
        await until(lambda: "other serves" in follower.api.describe())
        # a leader that sees both changes at once prefers the smaller name
        async with serving(cluster):
            await until(lambda: follower.kinds == kept(cluster) == {"other": "x-"})


def written_events(cluster: FakeCluster) -> list[tuple[str, str]]:
    """(name of the definition, reason)."""
    keys = [each.key for each in cluster.writes if each.resource == EVENTS]
    found = [cluster.peek(EVENTS, each.namespace, each.name) or {} for each in keys]
    return [(each["regarding"]["name"], each["reason"]) for each in found]


def holder(cluster: FakeCluster) -> str:
    lease = cluster.peek(LEASES, "cozy-system", LEASE) or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


async def test_replicas_without_controllers_keep_the_forms_and_tell_of_a_bad_one() -> None:
    """As on a live Cozystack. The next replica goes on when the one that leads ends."""
    cluster = cluster_with(REDIS)
    async with AsyncExitStack() as stack:
        async with serving(cluster, chosen=()) as first:
            await until(lambda: kept(cluster) == {"redis": "redis-"})
            leader = holder(cluster)
            assert leader
            second = await stack.enter_async_context(serving(cluster, chosen=()))
            await change(cluster, "redis", prefix="Bad!")
            await until(lambda: written_events(cluster) == [("redis", "FormRefused")])
            assert holder(cluster) == leader
            assert first.kinds == second.kinds == kept(cluster) == {"redis": "redis-"}
        await until(lambda: holder(cluster) not in ("", leader))
        assert second.kinds == {"redis": "redis-"}
        await change(cluster, "redis", prefix="new-")
        await until(lambda: kept(cluster) == second.kinds == {"redis": "new-"})
    assert kept(cluster) == {"redis": "new-"}


async def test_a_kind_with_a_bad_definition_is_served_after_all_replicas_without_controllers_have_ended() -> None:
    cluster = cluster_with(REDIS)
    async with serving(cluster, chosen=()):
        await until(lambda: kept(cluster) == {"redis": "redis-"})
    await change(cluster, "redis", prefix="Bad!")
    async with serving(cluster, chosen=()) as replica:
        assert replica.kinds == {"redis": "redis-"}


async def test_each_state_is_told_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    cluster = cluster_with(REDIS, OTHER)
    async with serving(cluster) as replica:
        assert replica.api.describe() == ""
        assert replica.metric("definitions", definition="redis", state="served") == 1
        await change(cluster, "redis", prefix="other-")
        await until(lambda: ("redis", "FormRefused") in replica.events.reasons)
        state = (
            "serves the form of generation 1; generation 2 is refused because the prefix other- is that of "
            'ApplicationDefinition "other"'
        )
        assert replica.events.notes == [state]
        assert replica.api.describe() == f"redis {state}"
        assert replica.metric("definitions", definition="redis", state="kept") == 1
        assert replica.metric("definitions", definition="redis", state="served") is None
        await change(cluster, "redis", prefix="redis-")
        await until(lambda: ("redis", "Served") in replica.events.reasons)
        assert replica.events.notes[1:] == ["serves the form of generation 3"]
        assert replica.api.describe() == ""
    told = [each.getMessage() for each in caplog.records if each.name == "tenant_apiserver"]
    assert told == [
        f'ApplicationDefinition "redis" {state}',
        'ApplicationDefinition "redis" serves the form of generation 3 again',
    ]


async def test_releases_that_are_no_longer_served_are_told() -> None:
    cluster = cluster_with(REDIS)
    cluster.add(HELMRELEASES, release_of("a", {}), release_of("b", {}))
    label = "apps.cozystack.io/application.kind=Redis"
    async with serving(cluster) as replica:
        await until(lambda: replica.api.releases.synced.is_set())
        assert replica.api.describe() == ""
        await change(cluster, "redis", prefix="new-")
        await until(lambda: replica.events.reasons == [("redis", "ReleasesNotServed")])
        assert replica.api.describe().startswith(f"2 HelmReleases are not served, labelled {label}: an object of the")
        assert replica.metric("releases_unserved", kind="Redis") == 2
        redis = await cluster.get(APPLICATIONDEFINITIONS, "", "redis")
        await cluster.delete(APPLICATIONDEFINITIONS, "", "redis", options={})
        await until(lambda: len(replica.events.reasons) == 2)
        assert replica.events.notes[1].endswith(f"labelled {label}: no definition that is served describes this kind")
        assert redis["spec"]["release"]["prefix"] == "new-"


@virtual
async def test_after_an_outage_readyz_says_again_that_there_are_no_definitions() -> None:
    cluster = FakeCluster()

    async def serve_no_definitions(verb: str, res: ClusterResource, key: Key) -> None:
        if res == APPLICATIONDEFINITIONS and not cluster.unreachable:
            raise NotServed

    cluster.before = serve_no_definitions
    replica = ServingReplica(cluster, leads=False, chosen=None)
    tasks = [asyncio.create_task(each()) for each in replica.tasks]
    described = list[str]()
    for unreachable in (False, True, False):
        cluster.unreachable = unreachable
        await asyncio.sleep(30)
        described.append(replica.api.describe())
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    none = "ApplicationDefinitions are not served, so Tenants are the only kind"
    away = "ApplicationDefinitions cannot be read: kube-apiserver cannot be reached"
    assert described == [none, away, none]


def monitor(name: str, application: str, operational: bool | None, kind: str = "Redis") -> Object:
    release = release_of(application, {})["metadata"]
    labels = {**release["labels"], "apps.cozystack.io/application.kind": kind}
    status = {} if operational is None else {"status": {"operational": operational}}
    return {"metadata": {"name": name, "namespace": release["namespace"], "labels": labels}, **status}


async def test_workload_monitors_show_in_the_status_of_their_application() -> None:
    """T39: with a new resourceVersion, because they are kept in an annotation, which no client sees."""
    cluster = cluster_with(REDIS)
    cluster.add(HELMRELEASES, release_of("a", {}), release_of("b", {}))
    cluster.add(WORKLOADMONITORS, monitor("other", "b", False, kind="Other"), monitor("m1", "a", None))
    async with serving(cluster) as replica:
        await until(lambda: replica.api.served and len(replica.api.served[0].feed.cache) == 2)
        await until(lambda: replica.workloads_ready("a") == ("Unknown", "Pending", "not reported yet: m1"))
        await cluster.create(WORKLOADMONITORS, monitor("m2", "a", False))
        failing = ("False", "WorkloadMonitorCheck", "not operational: m2")
        await until(lambda: replica.workloads_ready("a") == failing)
        (served,) = replica.api.served
        (shown,) = [each for each in served.feed.cache if each.key.name == "a"]
        stored = cluster.peek(HELMRELEASES, shown.key.namespace, "redis-a")
        assert stored is not None
        assert str(shown.rv) == stored["metadata"]["resourceVersion"]
        assert "annotations" not in shown.object()["metadata"]
        assert replica.workloads_ready("b") is None
        writes = len(cluster.writes)
        for name in ("m1", "m2"):
            await cluster.delete(WORKLOADMONITORS, shown.key.namespace, name, options={})
        await until(lambda: replica.workloads_ready("a") is None)
        releases = [each for each in cluster.writes[writes:] if each.resource == HELMRELEASES]
        assert len(releases) <= 2
    assert "apps.cozystack.io/application-status" not in str(cluster.peek_all(HELMRELEASES))


async def test_what_monitors_said_stays_while_their_kind_is_not_served() -> None:
    cluster = cluster_with(REDIS)
    cluster.add(HELMRELEASES, release_of("a", {}))
    cluster.add(WORKLOADMONITORS, monitor("m", "a", True))
    operational = ("True", "WorkloadMonitorCheck", "all workloads are operational")
    async with serving(cluster) as replica:
        await until(lambda: len(replica.api.served[0].feed.cache) == 1 and replica.workloads_ready("a") == operational)
    missing = FakeCluster(_objects=cluster._objects, before=_no_monitors)
    async with serving(missing) as replica:
        await until(lambda: replica.api.releases.synced.is_set())
        assert replica.workloads_ready("a") == operational


async def _no_monitors(verb: str, res: ClusterResource, key: Key) -> None:
    if res == WORKLOADMONITORS:
        raise NotServed


async def test_releases_without_a_kind_are_told_at_start(caplog: pytest.LogCaptureFixture) -> None:
    bad = definition_object("bad", kind="Bad", plural="bads", prefix="b-", openAPISchema="{")
    cluster = cluster_with(OTHER, bad)
    cluster.add(HELMRELEASES, release_of("a", {}))
    async with serving(cluster) as replica:
        assert replica.api.summary() == "1 kinds of applications (1 definitions refused)"
        await until(lambda: "1 HelmRelease is not served" in caplog.text)
        assert "1 HelmRelease is not served" in replica.api.describe()
