"""The objects that we manage in Tenants' Namespaces: a digest of each, and the writer that creates and updates them.

The digest suffices to decide that nothing has to be written. An object is read from the cluster only if it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter, Renderer, missing_fields
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import (
    ChartMode,
    ObjectManager,
    chart_conflict,
    object_manager,
    with_manager_labels,
)
from registry.cluster.event_handlers import ProjectionByNamespace
from registry.cluster.interface import ClusterClient, ClusterResource, is_terminating
from registry.cluster.object_store import key_of

_MANAGERS: Final = tuple(ObjectManager)


class ObjectDigest(NamedTuple):
    """`digest` is equal for objects that normalize to the same value, within one process."""

    manager: ObjectManager
    digest: int

    @property
    def packed(self) -> int:
        """The digest as one integer. There are nine of them for each Tenant, and the garbage collector skips
        integers."""
        return self.digest * len(_MANAGERS) + _MANAGERS.index(self.manager)

    @classmethod
    def unpack(cls, packed: int) -> ObjectDigest:
        digest, manager = divmod(packed, len(_MANAGERS))
        return cls(_MANAGERS[manager], digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedKind:
    """A kind of object that we manage in Tenants' Namespaces.

    `normalize` returns the fields that we decide on, as JSON that is equal for equivalent objects: defaults filled in,
    quantities as numbers. `selects` returns whether we manage the object of this namespace and name.
    `must_be_replaced` returns whether kube-apiserver forbids updating the current object to the desired one.
    """

    resource: ClusterResource
    normalize: Callable[[Object], object]
    selects: Callable[[str, str], bool]
    must_be_replaced: Callable[[Object, Object], bool] = lambda current, desired: False

    def digest_of(self, obj: Object) -> ObjectDigest:
        return ObjectDigest(object_manager(obj), self.digest(obj))

    def digest(self, obj: Object) -> int:
        return hash(orjson.dumps(self.normalize(obj), option=orjson.OPT_SORT_KEYS))


class ObjectDigests(ProjectionByNamespace[int]):
    """A handler of an informer that stores digests, not objects: ten thousand Tenants have ninety thousand objects.

    `on_change` is called with the key of an object whose digest has changed.
    """

    def __init__(self, kind: ManagedKind, *, on_change: Callable[[Key], None]) -> None:
        super().__init__(self._packed_digest, on_change=on_change)
        self.kind = kind

    def get(self, namespace: str, name: str) -> ObjectDigest | None:
        packed = self.values(namespace).get(name)
        return None if packed is None else ObjectDigest.unpack(packed)

    def names(self, namespace: str) -> Sequence[str]:
        return tuple(self.values(namespace))

    def record_written(self, obj: Object) -> None:
        """Record the result of our own write: its event then changes no digest and enqueues nothing."""
        self.put(key_of(obj), self.kind.digest_of(obj).packed)

    def record_deleted(self, namespace: str, name: str) -> None:
        self.put(Key(namespace, name), None)

    def _packed_digest(self, obj: Object) -> int | None:
        return self.kind.digest_of(obj).packed if self.kind.selects(*key_of(obj)) else None


class _AnyOwner:
    """Permits writes to every object: in a Tenant's own Namespace, the names are reserved for us."""

    def refusal(self, current: Object) -> str:
        return ""


class ContentWriter:
    """Every method raises the cluster's StatusError, and NotLeading. `chart` returns the current setting."""

    def __init__(self, *, writer: ClusterWriter, cluster: ClusterClient, chart: Callable[[], ChartMode]) -> None:
        self._writer = writer
        self._cluster = cluster
        self._chart = chart

    async def ensure(self, digests: ObjectDigests, render: Renderer, release: Key | None) -> Sequence[Finding]:
        """Create or update the object that `render` returns. A differing object that Helm manages is reported
        and not overwritten.

        `release` is the Helm release that the object is part of, None if no chart of a Tenant creates it.
        """
        desired = render(None)
        metadata = desired["metadata"]
        known, digest = digests.get(metadata["namespace"], metadata["name"]), digests.kind.digest(desired)
        if known is not None and known.digest == digest and not self._should_hand_over(known.manager, release):
            return []
        current = None if known is None else await self._read(digests, metadata["namespace"], metadata["name"])
        if (
            current is not None
            and object_manager(current) is not ObjectManager.HELM
            and digests.kind.must_be_replaced(current, desired)
        ):
            await self._writer.delete(digests.kind.resource, current)
            current = None
        written = await self._writer.ensure(
            digests.kind.resource,
            lambda stored: self._render(render, stored, release),
            observed=current,
            owner=_AnyOwner(),
        )
        digests.record_written(written)
        if object_manager(written) is ObjectManager.HELM and digests.kind.digest(written) != digest:
            return [chart_conflict(_quoted(digests.kind.resource, metadata["name"]))]
        return []

    async def remove(self, digests: ObjectDigests, namespace: str, name: str) -> Sequence[Finding]:
        """Delete an object that we created. An object that Helm manages is reported; any other is ignored."""
        known = digests.get(namespace, name)
        if known is None or known.manager is ObjectManager.OTHER:
            return []
        if known.manager is ObjectManager.HELM:
            return [chart_conflict(_quoted(digests.kind.resource, name))]
        current = await self._read(digests, namespace, name)
        if current is None or object_manager(current) is not ObjectManager.OURS or is_terminating(current):
            return []
        await self._writer.delete(digests.kind.resource, current)
        digests.record_deleted(namespace, name)
        return []

    def _render(self, render: Renderer, current: Object | None, release: Key | None) -> Object:
        desired = render(current)
        manager = object_manager(current) if current is not None else None
        if current is not None and manager is ObjectManager.HELM:
            return missing_fields(desired, current)
        if manager is None or self._should_hand_over(manager, release):
            return with_manager_labels(desired, release if self._chart() == "flux" else None)
        return desired

    def _should_hand_over(self, manager: ObjectManager, release: Key | None) -> bool:
        """True if we created the object, and it has to become part of a Helm release."""
        return manager is ObjectManager.OURS and release is not None and self._chart() == "flux"

    async def _read(self, digests: ObjectDigests, namespace: str, name: str) -> Object | None:
        try:
            return await self._cluster.get(digests.kind.resource, namespace, name)
        except StatusError as e:
            if e.reason != "NotFound":
                raise
            digests.record_deleted(namespace, name)
            return None


def _quoted(resource: ClusterResource, name: str) -> str:
    return f'the {resource.kind} "{name}"'
