"""Imitates the quota controller and kube-apiserver's plugin ResourceQuota in the fake cluster."""

from __future__ import annotations

from apiserver.meta.resource import Object
from apiserver.patch.media_types import MERGE_PATCH
from registry import quantity
from registry.cluster.interface import RESOURCEQUOTAS
from registry.tenant.pool_quotas import POOL_NAME, shares_of
from registry.tenant.quota_keys import NANO
from tests.controller.tenant.tenant_world import World


class QuotaController:
    """Objects are counted as Pods, in whole numbers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._used: dict[str, int] = {}

    async def sync(self, namespace: str = "") -> None:
        """Puts the written limits of a namespace, or of all of them, into effect."""
        for quota in self._quotas(namespace):
            await self._write_status(quota, quota["spec"].get("hard") or {})

    async def use(self, namespace: str, pods: int) -> bool:
        """Creates Pods; returns False if a quota of the namespace does not admit them."""
        quotas = [each for each in self._quotas(namespace) if "pods" in (each.get("status") or {}).get("hard", {})]
        used = self._used.get(namespace, 0) + pods
        if any(used > quantity.parse(each["status"]["hard"]["pods"]) for each in quotas):
            return False
        await self.set_used(namespace, used)
        return True

    async def set_used(self, namespace: str, pods: int) -> None:
        self._used[namespace] = pods
        for quota in self._quotas(namespace):
            await self._write_status(quota, (quota.get("status") or {}).get("hard") or {})

    def may_be_used(self) -> int:
        """The Pods that all namespaces together have, or may have as soon as what was written takes effect."""
        pools = [shares_of(each) for each in self._quotas() if each["metadata"]["name"] == POOL_NAME]
        return sum(each["pods"].ceiling for each in pools if "pods" in each) // NANO

    def hard(self, namespace: str, name: str = POOL_NAME) -> Object:
        hard: Object = self._world.content(RESOURCEQUOTAS, namespace, name)["spec"]["hard"]
        return hard

    def _quotas(self, namespace: str = "") -> list[Object]:
        found = self._world.cluster.peek_all(RESOURCEQUOTAS)
        return [each for each in found if namespace in ("", each["metadata"]["namespace"])]

    async def _write_status(self, quota: Object, hard: Object) -> None:
        metadata = quota["metadata"]
        used = {key: str(self._used.get(metadata["namespace"], 0)) if key == "pods" else "0" for key in hard}
        await self._world.cluster.patch(
            RESOURCEQUOTAS,
            metadata["namespace"],
            metadata["name"],
            {"status": {"hard": hard, "used": used}},
            content_type=MERGE_PATCH,
            subresource="status",
        )
