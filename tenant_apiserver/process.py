"""The parts of the server process that `serve` and `standalone` have in common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from aiohttp import web

from admission.chain import Chain, DurationObserver, Phase
from apiserver import rest
from apiserver.admission import Admission
from apiserver.audit import AuditLog
from apiserver.authentication.peers import Peers
from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import Authorizer
from apiserver.encoding.offload import shorten_switch_interval
from apiserver.endpoints.filters.audit import AuditSink
from apiserver.endpoints.filters.authentication import RequestAuthenticator
from apiserver.endpoints.filters.chain import FilterConfig, build_filters
from apiserver.endpoints.filters.max_in_flight import WATCHES_PER_SLOT
from apiserver.endpoints.installer import ApiGroupVersion, install_group_version
from apiserver.meta.resource import Key
from apiserver.metrics import Metrics
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.server import listener as serving
from apiserver.server.aggregator_probes import AggregatorProbes
from apiserver.server.app import Api, Responder, build_app
from apiserver.server.event_loop_lag import EventLoopLag
from apiserver.server.healthz import READINESS, HealthChecks
from apiserver.server.http_protocol import connection_of
from apiserver.server.installed_groups import InstalledGroups
from apiserver.server.listener import ConnectionLimits, Listener, ShutdownStages
from apiserver.server.version import Version
from apiserver.tls.asyncio_tls import AsyncioServerTls
from apiserver.tls.openssl_tls import OpenSslServerTls
from apiserver.tls.server_context import ServerTls
from controller.platform.sources import PlatformSources
from controller.publishing.guard import PublishingGuard
from controller.tenant.root import ROOT
from registry.cluster.informer import Informer, wait_until_answered
from registry.names import GROUP, ROOT_NAMESPACE, VERSION, flow_of
from registry.tenantnamespace import convert as kind
from tenant_apiserver import __version__
from tenant_apiserver.crash_log import log_crashes
from tenant_apiserver.gc_tuning import freeze_gc, return_large_blocks, trim_malloc
from tenant_apiserver.options.command_line import CommonOptions
from tenant_apiserver.options.settings_file import SettingsFile
from tenant_apiserver.unsynced import unsynced_names, unwatched_note
from tenant_apiserver.wiring.cluster_admission import ClusterAdmission
from tenant_apiserver.wiring.projections import ProjectionApi
from tenant_apiserver.wiring.tenant_api import TenantApi

TITLE = "Tenant API"
_LATE_HANDLERS_TIMEOUT_SECONDS = 10.0
TLS_TRANSPORTS: Final[Mapping[str, type[ServerTls]]] = {"openssl": OpenSslServerTls, "asyncio": AsyncioServerTls}
"""The implementations that `--tls-transport` selects from."""
T = TypeVar("T")
Task = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedGroupVersion:
    """Storages of a group version, keyed 'resource' or 'resource/subresource', and their admission chain."""

    group: str
    version: str
    storages: Mapping[str, rest.Storage]
    admission: Admission


def shutdown_stages(*, delay: float = 0.0) -> ShutdownStages:
    """A graceful shutdown that takes at most 10 seconds (WIRE-I13), `delay` included."""
    return ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event(), delay=delay, grace=8.0 - delay)


@dataclass(frozen=True, kw_only=True)
class Process:
    """State that all parts of the process share."""

    metrics: Metrics = field(default_factory=Metrics)
    health: HealthChecks = field(default_factory=HealthChecks)
    stages: ShutdownStages = field(default_factory=shutdown_stages)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    bytes_in_flight: BytesInFlight = field(default_factory=partial(BytesInFlight, flow_of=flow_of))
    created: float = field(default_factory=time.monotonic)
    """When the process began, by the monotonic clock, in seconds."""


def build_application(
    process: Process,
    *,
    groups: InstalledGroups,
    authenticator: RequestAuthenticator,
    authorizer: Authorizer,
    request_headers: Callable[[], RequestHeaderConfig],
    max_requests_inflight: int,
    impersonation: bool,
    audit: AuditSink | None,
    read_only: bool = False,
    cors_allowed_origins: Sequence[str] = (),
    responders: Sequence[Responder] = (),
) -> web.Application:
    """Serves the groups, discovery, OpenAPI, health checks and metrics behind the request filters, and the paths of
    other `responders`."""
    filters = build_filters(
        FilterConfig(
            authenticator=authenticator,
            authorizer=authorizer,
            request_headers=request_headers,
            metrics=process.metrics,
            served=groups.is_served,
            max_requests_inflight=max_requests_inflight,
            bytes_in_flight=process.bytes_in_flight,
            connection=connection_of,
            impersonation=impersonation,
            is_draining=process.stages.is_draining,
            audit=audit,
            read_only=read_only,
            cors_allowed_origins=cors_allowed_origins,
        )
    )
    return build_app(_api(process, groups, authorizer, responders), filters)


def _api(
    process: Process, groups: InstalledGroups, authorizer: Authorizer, more_responders: Sequence[Responder]
) -> Api:
    discovery, openapi, version = groups.discovery, groups.openapi, Version(f"tenant-apiserver-{__version__}")
    health, metrics = process.health, process.metrics
    return Api(
        endpoints=groups.endpoints,
        responders=(
            partial(health.respond, authorizer=authorizer),
            AggregatorProbes(metrics.registry, discovery.paths).respond,
            discovery.respond,
            openapi.respond,
            version.respond,
            metrics.respond,
            *more_responders,
        ),
        paths=lambda: sorted({*health.paths(), *discovery.paths(), *openapi.paths(), *version.paths(), "/metrics"}),
    )


def add_checks(process: Process, informers: Sequence[Informer]) -> None:
    """Adds the health checks of Kubernetes' own servers (WIRE-I5), and one for the connection to the cluster."""
    health = process.health
    health.add("log", lambda: None)

    def synced() -> None:
        if names := unsynced_names(informers):
            raise RuntimeError(f"informers not synced: {', '.join(names)}")

    def cluster_reached() -> str:
        # only the first contact counts: later outages leave the server ready, as the cache still serves (WIRE-I24)
        if not any(informer.synced.is_set() for informer in informers):
            raise RuntimeError("the cluster has not been reached yet")
        return unwatched_note(informers)

    health.add("informer-sync", synced, endpoints=READINESS)
    health.add("cluster", cluster_reached, endpoints=READINESS, former_name="host")
    health.add("poststarthook/start-apiserver-admission-initializer", lambda: None)
    health.add("poststarthook/generic-apiserver-start-informers", lambda: None)
    health.add("shutdown", process.stages.readyz_check, endpoints=READINESS)


