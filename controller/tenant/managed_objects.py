"""What Tenants' Namespaces hold of our kinds: a mark an object, and how an object comes to be as wanted.

A mark tells all that has to be known to write nothing. Only an object that is not as wanted is read, from the host.
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
    """`digest` is equal for objects with the same essence, in one process."""

    manager: ObjectManager
    digest: int

    @property
    def packed(self) -> int:
        """The mark as a number: there are nine for each Tenant, and the garbage collector passes numbers by."""
        return self.digest * len(_MANAGERS) + _MANAGERS.index(self.manager)

    @classmethod
    def unpack(cls, packed: int) -> ObjectDigest:
        digest, manager = divmod(packed, len(_MANAGERS))
        return cls(_MANAGERS[manager], digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedKind:
    """A kind of object that a Tenant's Namespace holds.

    `essence` gives what of an object is decided here, as JSON that is the same for what the host takes as the same:
    defaults filled in, quantities as numbers. `belongs` tells by namespace and name which objects are looked at.
    `must_be_replaced` tells, of an object and the wanted one, whether the host forbids to make the one the other.
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
    """A handler of an informer, and the index that it keeps: ten thousand Tenants have ninety thousand objects.

    `concern` is told the Namespace of an object that is not as it was known to be.
    """

    def __init__(self, kind: ManagedKind, *, concern: Callable[[str], None]) -> None:
        super().__init__(self._mark, on_change=concern)
        self.kind = kind

    def get(self, namespace: str, name: str) -> ObjectDigest | None:
        packed = self.values(namespace).get(name)
        return None if packed is None else ObjectDigest.unpack(packed)

    def names(self, namespace: str) -> Sequence[str]:
        return tuple(self.values(namespace))

    def record_written(self, obj: Object) -> None:
        """What a write of ours came to: the event that tells the same is no news then."""
        self.put(key_of(obj), self.kind.digest_of(obj).packed)

    def record_deleted(self, namespace: str, name: str) -> None:
        self.put(Key(namespace, name), None)

    def _mark(self, obj: Object) -> int | None:
        return self.kind.digest_of(obj).packed if self.kind.selects(*key_of(obj)) else None


class _NobodysElse:
    """The names in a Tenant's own Namespace are ours to use."""

    def refusal(self, current: Object) -> str:
        return ""


class ContentWriter:
    """Every method raises the host's StatusError, NotLeading. `chart` is the setting at present."""

    def __init__(self, *, writer: ClusterWriter, cluster: ClusterClient, chart: Callable[[], ChartMode]) -> None:
        self._writer = writer
        self._cluster = cluster
        self._chart = chart

    async def ensure(self, digests: ObjectDigests, desire: Renderer, release: Key | None) -> Sequence[Finding]:
        """Make an object as `desire` says; what Helm has otherwise is found, and left.

        `release` is Helm's for it, None for what no chart of a Tenant makes.
        """
        wanted = desire(None)
        metadata = wanted["metadata"]
        mark, digest = digests.get(metadata["namespace"], metadata["name"]), digests.kind.digest(wanted)
        if mark is not None and mark.digest == digest and not self._is_to_hand_over(mark.manager, release):
            return []
        current = None if mark is None else await self._read(digests, wanted)
        if (
            current is not None
            and object_manager(current) is not ObjectManager.HELM
            and digests.kind.must_be_replaced(current, wanted)
        ):
            await self._writer.delete(digests.kind.resource, current)
            current = None
        written = await self._writer.ensure(
            digests.kind.resource,
            lambda held: self._desire(desire, held, release),
            observed=current,
            owner=_NobodysElse(),
        )
        digests.record_written(written)
        if object_manager(written) is ObjectManager.HELM and digests.kind.digest(written) != digest:
            return [chart_conflict(_named(digests.kind.resource, metadata["name"]))]
        return []

    async def remove(self, digests: ObjectDigests, namespace: str, name: str) -> Sequence[Finding]:
        """Delete an object of our making; what Helm keeps is found, and what others made stays."""
        mark = digests.get(namespace, name)
        if mark is None or mark.manager is ObjectManager.OTHER:
            return []
        if mark.manager is ObjectManager.HELM:
            return [chart_conflict(_named(digests.kind.resource, name))]
        current = await self._read(digests, {"metadata": {"namespace": namespace, "name": name}})
        if current is None or object_manager(current) is not ObjectManager.OURS or is_terminating(current):
            return []
        await self._writer.delete(digests.kind.resource, current)
        digests.record_deleted(namespace, name)
        return []

    def _desire(self, desire: Renderer, current: Object | None, release: Key | None) -> Object:
        desired = desire(current)
        held = object_manager(current) if current is not None else None
        if current is not None and held is ObjectManager.HELM:
            return missing_fields(desired, current)
        if held is None or self._is_to_hand_over(held, release):
            return with_manager_labels(desired, release if self._chart() == "flux" else None)
        return desired

    def _is_to_hand_over(self, held: ObjectManager, release: Key | None) -> bool:
        return held is ObjectManager.OURS and release is not None and self._chart() == "flux"

    async def _read(self, marks: ObjectDigests, wanted: Object) -> Object | None:
        metadata = wanted["metadata"]
        try:
            return await self._cluster.get(marks.kind.resource, metadata["namespace"], metadata["name"])
        except StatusError as e:
            if e.reason != "NotFound":
                raise
            marks.record_deleted(metadata["namespace"], metadata["name"])
            return None


def _named(resource: ClusterResource, name: str) -> str:
    return f'the {resource.kind} "{name}"'
