"""The servers of a comparison, side by side on one kube-apiserver, with the same objects in each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from apiserver.meta.resource import Object
from benchmarks import load, objects
from benchmarks.client import Connection, UnexpectedStatus
from benchmarks.kinds import TENANT, ComparedKind, application_kind
from benchmarks.progress import Progress
from benchmarks.targets import custom_resource
from benchmarks.targets.cozystack_api import DEFINITIONS, CozystackApi
from benchmarks.targets.external_server import ExternalServer
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.processes import wait_until
from benchmarks.targets.sides import MERGE_PATCH, Restart, Side
from benchmarks.targets.standalone import StandaloneTarget

DIRECT, AGGREGATED, CUSTOM, AGAINST = "direct", "aggregated", "custom", "against"
_CLIENTS = 16
_TIMEOUT_SECONDS = 3600.0
_POLL_SECONDS = 1.0
# written by helm-controller only
_FLUX_CONDITION = "Released"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class ServerComparison:
    """`sides` are measured in this order; all others are compared with the first."""

    def __init__(
        self, target: KubeTarget | StandaloneTarget, sample: Object, kind: ComparedKind, *, reconciled: bool
    ) -> None:
        self._target = target
        self._kind = kind
        self._sample = sample
        self._by_controllers = reconciled
        self.title = target.title
        self.sides: list[Side] = []
        self._waits: list[Callable[[], Awaitable[None]]] = [target.ready]

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        directory: Path,
        *,
        cluster: AbstractAsyncContextManager[KubeTarget | StandaloneTarget],
        chosen: Sequence[str],
        external: ExternalServer | None,
        peer: CozystackApi | None,
        reconciled: bool,
        applications: Object | None = None,
    ) -> AsyncIterator[ServerComparison]:
        """`chosen` are sides of our own. Unless `reconciled`, the controllers of `cluster` do not reconcile the created
        objects. `applications` is the ApplicationDefinition of the objects, instead of Tenants. Raises ValueError for a
        side that the target does not have."""
        async with AsyncExitStack() as stack:
            target = await stack.enter_async_context(cluster)
            kind = TENANT if applications is None else await _define(target, applications)
            await target.grant(custom_resource.rule(), kind.rule)
            comparison = cls(target, await _sample(target, kind, reconciled=reconciled), kind, reconciled=reconciled)
            for name in chosen:
                comparison.sides.append(await comparison._build_own_side(name))
            if external is not None:
                comparison.sides.append(await external.side(comparison._sample))
            if peer is not None and isinstance(target, KubeTarget):
                comparison.sides.append(await stack.enter_async_context(peer.running(target, directory, kind)))
            yield comparison

    async def seed(self, existing: int, total: int) -> None:
        """Creates the objects numbered `existing` to `total` in every server, and waits until ours are reconciled."""
        numbers = range(existing, total)
        # the first object exists already: it is the sample
        await load.parallel(
            self._target.cluster_user,
            self._kind.seed,
            range(max(1, existing), total),
            clients=_CLIENTS,
            progress="objects of our server",
        )
        for side in self.sides:
            if side.title in (CUSTOM, AGAINST):
                make = partial(self._make, side=side)
                await load.parallel(side.user, make, numbers, clients=_CLIENTS, progress=f"objects of {side.title}")
        progress = Progress("objects reconciled", total)
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while True:
                started_at = time.monotonic()
                reconciled = await self._reconciled()
                progress.reach(reconciled)
                if reconciled >= total:
                    return
                # listing all objects takes processor time from the controllers
                await asyncio.sleep(max(_POLL_SECONDS, 4 * (time.monotonic() - started_at)))

    async def ready(self) -> None:
        """Waits until all servers that were restarted are ready again."""
        for wait in self._waits:
            await wait()

    async def _reconciled(self) -> int:
        items = (await self._target.user.call("GET", self._kind.collection))["items"]
        return sum(is_reconciled(each, by_controllers=self._by_controllers) for each in items)

    async def _build_own_side(self, name: str) -> Side:
        target = self._target
        if name == DIRECT:
            return self._direct(target)
        if not isinstance(target, KubeTarget):
            raise ValueError(f"the embedded cluster has no side {name!r}")
        return await (self._aggregated(target) if name == AGGREGATED else self._custom(target))

    def _direct(self, target: KubeTarget | StandaloneTarget) -> Side:
        async def stop() -> None:
            await target.server.stop()

        async def start() -> None:
            await target.start()
            await target.ready()

        return Side(
            title=DIRECT,
            user=target.user,
            collection=self._kind.collection,
            make=self._kind.make,
            prefix="x",
            serving=lambda: {"serve" if isinstance(target, KubeTarget) else "standalone": target.server},
            dependencies=lambda: target.cluster_processes if isinstance(target, KubeTarget) else {},
            restart=Restart(stop=stop, start=start),
        )

    async def _aggregated(self, target: KubeTarget) -> Side:
        await target.aggregate()
        self._waits.append(target.aggregated)
        return Side(
            title=AGGREGATED,
            user=target.cluster_user,
            collection=self._kind.collection,
            make=self._kind.make,
            prefix="y",
            serving=lambda: {"serve": target.server, "kube-apiserver": target.cluster_processes["kube-apiserver"]},
            dependencies=lambda: {"etcd": target.cluster_processes["etcd"]},
        )

    async def _custom(self, target: KubeTarget) -> Side:
        definition = custom_resource.definition()
        await target.admin.call("POST", _CRDS, definition)

        async def served() -> bool:
            try:
                await target.cluster_user.call("GET", custom_resource.collection())
            except UnexpectedStatus:
                return False
            return True

        await wait_until("the custom resource", served, seconds=60, child=target.cluster_processes["kube-apiserver"])
        return Side(
            title=CUSTOM,
            user=target.cluster_user,
            collection=custom_resource.collection(),
            make=self._custom_object,
            prefix="z",
            serving=lambda: {"kube-apiserver": target.cluster_processes["kube-apiserver"]},
            dependencies=lambda: {"etcd": target.cluster_processes["etcd"]},
            restart=Restart(stop=target.stop_apiserver, start=target.start_apiserver),
        )

    def _custom_object(self, name: str) -> Object:
        api_version = f"{custom_resource.GROUP}/{custom_resource.VERSION}"
        return custom_resource.as_sent(custom_resource.renamed(self._sample, name), api_version, self._sample["kind"])

    async def _make(self, connection: Connection, number: int, *, side: Side) -> None:
        name = objects.name("b", number)
        path, status = f"{side.collection}/{name}", custom_resource.renamed(self._sample, name)["status"]
        await connection.call("POST", side.collection, side.make(name))
        try:
            await connection.call("PATCH", f"{path}/status", {"status": status}, content_type=MERGE_PATCH)
        except UnexpectedStatus as error:
            # some servers do not let a user write the status
            if error.status not in (403, 404, 405):
                raise
        await connection.call("PATCH", path, custom_resource.NO_MANAGED_FIELDS, content_type=MERGE_PATCH)


def is_reconciled(tenant: Object, *, by_controllers: bool) -> bool:
    """Reports whether Flux has written its conditions, and with `by_controllers` whether ours have seen the spec: until
    then observedGeneration is -1."""
    status = tenant.get("status", {})
    by_flux = any(each["type"] == _FLUX_CONDITION for each in status.get("conditions", ()))
    return by_flux and (not by_controllers or status.get("observedGeneration", -1) >= tenant["metadata"]["generation"])


async def _define(target: KubeTarget | StandaloneTarget, definition: Object) -> ComparedKind:
    return application_kind(await target.admin.call("POST", DEFINITIONS, definition))


async def _sample(target: KubeTarget | StandaloneTarget, kind: ComparedKind, *, reconciled: bool) -> Object:
    """Creates the first of the seeded objects and returns it as we serve it, reconciled."""
    name = objects.name("b", 0)
    await load.parallel(target.cluster_user, kind.seed, range(1), clients=1)
    found: dict[str, Object] = {}

    async def is_complete() -> bool:
        try:
            found[name] = await target.user.call("GET", f"{kind.collection}/{name}")
        except UnexpectedStatus:
            return False
        return is_reconciled(found[name], by_controllers=reconciled)

    await wait_until("the first object", is_complete, seconds=60, child=target.server)
    return found[name]