def informer_tasks(tenants: TenantApi, others: Sequence[Informer]) -> dict[str, Task]:
    """The informers' `run` functions by task name, in an order that makes the server ready early.

    Tenants and namespaces are listed after the RBAC objects that decide who sees them, so that no watch resumes from a
    version at which its user's rights are unknown. Late handlers, those of controllers, run after all caches are
    synced.
    """
    first = tenants.visibility.informers
    for informer in tenants.informers:
        informer.delay_late_handlers(
            partial(_wait_until_synced, (*tenants.informers, *others), _LATE_HANDLERS_TIMEOUT_SECONDS)
        )
    dependent = [informer for informer in tenants.informers if informer not in first]
    return {
        **{_task_name(informer): informer.run for informer in (*first, *others)},
        **{_task_name(informer): partial(run_after_listed, first, informer) for informer in dependent},
    }


def _task_name(informer: Informer) -> str:
    """Informers of single objects of one kind have different names."""
    selected = informer.field_selector.removeprefix("metadata.name=")
    return f"informer-{informer.resource.plural}" + (f"-{selected}" if selected else "")


async def run_after_listed(first: Sequence[Informer], informer: Informer) -> None:
    """Runs `informer` once the handlers of the `first` ones have processed their lists, or these cannot be read: a
    server that may not list roles still serves administrators."""
    await wait_until_answered(first)
    await informer.run()


async def _wait_until_synced(informers: Sequence[Informer], seconds: float) -> None:
    """Waits for a limited time, so that a kind that cannot be listed does not block the controllers."""
    await _wait_for_all((each.synced for each in informers), seconds)


