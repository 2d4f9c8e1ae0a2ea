"""A model of what kube-apiserver and the quota controller do with the ResourceQuotas of a namespace, with all that goes
wrong between them (kubernetes#123434).

kube-apiserver (plugin ResourceQuota, `checkQuotas`) counts a Pod in one ResourceQuota after the other, if it fits all
of them, and stores it then. The quota controller (`syncResourceQuota`) counts anew when `spec.hard` has changed, from a
cache that lags behind, and writes over what was counted. Its writes and those of kube-apiserver exclude each other by
resourceVersion, so that each is atomic for one ResourceQuota.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict

from apiserver.meta.resource import Object
from apiserver.patch.media_types import MERGE_PATCH
from registry.cluster.interface import RESOURCEQUOTAS
from tests.fake_cluster import FakeCluster

_BETWEEN_QUOTAS = 0.2
"""The most seconds between two updates of one request."""


class ForgetfulKubernetes:
    """Counts Pods. `admitted` are the Pods of each namespace that were created or are still to be stored."""

    def __init__(self, cluster: FakeCluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self.admitted: Counter[str] = Counter()
        self._stored: Counter[str] = Counter()
        self._cached: Counter[str] = Counter()
        self._counted: dict[str, dict[str, Object]] = defaultdict(dict)

    @property
    def namespaces(self) -> list[str]:
        return sorted({each["metadata"]["namespace"] for each in self._cluster.peek_all(RESOURCEQUOTAS)})

    async def create_pod(self, namespace: str) -> bool:
        """Returns False if a quota does not admit it. The Pod is stored later."""
        quotas = [each for each in self._quotas(namespace) if "pods" in (each.get("status") or {}).get("hard", {})]
        if not all(_has_room(each) for each in quotas):
            return False
        names = [each["metadata"]["name"] for each in quotas]
        self._chance.shuffle(names)
        for number, name in enumerate(names):
            if number:
                await asyncio.sleep(self._chance.random() * _BETWEEN_QUOTAS)
            quota = self._cluster.peek(RESOURCEQUOTAS, namespace, name)
            if quota is None:
                continue
            if not _has_room(quota):
                # what the others have counted stays counted
                return False
            await self._write(quota, quota["status"]["hard"], int(quota["status"]["used"]["pods"]) + 1)
        self.admitted[namespace] += 1
        return True

    def store_some(self, namespace: str) -> None:
        """Some of the Pods that were admitted are stored now, and the quota controller's cache sees some of these."""
        for later, earlier in ((self._stored, self.admitted), (self._cached, self._stored)):
            later[namespace] += self._chance.randint(0, earlier[namespace] - later[namespace])

    def store_all(self) -> None:
        self._stored, self._cached = self.admitted.copy(), self.admitted.copy()

    async def count_changed(self, namespace: str) -> None:
        """The quota controller counts for the ResourceQuotas whose limits have changed."""
        for quota in self._quotas(namespace):
            hard = quota["spec"].get("hard") or {}
            if self._counted[namespace].get(quota["metadata"]["name"]) != hard:
                self._counted[namespace][quota["metadata"]["name"]] = hard
                await self._write(quota, hard, self._cached[namespace])

    async def count_all(self) -> None:
        """The quota controller counts for all ResourceQuotas, as it does every five minutes. Nothing may be on its way,
        because this forgets it whatever we do."""
        self.store_all()
        for each in self._cluster.peek_all(RESOURCEQUOTAS):
            await self._write(each, each["spec"].get("hard") or {}, self._cached[each["metadata"]["namespace"]])

    def _quotas(self, namespace: str) -> list[Object]:
        return [each for each in self._cluster.peek_all(RESOURCEQUOTAS) if each["metadata"]["namespace"] == namespace]

    async def _write(self, quota: Object, hard: Object, used: int) -> None:
        namespace, name = quota["metadata"]["namespace"], quota["metadata"]["name"]
        status = {"status": {"hard": hard, "used": {"pods": str(used)}}}
        await self._cluster.patch(
            RESOURCEQUOTAS, namespace, name, status, content_type=MERGE_PATCH, subresource="status"
        )


def _has_room(quota: Object) -> bool:
    status = quota["status"]
    return int(status["used"]["pods"]) < int(status["hard"]["pods"])
