"""From groups, identities and checks to the application: what `serve` and `standalone` have in common."""

from __future__ import annotations

import asyncio
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
from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import Authorizer
from apiserver.encoding.offload import shorten_switch_interval
from apiserver.endpoints.discovery import Discovery
from apiserver.endpoints.filters.audit import AuditSink
from apiserver.endpoints.filters.authentication import RequestAuthenticator
from apiserver.endpoints.filters.chain import FilterConfig, build_filters
from apiserver.endpoints.installer import ApiGroupVersion, install
from apiserver.endpoints.openapi.routes import OpenAPI
from apiserver.metrics import Metrics
from apiserver.request.request_info import RequestInfo
from apiserver.server import listener as serving
from apiserver.server.app import Api, build_app, endpoints_by_group_version
from apiserver.server.event_loop_lag import EventLoopLag
from apiserver.server.healthz import READINESS, HealthChecks
from apiserver.server.listener import Listener, ShutdownStages
from apiserver.server.version import Version
from apiserver.tls.asyncio_tls import AsyncioServerTls
from apiserver.tls.openssl_tls import OpenSslServerTls
from apiserver.tls.server_context import ServerTls
from registry.cluster.informer import Informer
from registry.names import GROUP, VERSION
from registry.tenantnamespace import convert as kind
from tenant_apiserver import __version__
from tenant_apiserver.options.command_line import CommonOptions
from tenant_apiserver.options.settings_file import SettingsFile
from tenant_apiserver.wiring.cluster_admission import ClusterAdmission
from tenant_apiserver.wiring.tenant_api import TenantApi

TITLE = "Tenant API"
_IN_ORDER_SECONDS = 2.0
_READY_SECONDS = 10.0
TLS_TRANSPORTS: Final[Mapping[str, type[ServerTls]]] = {"openssl": OpenSslServerTls, "asyncio": AsyncioServerTls}
"""The implementations that `--tls-transport` selects from."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Storages of a version of a group, keyed 'resource' or 'resource/subresource', behind their admission."""

    group: str
    version: str
    storages: Mapping[str, rest.Storage]
    admission: Admission


def stages(*, delay: float = 0.0) -> ShutdownStages:
    """The end of the process, within 10 seconds in all (WIRE-I13); `delay` as in Shutdown."""
    return ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event(), delay=delay, grace=8.0 - delay)


@dataclass(frozen=True, kw_only=True)
class Process:
    """What everything in the process shares."""

    metrics: Metrics = field(default_factory=Metrics)
    health: HealthChecks = field(default_factory=HealthChecks)
    stages: ShutdownStages = field(default_factory=stages)
    stop: asyncio.Event = field(default_factory=asyncio.Event)


def build(
    process: Process,
    *,
    groups: Sequence[Group],
    authenticator: RequestAuthenticator,
    authorizer: Authorizer,
    request_headers: Callable[[], RequestHeaderConfig],
    max_requests_inflight: int,
    impersonation: bool,
    audit: AuditSink | None,
) -> web.Application:
    installed = [_install(process, group, authorizer) for group in groups]
    endpoints = endpoints_by_group_version(installed)
    filters = build_filters(
        FilterConfig(
            authenticator=authenticator,
            authorizer=authorizer,
            request_headers=request_headers,
            metrics=process.metrics,
            served=lambda info: _is_served(endpoints, info),
            max_requests_inflight=max_requests_inflight,
            impersonation=impersonation,
            audit=audit,
        )
    )
    served = [group.served() for group in installed]
    discovery, version = Discovery(served), Version(f"tenant-apiserver-{__version__}")
    openapi = OpenAPI(served, title=TITLE, version=__version__)
    health, metrics = process.health, process.metrics
    api = Api(
        endpoints=endpoints,
        responders=(health.respond, discovery.respond, openapi.respond, version.respond, metrics.respond),
        paths=lambda: sorted({*health.paths(), *discovery.paths(), *openapi.paths(), *version.paths(), "/metrics"}),
    )
    return build_app(api, filters)


def add_checks(process: Process, informers: Sequence[Informer]) -> None:
    """The checks that Kubernetes' own servers have (WIRE-I5), and whether the host can be reached."""
    health = process.health
    health.add("log", lambda: None)

    def synced() -> None:
        missing = [informer.resource.plural for informer in informers if not informer.synced.is_set()]
        if missing:
            raise RuntimeError(f"informers not synced: {', '.join(missing)}")

    def host() -> None:
        # the cache goes on serving while the host is away, so readiness does not depend on it (WIRE-I24); the log tells
        if not any(informer.synced.is_set() for informer in informers):
            raise RuntimeError("the host API has not been reached yet")

    health.add("informer-sync", synced, endpoints=READINESS)
    health.add("host", host, endpoints=READINESS)
    health.add("poststarthook/start-apiserver-admission-initializer", lambda: None)
    health.add("poststarthook/generic-apiserver-start-informers", lambda: None)
    health.add("shutdown", process.stages.readyz_check, endpoints=READINESS)


