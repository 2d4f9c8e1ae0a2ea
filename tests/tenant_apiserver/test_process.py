"""The parts that `serve` and `standalone` share: filters, health checks, and the order in which informers start."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web

from apiserver.audit import AuditEvent
from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import MASTERS, PrivilegedGroups, UnionAuthorizer
from apiserver.endpoints.filters.chain import FilterConfig, build_filters
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.metrics import Metrics
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.request.context import User
from controller.tenant.root import ROOT
from registry.cluster.event_handlers import RelistListener
from registry.cluster.informer import Informer
from registry.cluster.interface import CONFIGMAPS, HELMRELEASES, NAMESPACES, ClusterUnreachable, NotServed
from registry.cluster.object_store import ObjectStore
from registry.tenant.tree import TenantTree
from tenant_apiserver.process import Process, add_checks, add_root_check, informer_tasks, shutdown_stages
from tenant_apiserver.wiring.tenant_api import TenantApi
from tests.apiserver.endpoints.request_contexts import FakeConnection, make_context
from tests.fake_cluster import FakeCluster
from tests.tenant_objects import root_summary
from tests.virtual_time import virtual


class UnusedAuthenticator:
    async def authenticate(self, context: object) -> object:
        raise AssertionError("called")


def sink(event: AuditEvent) -> None:
    pass


def test_filters_are_built_in_the_order_of_kube_apiserver() -> None:
    config = FilterConfig(
        authenticator=UnusedAuthenticator(),  # type: ignore[arg-type]
        authorizer=UnionAuthorizer(()),
        request_headers=RequestHeaderConfig,
        metrics=Metrics(),
        served=lambda info: True,
        max_requests_inflight=1,
        bytes_in_flight=BytesInFlight(),
        connection=FakeConnection(),
        impersonation=True,
        is_draining=lambda: False,
        audit=sink,
    )
    assert [type(each).__name__ for each in build_filters(config)] == [
        "AccessLog",
        "RequestMetrics",
        "ResponseHeaders",
        "ErrorResponses",
        "RequestDeadline",
        "RefuseNewWatches",
        "Authentication",
        "Audit",
        "Impersonation",
        "MaxInFlight",
        "Authorization",
    ]


async def test_readyz_fails_and_livez_succeeds_after_the_signal() -> None:
    process = Process(stages=shutdown_stages())
    add_checks(process, ())
    process.stages.draining.set()
    answer = await process.health.respond(make_context(target="/readyz/shutdown"), authorizer=PrivilegedGroups())
    assert answer is not None
    assert answer.status == 500
    alive = await process.health.respond(make_context(target="/livez"), authorizer=PrivilegedGroups())
    assert alive is not None
    assert alive.status == 200


def test_a_shutdown_takes_at_most_ten_seconds() -> None:
    for each in (shutdown_stages(), shutdown_stages(delay=1.0)):
        assert each.delay + each.grace <= 10


async def test_a_server_is_not_ready_before_all_informers_have_synced() -> None:
    process = Process()
    informer = Informer(FakeCluster(), CONFIGMAPS)
    add_checks(process, (informer,))
    before = await process.health.respond(make_context(target="/readyz"), authorizer=PrivilegedGroups())
    informer.synced.set()
    after = await process.health.respond(make_context(target="/readyz"), authorizer=PrivilegedGroups())
    assert before is not None
    assert after is not None
    assert (before.status, after.status) == (500, 200)


def refused(verb: str) -> StatusError:
    """As kube-apiserver says it."""
    denied = (
        f'User "us" cannot {verb} resource "helmreleases" in API group "helm.toolkit.fluxcd.io" at the cluster scope'
    )
    return StatusError(403, "Forbidden", f"helmreleases.helm.toolkit.fluxcd.io is forbidden: {denied}")


@pytest.mark.parametrize(
    ("error", "off_by_design", "note"),
    [
        pytest.param(ClusterUnreachable(), "", "no answer at present about helmreleases", id="unreachable"),
        pytest.param(errors.TooManyRequests("later"), "", "no answer at present about helmreleases", id="busy"),
        pytest.param(NotServed(), "", "kube-apiserver does not serve helmreleases", id="not served"),
        pytest.param(
            refused("watch"),
            "",
            "the server lacks the right to watch helmreleases.helm.toolkit.fluxcd.io",
            id="a right is missing",
        ),
        pytest.param(
            StatusError(403, "Forbidden", "no"),
            "",
            "the server lacks the right to list and watch helmreleases",
            id="a webhook refuses",
        ),
        pytest.param(refused("list"), "they are off", "", id="off by design"),
    ],
)
async def test_readyz_names_the_kinds_that_cannot_be_watched_and_why(
    error: StatusError, off_by_design: str, note: str
) -> None:
    process, informers = Process(), (Informer(FakeCluster(), HELMRELEASES), Informer(FakeCluster(), CONFIGMAPS))
    add_checks(process, informers)
    for each in informers:
        each.synced.set()
    informers[0].cluster_error, informers[0].if_forbidden = error, off_by_design
    context = make_context(target="/readyz?verbose", user=User("admin", groups=(MASTERS,)))
    answer = await process.health.respond(context, authorizer=PrivilegedGroups())
    assert isinstance(answer, web.Response)
    lines = str(answer.text).splitlines()
    assert next(each for each in lines if "]cluster" in each) == f"[+]cluster ok{note and f': {note}'}"


@pytest.mark.parametrize(
    ("may_create", "expected"),
    [
        pytest.param(True, [500, 500, 200, 200], id="this process creates the root"),
        pytest.param(False, [200, 200, 200, 200], id="another one does"),
    ],
)
async def test_a_server_that_creates_the_root_tenant_is_ready_once_it_exists(
    may_create: bool, expected: list[int]
) -> None:
    tree, namespaces, process = TenantTree(), ObjectStore(), Process()
    tenants = SimpleNamespace(tree=tree, namespaces=SimpleNamespace(store=namespaces))
    add_root_check(process, cast(TenantApi, tenants), lambda: may_create)

    async def status() -> int:
        answer = await process.health.respond(make_context(target="/readyz"), authorizer=PrivilegedGroups())
        assert answer is not None
        return answer.status

    statuses = [await status()]
    tree.put(root_summary())
    statuses.append(await status())
    namespaces.put({"metadata": {"name": "tenant-root", "resourceVersion": "1"}})
    statuses.append(await status())
    # a root that is deleted later does not stop reads
    tree.remove(ROOT)
    statuses.append(await status())
    assert statuses == expected


def test_informers_of_single_objects_of_one_kind_all_run() -> None:
    configmaps = [Informer(FakeCluster(), CONFIGMAPS, field_selector=f"metadata.name={name}") for name in "ab"]
    tenants = SimpleNamespace(informers=(configmaps[0],), visibility=SimpleNamespace(informers=()))
    assert len(informer_tasks(cast(TenantApi, tenants), configmaps[1:])) == 2


@pytest.mark.parametrize("last_comes", [True, False])
@virtual
async def test_late_handlers_run_when_the_server_is_ready_or_after_a_timeout(last_comes: bool) -> None:
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    first, second, last = (Informer(FakeCluster(), kind) for kind in (NAMESPACES, HELMRELEASES, CONFIGMAPS))
    first.add_handler(RelistListener(told.set), late=True)
    tenants = SimpleNamespace(informers=(first, second), visibility=SimpleNamespace(informers=()))
    work = informer_tasks(cast(TenantApi, tenants), [last])
    running = [asyncio.ensure_future(work[f"informer-{kind.plural}"]()) for kind in (NAMESPACES, HELMRELEASES)]
    await second.synced.wait()
    await asyncio.sleep(5)
    assert first.synced.is_set()
    assert not told.is_set()
    before = loop.time()
    if last_comes:
        running.append(asyncio.ensure_future(work["informer-configmaps"]()))
    await told.wait()
    assert (loop.time() - before < 1) is last_comes
    for each in running:
        each.cancel()
    await asyncio.wait(running)