async def _wait_for_all(events: Iterable[asyncio.Event], seconds: float) -> None:
    """Waits until all events are set, or the time has expired."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()


def add_config_check(process: Process, settings_file: SettingsFile) -> None:
    """Shows errors in the settings file. They do not make the server unready, as the previous settings stay in
    force."""

    def check() -> str:
        error = settings_file.error
        return f"the file is invalid, the previous settings stay in force: {error}" if error else ""

    process.health.add("config", check, endpoints=READINESS)


def add_package_check(process: Process, sources: PlatformSources) -> None:
    """Shows the source of the settings, and what is wrong with it, which does not make the server unready."""
    process.health.add("platform-package", sources.describe, endpoints=READINESS)


def add_publishing_check(process: Process, guard: PublishingGuard | None) -> None:
    """Shows the services of the platform that are not served, which does not make the server unready."""
    if guard is not None:
        process.health.add("publishing", guard.describe, endpoints=READINESS)


def add_admission_checks(process: Process, admission: ClusterAdmission) -> None:
    """Shows policies and webhooks that do not compile. They never make the server unready: failurePolicy decides."""
    process.health.add("admission-policies", admission.policies.describe, endpoints=READINESS)
    process.health.add("admission-webhooks", admission.webhooks.describe, endpoints=READINESS)


def add_root_check(process: Process, tenants: TenantApi, may_create_root: Callable[[], bool]) -> None:
    """Keeps a process unready that creates the root Tenant at its first start, until Tenants can be created in it.

    A root that is deleted later leaves the server ready, as reads still work.
    """
    existed = False

    def check() -> str:
        nonlocal existed
        exists = tenants.tree.get(ROOT) is not None and Key("", ROOT_NAMESPACE) in tenants.namespaces.store
        existed = existed or exists
        if exists:
            return ""
        if not existed and may_create_root():
            raise RuntimeError("the root tenant has not been seen yet; if there is none, this process creates it")
        return "the root tenant does not exist, so no tenant can be created"

    process.health.add("root-tenant", check, endpoints=READINESS)


def tenant_groups(tenants: TenantApi) -> list[ServedGroupVersion]:
    """The group versions of Tenants and TenantNamespaces."""
    read_only = Chain(())
    return [
        ServedGroupVersion(group=GROUP, version=VERSION, storages=tenants.storages, admission=tenants.admission),
        ServedGroupVersion(
            group=kind.GROUP, version=kind.VERSION, storages=tenants.namespace_storages, admission=read_only
        ),
    ]


def projection_groups(projections: ProjectionApi) -> list[ServedGroupVersion]:
    """The group versions of the kinds that show objects of the cluster in another form."""
    return [
        ServedGroupVersion(
            group=each.resource.group,
            version=each.resource.version,
            storages={each.resource.plural: each.storage},
            admission=each.admission,
        )
        for each in projections.served
    ]


def add_projections_check(process: Process, projections: ProjectionApi) -> None:
    """Waits for the objects that are shown, and shows the kinds whose objects the cluster refuses."""
    process.health.add("projections", projections.describe, endpoints=READINESS)


def admission_observer(metrics: Metrics) -> DurationObserver:
    """Records the duration of admission in the metric of kube-apiserver (WIRE-I14)."""

    def observe(*, name: str, operation: str, phase: Phase, rejected: bool, seconds: float) -> None:
        metrics.observe_admission(name, phase, operation, rejected=rejected, seconds=seconds)

    return observe


def open_audit_log(path: Path | None, metrics: Metrics) -> AuditLog | None:
    return AuditLog(path, on_event_lost=metrics.audit_event_lost) if path is not None else None


async def open_listener(
    app: web.Application, tls: ServerTls, options: CommonOptions, process: Process, peers: Peers
) -> Listener:
    # the requests and watches of one user, and as many idle connections as requests
    per_user = (WATCHES_PER_SLOT + 2) * options.max_requests_inflight
    return await serving.listen(
        app,
        tls=tls,
        host=options.bind_address,
        port=options.secure_port,
        grace=process.stages.grace,
        limits=ConnectionLimits(per_user=per_user),
        bytes_in_flight=process.bytes_in_flight,
        peers=peers,
    )


async def run_server(process: Process, tasks: Mapping[str, Task], start: Callable[[], Awaitable[Listener]]) -> None:
    """Serves until a signal, with `tasks` in the background. The first task that fails ends the process with its error.

    Raises CannotListen.
    """
    log_crashes()
    shorten_switch_interval()
    return_large_blocks()
    listener = await start()
    named = {**tasks, "event-loop": EventLoopLag(process.metrics.registry).watch}
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(_run(task), name=name) for name, task in named.items()]
        await serving.serve_until_stopped(listener, process.stages, stop=process.stop)
        for each in running:
            each.cancel()


async def run_unless_stopped(process: Process, call: Coroutine[Any, Any, T]) -> T | None:
    """The result of `call`, or None if the process is stopped before."""
    called, stopped = asyncio.ensure_future(call), asyncio.ensure_future(process.stop.wait())
    try:
        await asyncio.wait((called, stopped), return_when=asyncio.FIRST_COMPLETED)
        return called.result() if called.done() else None
    finally:
        for task in (called, stopped):
            task.cancel()
        await asyncio.wait((called, stopped))


async def _run(task: Task) -> None:
    await task()


def background_tasks(
    tenants: TenantApi, admission: ClusterAdmission, settings_file: SettingsFile, *, others: Sequence[Informer] = ()
) -> dict[str, Task]:
    """Background tasks of both commands, by name; `others` are informers besides those of tenants and admission."""
    informers = (*tenants.informers, *admission.informers, *others)
    return {
        **informer_tasks(tenants, (*admission.informers, *others)),
        **tenants.tasks,
        "config": settings_file.follow,
        "policy-params": admission.policies.params.run,
        "memory": partial(freeze_gc, informers),
        "unused-memory": trim_malloc,
    }


def install_groups(
    process: Process, groups: Sequence[ServedGroupVersion], authorizer: Authorizer
) -> list[ApiGroupVersion]:
    """Creates the endpoints of each group. A group version may be listed several times, with other admission."""
    merged: dict[tuple[str, str], ApiGroupVersion] = {}
    for group in groups:
        key = group.group, group.version
        found = _install(process, group, authorizer)
        merged[key] = merged[key].extended_with(found) if key in merged else found
    return list(merged.values())


def installed(groups: Sequence[ApiGroupVersion]) -> InstalledGroups:
    """The groups with the title and version of this server."""
    return InstalledGroups(groups, title=TITLE, version=__version__)


def _install(process: Process, group: ServedGroupVersion, authorizer: Authorizer) -> ApiGroupVersion:
    return install_group_version(
        group=group.group,
        version=group.version,
        storages=group.storages,
        admission=group.admission,
        authorizer=authorizer,
        metrics=process.metrics,
        shutdown=process.stages.shutdown,
    )
