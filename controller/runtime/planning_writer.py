"""A ClusterWriter that sends nothing: it records what the controllers would write, for `kubectl tenant diff`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from apiserver.meta.resource import Key, Object
from apiserver.patch.json_and_merge import merge_patch
from controller.runtime.apply import ClusterWriter, drop_nulls
from controller.runtime.write_gate import OpenGate
from registry.cluster.interface import ClusterClient, ClusterResource
from registry.cluster.object_store import key_of


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """An object as it is and as it would be; None where it does not exist."""

    resource: ClusterResource
    key: Key
    before: Object | None
    after: Object | None
    is_hidden: bool = False


class PlanningWriter(ClusterWriter):
    """Several writes of one object become one. Writes of a status are left out: a status tells what was observed.

    `hides` says of the key of an object if its write is to be left out of `planned`, which may change between writes.
    """

    def __init__(self, cluster: ClusterClient) -> None:
        super().__init__(cluster=cluster, gate=OpenGate())
        self.hides: Callable[[Key], bool] = lambda key: False
        self._planned: dict[tuple[str, str, Key], PlannedWrite] = {}

    @property
    def planned(self) -> Sequence[PlannedWrite]:
        """The objects that differ, in the order of their first write."""
        return [each for each in self._planned.values() if each.before != each.after and not each.is_hidden]

    def planned_objects(self, resource: ClusterResource) -> Mapping[Key, Object | None]:
        """The objects of a kind that were written, as they would be; None for deleted ones."""
        found = (each for each in self._planned.values() if each.resource == resource)
        return {each.key: each.after for each in found}

    def record(self, resource: ClusterResource, before: Object | None, after: Object | None) -> None:
        """Record a write of an object that exists before or after it."""
        some = after if after is not None else before
        assert some is not None, "a write is of an object"
        key = key_of(some)
        place = resource.group, resource.kind, key
        known = self._planned.get(place)
        hidden = self.hides(key)
        if known:
            self._planned[place] = replace(known, after=after, is_hidden=known.is_hidden and hidden)
        else:
            self._planned[place] = PlannedWrite(resource, key, before, after, hidden)

    async def create(self, res: ClusterResource, desired: Object) -> Object:
        created: Object = drop_nulls({"apiVersion": res.api_version, "kind": res.kind, **desired})
        self.record(res, None, created)
        return created

    async def patch(
        self,
        res: ClusterResource,
        observed: Object,
        changes: Object,
        *,
        subresource: str = "",
        is_busy: bool = False,
    ) -> Object:
        if subresource:
            return observed
        patched: Object = merge_patch(observed, changes)
        self.record(res, observed, patched)
        return patched

    async def delete(self, res: ClusterResource, observed: Object, *, propagation: str = "Background") -> None:
        self.record(res, observed, None)
