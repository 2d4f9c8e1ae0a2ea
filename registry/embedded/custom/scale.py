"""The subresource `scale` of custom resources: the replicas of an object as an autoscaling/v1 Scale."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from apiserver import rest
from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.meta import errors
from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext
from registry.embedded.custom.definition import ScalePaths
from registry.embedded.custom.validation import value_at
from registry.generic.store import Store

_REPLICAS = {"type": "integer", "format": "int32"}
SCALE = Resource(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    singular="scale",
    namespaced=True,
    description="Scale is the number of replicas of an object.",
    properties={
        "spec": {"type": "object", "properties": {"replicas": _REPLICAS}},
        "status": {"type": "object", "properties": {"replicas": _REPLICAS, "selector": {"type": "string"}}},
    },
)
CLUSTER_SCALE = Resource(**{**SCALE.__dict__, "namespaced": False})
"""The Scale of cluster-scoped objects."""
_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScaleStorage(rest.Getter, rest.Updater):
    def __init__(self, store: Store, paths: ScalePaths) -> None:
        self._store = store
        self._paths = paths
        self._resource = SCALE if store.resource.namespaced else CLUSTER_SCALE

    @property
    def resource(self) -> Resource:
        return self._resource

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        """Raises InternalError for an object without replicas."""
        obj = (await self._store.get(context, key, at_least=at_least)).object()
        if value_at(obj, self._paths.spec_replicas) is None:
            raise errors.InternalError(f'the spec replicas field "{self._paths.spec_replicas}" does not exist')
        return encode(self._resource, self._scale(obj))

    async def update(
        self,
        context: RequestContext,
        key: Key,
        change: rest.UpdateFunc,
        validate: rest.ValidateFunc,
        *,
        dry_run: bool,
        validate_create: rest.ValidateFunc | None = None,
    ) -> tuple[Object, bool]:
        async def change_replicas(current: Object | None) -> Object:
            assert current is not None
            return self._with_replicas(current, await change(self._scale(current)))

        @asynccontextmanager
        async def validate_scale(new: Object | None, old: Object | None) -> AsyncIterator[None]:
            scales = [None if each is None else self._scale(each) for each in (new, old)]
            async with validate(*scales):
                yield

        stored, _ = await self._store.update(context, key, change_replicas, validate_scale, dry_run=dry_run)
        return self._scale(stored), False

    def _scale(self, obj: Object) -> Object:
        metadata = {name: obj["metadata"][name] for name in _IDENTITY if name in obj["metadata"]}
        status: dict[str, Any] = {"replicas": value_at(obj, self._paths.status_replicas) or 0}
        if self._paths.label_selector and (selector := value_at(obj, self._paths.label_selector)):
            status["selector"] = selector
        return {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": metadata,
            "spec": {"replicas": value_at(obj, self._paths.spec_replicas) or 0},
            "status": status,
        }

    def _with_replicas(self, obj: Object, scale: Object) -> Object:
        """Sets the replicas, and the resourceVersion that the client requires. Raises Invalid and BadRequest."""
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise errors.BadRequest("spec.replicas must be an integer")
        if replicas < 0:
            problem = errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise errors.Invalid(self._resource.group_kind, obj["metadata"]["name"], [problem])
        *parents, last = self._paths.spec_replicas.removeprefix(".").split(".")
        inside = obj
        for name in parents:
            inside = inside.setdefault(name, {})
        inside[last] = replicas
        if version := scale["metadata"].get("resourceVersion"):
            obj["metadata"]["resourceVersion"] = version
        return obj
