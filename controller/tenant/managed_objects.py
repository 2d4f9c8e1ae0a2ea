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
from controller.runtime.apply import Apply, Renderer, additions
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import Chart, Manager, differs, managed, manager
from registry.cluster.event_handlers import ProjectionByNamespace
from registry.cluster.interface import ClusterClient, ClusterResource, is_terminating
from registry.cluster.object_store import key_of

_MANAGERS: Final = tuple(Manager)


class ObjectDigest(NamedTuple):
    """`digest` is equal for objects with the same essence, in one process."""

    manager: Manager
    digest: int

    @property
    def packed(self) -> int:
        """The mark as a number: there are nine for each Tenant, and the garbage collector passes numbers by."""
        return self.digest * len(_MANAGERS) + _MANAGERS.index(self.manager)

    @classmethod
    def of(cls, packed: int) -> ObjectDigest:
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
    essence: Callable[[Object], object]
    belongs: Callable[[str, str], bool]
    must_be_replaced: Callable[[Object, Object], bool] = lambda current, desired: False

    def mark(self, obj: Object) -> ObjectDigest:
        return ObjectDigest(manager(obj), self.digest(obj))

    def digest(self, obj: Object) -> int:
        return hash(orjson.dumps(self.essence(obj), option=orjson.OPT_SORT_KEYS))


class ObjectDigests(ProjectionByNamespace[int]):
    """A handler of an informer, and the index that it keeps: ten thousand Tenants have ninety thousand objects.

    `concern` is told the Namespace of an object that is not as it was known to be.
    """

    def __init__(self, part: ManagedKind, *, concern: Callable[[str], None]) -> None:
        super().__init__(self._mark, concern=concern)
        self.part = part

    def get(self, namespace: str, name: str) -> ObjectDigest | None:
        packed = self.values(namespace).get(name)
        return None if packed is None else ObjectDigest.of(packed)

    def names(self, namespace: str) -> Sequence[str]:
        return tuple(self.values(namespace))

    def written(self, obj: Object) -> None:
        """What a write of ours came to: the event that tells the same is no news then."""
        self.put(key_of(obj), self.part.mark(obj).packed)

    def gone(self, namespace: str, name: str) -> None:
        self.put(Key(namespace, name), None)

    def _mark(self, obj: Object) -> int | None:
        return self.part.mark(obj).packed if self.part.belongs(*key_of(obj)) else None


class _NobodysElse:
    """The names in a Tenant's own Namespace are ours to use."""

    def refusal(self, current: Object) -> str:
        return ""


class ContentWriter:
    """Every method raises the host's StatusError, NotLeading. `chart` is the setting at present."""

    def __init__(self, *, apply: Apply, cluster: ClusterClient, chart: Callable[[], Chart]) -> None:
        self._apply = apply
        self._cluster = cluster
        self._chart = chart

    async def ensure(self, marks: ObjectDigests, desire: Renderer, release: Key | None) -> Sequence[Finding]:
        """Make an object as `desire` says; what Helm has otherwise is found, and left.

        `release` is Helm's for it, None for what no chart of a Tenant makes.
        """
        wanted = desire(None)
        metadata = wanted["metadata"]
        mark, digest = marks.get(metadata["namespace"], metadata["name"]), marks.part.digest(wanted)
        if mark is not None and mark.digest == digest and not self._is_to_hand_over(mark.manager, release):
            return []
        current = None if mark is None else await self._read(marks, wanted)
        if (
            current is not None
            and manager(current) is not Manager.HELM
            and marks.part.must_be_replaced(current, wanted)
        ):
            await self._apply.delete(marks.part.resource, current)
            current = None
        written = await self._apply.ensure(
            marks.part.resource,
            lambda held: self._desire(desire, held, release),
            observed=current,
            owner=_NobodysElse(),
        )
        marks.written(written)
        if manager(written) is Manager.HELM and marks.part.digest(written) != digest:
            return [differs(_named(marks.part.resource, metadata["name"]))]
        return []

    async def remove(self, marks: ObjectDigests, namespace: str, name: str) -> Sequence[Finding]:
        """Delete an object of our making; what Helm keeps is found, and what others made stays."""
        mark = marks.get(namespace, name)
        if mark is None or mark.manager is Manager.OTHER:
            return []
        if mark.manager is Manager.HELM:
            return [differs(_named(marks.part.resource, name))]
        current = await self._read(marks, {"metadata": {"namespace": namespace, "name": name}})
        if current is None or manager(current) is not Manager.OURS or is_terminating(current):
            return []
        await self._apply.delete(marks.part.resource, current)
        marks.gone(namespace, name)
        return []

    def _desire(self, desire: Renderer, current: Object | None, release: Key | None) -> Object:
        desired = desire(current)
        held = manager(current) if current is not None else None
        if current is not None and held is Manager.HELM:
            return additions(desired, current)
        if held is None or self._is_to_hand_over(held, release):
            return managed(desired, release if self._chart() == "flux" else None)
        return desired

    def _is_to_hand_over(self, held: Manager, release: Key | None) -> bool:
        return held is Manager.OURS and release is not None and self._chart() == "flux"

    async def _read(self, marks: ObjectDigests, wanted: Object) -> Object | None:
        metadata = wanted["metadata"]
        try:
            return await self._cluster.get(marks.part.resource, metadata["namespace"], metadata["name"])
        except StatusError as e:
            if e.reason != "NotFound":
                raise
            marks.gone(metadata["namespace"], metadata["name"])
            return None


def _named(resource: ClusterResource, name: str) -> str:
    return f'the {resource.kind} "{name}"'
