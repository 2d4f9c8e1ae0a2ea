"""Compares the kinds that the settings name with those that the cluster serves: a kind that is not served as it is
written is never answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Object
from registry.cluster.interface import ServedResource
from tenant_apiserver.options.proxy_settings import ProxySettings
from tenant_apiserver.proxy.own_account import MALFORMED
from tenant_apiserver.wiring.policies import DiscoverableCluster

_RETRY_SECONDS, _SECONDS = 5.0, 60.0
_NAMESPACED, _CLUSTER, _SELECTED = "namespacedKinds", "clusterKinds", "selectedKinds"
_ELSEWHERE: Final = {
    _NAMESPACED: "is cluster-scoped: name it in clusterKinds",
    _CLUSTER: "is namespaced: name it in namespacedKinds",
    _SELECTED: "is namespaced, and selectedKinds are cluster-scoped",
}
_logger = logging.getLogger("tenant_apiserver")

Scopes = Mapping[GroupResource, bool]
"""True for namespaced kinds."""


@dataclass(frozen=True, slots=True)
class KindFinding:
    """A kind of the settings that is not served as it is written. Without `is_wrong` it may come later."""

    text: str
    is_wrong: bool


class ConfiguredKinds:
    """The caller runs `follow`."""

    def __init__(self, cluster: DiscoverableCluster, settings: ProxySettings) -> None:
        self._cluster = cluster
        self._kinds = tuple(_named(settings))
        self._findings: Sequence[KindFinding] = ()
        self._served: Collection[ServedResource] = frozenset()
        self._unknown = set[str]()
        self._malformed = set[str]()

    def describe(self) -> str:
        """The note of a health check."""
        return "; ".join(each.text for each in self._findings)

    def is_served(self, group: str, version: str, plural: str) -> bool:
        """True for a kind of the settings, in a version that the cluster had when it was last asked."""
        return (group, version, plural) in self._served

    async def follow(self) -> None:
        """Asks until the cluster serves all kinds as they are written. Each finding is logged once."""
        logged = set[KindFinding]()
        while self._kinds:
            try:
                self._findings = await self._compare()
            except StatusError:
                # that it cannot be reached is told by others
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            except MALFORMED:
                self._log_malformed("apis")
                await asyncio.sleep(_SECONDS)
                continue
            for each in self._findings:
                if each not in logged:
                    logged.add(each)
                    _logger.log(logging.WARNING if each.is_wrong else logging.INFO, "--config: %s", each.text)
            if not self._findings and not self._unknown:
                return
            await asyncio.sleep(_SECONDS)

    async def _compare(self) -> Sequence[KindFinding]:
        """No findings for a cluster without aggregated discovery. Raises StatusError."""
        served = await self._cluster.served_resources()
        if served is None:
            return ()
        named = {kind for _, kind in self._kinds}
        self._served = frozenset(each for each in served if GroupResource(each[0], each[2]) in named)
        return compare_kinds(self._kinds, served, await self._scopes(served))

    async def _scopes(self, served: Collection[ServedResource]) -> Scopes:
        self._unknown.clear()
        named = {kind for _, kind in self._kinds}
        versions = sorted(
            {(group, version) for group, version, plural in served if GroupResource(group, plural) in named}
        )
        scopes: dict[GroupResource, bool] = {}
        for group, version in versions:
            api_version = f"{group}/{version}" if group else version
            document = await self._cluster.discover(api_version)
            try:
                scopes |= _scopes_of(group, document)
            except MALFORMED:
                # an aggregated API server may answer anything
                self._unknown.add(api_version)
                self._log_malformed(api_version)
        return scopes

    def _log_malformed(self, what: str) -> None:
        if what not in self._malformed:
            self._malformed.add(what)
            _logger.warning("--config: the cluster's discovery of %s is malformed: its kinds are not compared", what)


def _scopes_of(group: str, document: Object) -> Scopes:
    """Raises one of MALFORMED."""
    return {
        GroupResource(group, str(each["name"])): bool(each.get("namespaced"))
        for each in document.get("resources") or ()
    }


def _named(settings: ProxySettings) -> Iterator[tuple[str, GroupResource]]:
    """Each kind with the key that names it."""
    for key, kinds in ((_NAMESPACED, settings.namespaced_kinds), (_CLUSTER, settings.cluster_kinds)):
        yield from ((key, kind) for kind in kinds)
    yield from dict.fromkeys((_SELECTED, each.kind) for each in settings.selected)


def compare_kinds(
    named: Iterable[tuple[str, GroupResource]], served: Collection[ServedResource], scopes: Scopes
) -> Sequence[KindFinding]:
    """A finding for each kind that is not served in the scope that its key has, in order."""
    kinds = {GroupResource(group, plural) for group, _, plural in served}
    found: list[KindFinding] = []
    for key, kind in named:
        if kind not in kinds:
            found.append(_missing(key, kind, kinds))
        elif scopes.get(kind, key == _NAMESPACED) != (key == _NAMESPACED):
            found.append(KindFinding(f"{key}: {kind} {_ELSEWHERE[key]}", is_wrong=True))
    return found


def _missing(key: str, kind: GroupResource, served: Collection[GroupResource]) -> KindFinding:
    """CustomResourceDefinitions and most aggregated servers have a dot in their groups: such a kind may come later."""
    spelled = _spellings(kind.resource)
    same = sorted(str(each) for each in served if each.group == kind.group and each.resource in spelled)
    others = sorted(str(each) for each in served if each.resource in spelled)
    hint = f"; did you mean {' or '.join((same or others)[:3])}?" if same or others else ""
    where = f"the group {kind.group}" if kind.group else "the core group"
    text = f"{key}: the cluster has no {kind.resource} in {where}{hint}"
    return KindFinding(text, is_wrong=bool(same) or "." not in kind.group)


def _spellings(name: str) -> frozenset[str]:
    """The plurals that somebody may have meant who wrote a kind or a singular."""
    lower = name.lower()
    return frozenset({lower, f"{lower}s", f"{lower}es", f"{lower.removesuffix('y')}ies"})