def informer_tasks(tenants: TenantApi, others: Sequence[Informer]) -> dict[str, Callable[[], Awaitable[None]]]:
    """The informers at work, by name. Tenants and namespaces are asked for when who may see them has been listed: their
    first version is then not older, and a watch that goes on from it has not begun before anything is known of its
    reader. Controllers are told of what there is once the server is ready: it is so all the sooner."""
    first = tenants.visibility.informers
    for informer in tenants.informers:
        informer.delay_late_handlers(partial(_seen, (*tenants.informers, *others), _READY_SECONDS))
    behind = [informer for informer in tenants.informers if informer not in first]
    return {
        **{_name(informer): informer.run for informer in (*first, *others)},
        **{_name(informer): partial(_run_after_listed, first, informer) for informer in behind},
    }


def _name(informer: Informer) -> str:
    return f"informer-{informer.resource.plural}"


async def _run_after_listed(first: Sequence[Informer], informer: Informer) -> None:
    """Not for ever: who may not list roles still serves its administrators."""
    await _all((each.listed for each in first), _IN_ORDER_SECONDS)
    await informer.run()


async def _seen(informers: Sequence[Informer], seconds: float) -> None:
    """Not for ever either: a kind that cannot be listed keeps no controller from the others."""
    await _all((each.synced for each in informers), seconds)


async def _all(events: Iterable[asyncio.Event], seconds: float) -> None:
    """Wait until all are set, but no longer than that."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()


def add_config_check(process: Process, config: SettingsFile) -> None:
    """A file that is wrong does not make the server unready: the settings of before hold."""

    def check() -> str:
        return f"the file is refused, the settings of before hold: {config.refused}" if config.refused else ""

    process.health.add("config", check, endpoints=READINESS)


def add_admission_checks(process: Process, admission: ClusterAdmission) -> None:
    """Never fail: what a policy that does not compile refuses is up to its failurePolicy, and readiness is not."""
    process.health.add("admission-policies", admission.policies.describe, endpoints=READINESS)
    process.health.add("admission-webhooks", admission.webhooks.describe, endpoints=READINESS)


def tenant_groups(tenants: TenantApi) -> list[Group]:
    """What this server is there for, in a cluster and on its own."""
    read_only = Chain(())
    return [
        Group(group=GROUP, version=VERSION, storages=tenants.storages, admission=tenants.admission),
        Group(group=kind.GROUP, version=kind.VERSION, storages=tenants.namespace_storages, admission=read_only),
    ]


def admission_observer(metrics: Metrics) -> DurationObserver:
    """Admission's time under Kubernetes' name for it (WIRE-I14)."""

    def observe(*, name: str, operation: str, phase: Phase, rejected: bool, seconds: float) -> None:
        metrics.observe_admission(name, phase, operation, rejected=rejected, seconds=seconds)

    return observe


def audit_log(path: Path | None, metrics: Metrics) -> AuditLog | None:
    return AuditLog(path, on_event_lost=metrics.audit_event_lost) if path is not None else None


async def listen(app: web.Application, tls: ServerTls, options: CommonOptions, process: Process) -> Listener:
    return await serving.listen(
        app,
        tls=tls,
        host=options.bind_address,
        port=options.secure_port,
        grace=process.stages.grace,
    )


async def run(
    process: Process, work: Mapping[str, Callable[[], Awaitable[None]]], opened: Callable[[], Awaitable[Listener]]
) -> None:
    """Serve, with `work` in the background, until a signal. The first part of the work to fail ends the process,
    loudly. Raises CannotListen."""
    shorten_switch_interval()
    listener = await opened()
    watched = {**work, "event-loop": EventLoopLag(process.metrics.registry).watch}
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_named(call), name=name) for name, call in watched.items()]
        await serving.serve_until_stopped(listener, process.stages, stop=process.stop)
        for task in tasks:
            task.cancel()


async def run_unless_stopped(process: Process, call: Coroutine[Any, Any, T]) -> T | None:
    """What `call` comes to, or None if the process is to end before."""
    wanted, stopped = asyncio.ensure_future(call), asyncio.ensure_future(process.stop.wait())
    try:
        await asyncio.wait((wanted, stopped), return_when=asyncio.FIRST_COMPLETED)
        return wanted.result() if wanted.done() else None
    finally:
        for task in (wanted, stopped):
            task.cancel()
        await asyncio.wait((wanted, stopped))


async def _named(call: Callable[[], Awaitable[None]]) -> None:
    await call()


def _install(process: Process, group: Group, authorizer: Authorizer) -> ApiGroupVersion:
    return install(
        group=group.group,
        version=group.version,
        storages=group.storages,
        admission=group.admission,
        authorizer=authorizer,
        metrics=process.metrics,
        shutdown=process.stages.shutdown,
    )


def _is_served(endpoints: Mapping[tuple[str, str], Mapping[str, object]], info: RequestInfo) -> bool:
    name = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    return name in endpoints.get((info.group, info.version), {})
