"""Logs the start of `serve`: what it is and listens on, when it became ready with how many objects, and what the
cluster lacks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.storage.watch_cache import WatchCache
from registry.cluster.informer import Informer
from registry.cluster.informer_factory import InformerFactory
from tenant_apiserver import __version__
from tenant_apiserver.process import Process
from tenant_apiserver.unsynced import is_lacking, unsynced

_logger = logging.getLogger("tenant_apiserver")
_POLL_SECONDS = 0.1
# a process that is not ready for hours does not run its checks ten times a second
_LATE_POLL_SECONDS = 1.0
# the informers retry for ever, so an operator must hear of what is missing
_SLOW_SECONDS = 15.0
_PROVIDERS: Final[Mapping[str, str]] = {
    "helm.toolkit.fluxcd.io": "Flux's helm-controller",
    "gateway.networking.k8s.io": "the CRDs of Gateway API",
    "cert-manager.io": "cert-manager",
    "cilium.io": "Cilium",
    "gateway.cozystack.io": "manifests/overlays/prerequisites",
    "cozystack.io": "Cozystack",
}
"""The software that serves a group of another project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartLog:
    """`command` is the subcommand that runs, `controllers` the names of those that it was told to run, `informers` all
    that readiness waits for, and `optional` those of kinds that the cluster may lack."""

    command: str
    address: str
    port: int
    controllers: Sequence[str]
    process: Process
    informers: Sequence[Informer]
    caches: Sequence[WatchCache]
    optional: InformerFactory
    applications: Callable[[], str] = str
    """Returns how many kinds of applications are served; empty if there are none."""

    async def run(self) -> None:
        """Returns when the process is ready."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        _logger.info(
            "tenant-apiserver %s %s listens on https://%s:%d, controllers: %s",
            __version__,
            self.command,
            host,
            self.port,
            ", ".join(self.controllers) or "none",
        )
        await self._wait_until_ready()
        seconds = time.monotonic() - self.process.created
        sizes = object_counts(self.caches, self.informers)
        text = ", ".join(f"{count} {name}" for name, count in sizes.items())
        _logger.info("ready after %.1f s with %s", seconds, ", ".join(filter(None, (text, self.applications()))))
        if self.controllers:
            await self.optional.wait_until_checked()
            if missing := missing_kinds(self.optional.missing):
                _logger.info("the cluster lacks optional kinds: %s", missing)

    async def _wait_until_ready(self) -> None:
        clock = asyncio.get_running_loop().time
        warn_at, poll = clock() + _SLOW_SECONDS, _POLL_SECONDS
        while failing := await self.process.health.failing("readyz"):
            if clock() >= warn_at:
                warn_at, poll = float("inf"), _LATE_POLL_SECONDS
                _logger.warning("not ready after %.0f s: %s%s", _SLOW_SECONDS, "; ".join(failing), self._advice())
            await asyncio.sleep(poll)

    def _advice(self) -> str:
        waiting = unsynced(self.informers)
        if providers := _providers([each for each in waiting if is_lacking(each)]):
            return f". Install {providers}"
        providers = _providers(waiting)
        return f". If its kinds are missing, install {providers}" if providers else ""


def _providers(informers: Sequence[Informer]) -> str:
    """The software to install for the kinds of these informers, as far as it is known."""
    groups = {each.resource.group for each in informers}
    return " and ".join(sorted(_PROVIDERS[group] for group in groups if group in _PROVIDERS))


def object_counts(caches: Sequence[WatchCache], informers: Sequence[Informer]) -> dict[str, int]:
    """Number of objects by plural: of the caches that the API serves from, then of the informers that store theirs."""
    counts = {cache.resource.plural: len(cache) for cache in caches}
    for informer in informers:
        if not informer.field_selector and len(informer.store):
            counts.setdefault(informer.resource.plural, len(informer.store))
    return counts


def missing_kinds(names: Sequence[str]) -> str:
    """`names`, such as certificates.cert-manager.io, with what to install for each group."""
    by_provider: dict[str, list[str]] = {}
    for name in sorted(names):
        provider = _PROVIDERS.get(name.partition(".")[2], "")
        by_provider.setdefault(provider, []).append(name)
    return "; ".join(
        ", ".join(plurals) + (f" (install {provider} to use them)" if provider else "")
        for provider, plurals in by_provider.items()
    )
