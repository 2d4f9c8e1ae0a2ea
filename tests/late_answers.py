"""A cluster whose answers to writes can arrive after the watch events of the writes, and of later changes by others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import ClusterResource
from tests.fake_cluster import CallHook, FakeCluster


@dataclass(repr=False)
class ClusterWithLateAnswers(FakeCluster):
    """`before_answer` is awaited once each accepted write of an object is stored. It may write, too."""

    before_answer: CallHook | None = None

    async def create(self, res: ClusterResource, obj: Object, **options: Any) -> Object:
        return await self._answer("create", res, await super().create(res, obj, **options))

    async def update(self, res: ClusterResource, obj: Object, **options: Any) -> Object:
        return await self._answer("update", res, await super().update(res, obj, **options))

    async def patch(self, res: ClusterResource, namespace: str, name: str, body: Any, **options: Any) -> Object:
        return await self._answer("patch", res, await super().patch(res, namespace, name, body, **options))

    async def _answer(self, verb: str, res: ClusterResource, stored: Object) -> Object:
        if self.before_answer is not None:
            metadata = stored["metadata"]
            await self.before_answer(verb, res, Key(metadata.get("namespace", ""), metadata["name"]))
        return stored
