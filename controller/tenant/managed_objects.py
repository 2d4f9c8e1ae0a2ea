"""The objects that we manage in Tenants' Namespaces: a digest of each, and the writer that creates and updates them.

The digest suffices to decide that nothing has to be written. An object is read from the cluster only if it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    as_taken_over,
    chart_conflict,
    is_live,
    is_of_own_chart,
    object_manager,
    release_of,
    takeover_remedy,
    with_manager_labels,
)
from registry.cluster.event_handlers import SyncingHandler
from registry.cluster.interface import HELMRELEASES, ClusterClient, ClusterResource, is_terminating
from registry.cluster.object_store import key_of, version_of
from registry.numbers_by_name import NumbersByName

_MANAGERS: Final = tuple(ObjectManager)
_MANAGER_BITS: Final = 2


class ObjectDigest(NamedTuple):
    """`digest` is equal for objects that normalize to the same value, within one process; a signed number of 62
    bits."""

    manager: ObjectManager
    digest: int

    @property
    def packed(self) -> int:
        """The digest as a signed number of 64 bits."""
        return self.digest << _MANAGER_BITS | _MANAGERS.index(self.manager)

    @classmethod
    def unpack(cls, packed: int) -> ObjectDigest:
        digest, manager = divmod(packed, 1 << _MANAGER_BITS)
        return cls(_MANAGERS[manager], digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedKind:
    """A kind of object that we manage in Tenants' Namespaces.

    `normalize` returns the fields that we decide on, as JSON that is equal for equivalent objects: defaults filled in,
    quantities as numbers. `selects` returns whether we manage the object of this namespace and name.
    `must_be_replaced` returns whether kube-apiserver forbids updating the current object to the desired one.
    `accepts_charts` returns whether an object of Helm's, which differs from the desired one, does what the Tenant
    declares; such kinds are left to the chart as a whole. `charts_faults` are the findings about one that does not,
    besides ChartConflict. An object that `is_busy` is changed by others all the time, but not in the fields that we
    decide on.
    """

    resource: ClusterResource
    normalize: Callable[[Object], object]
    selects: Callable[[str, str], bool]
    must_be_replaced: Callable[[Object, Object], bool] = lambda current, desired: False
    accepts_charts: Callable[[Object, Object], bool] | None = None
    charts_faults: Callable[[Object, Object], Sequence[Finding]] = lambda current, desired: ()
    is_busy: bool = False

    def digest_of(self, obj: Object) -> ObjectDigest:
        return ObjectDigest(object_manager(obj), self.digest(obj))

    def digest(self, obj: Object) -> int:
        return hash(orjson.dumps(self.normalize(obj), option=orjson.OPT_SORT_KEYS)) >> _MANAGER_BITS


class ObjectDigests(SyncingHandler):
    """A handler of an informer that stores digests, not objects: ten thousand Tenants have ninety thousand objects.

    `on_change` is called with the key of an object whose digest has changed.
    """

    def __init__(self, kind: ManagedKind, *, on_change: Callable[[Key], None]) -> None:
        self.kind = kind
        self._on_change = on_change
        self._digests = NumbersByName()
        self._accepted: dict[Key, tuple[int, int, ChartMode]] = {}
        self.version = 0
        """The version up to which all changes of the kind are known, 0 before the first list."""

    def get(self, namespace: str, name: str) -> ObjectDigest | None:
        packed = self._digests.get(namespace, name)
        return None if packed is None else ObjectDigest.unpack(packed)

    def names(self, namespace: str) -> Sequence[str]:
        return self._digests.names(namespace)

    def clear(self) -> None:
        """Removes all digests without calling `on_change`: nothing is known of the objects any more."""
        self._digests.clear()
        self.version = 0

    def record_written(self, obj: Object) -> None:
        """Record the result of our own write: its event then changes no digest and enqueues nothing. If that has come
        before the answer, later ones may have, too: the present digest is that of the last one."""
        if version_of(obj) > self.version:
            self._digests.put(*key_of(obj), self.kind.digest_of(obj).packed)

    def accepts(self, key: Key, digest: int, chart: ChartMode) -> bool:
        """True if the chart's object, as it is known, was found to do what a desired one with this digest does."""
        known = self.get(*key)
        if known is None or known.manager is not ObjectManager.HELM:
            return False
        return self._accepted.get(key) == (known.digest, digest, chart)

    def charts_findings(self, current: Object, desired: Object, chart: ChartMode) -> Sequence[Finding]:
        """The faults of an object that is left to the chart as a whole; empty if it is accepted."""
        if self.kind.accepts_charts is None or self.kind.accepts_charts(current, desired):
            return []
        return [self.conflict(current, chart), *self.kind.charts_faults(current, desired)]

    def record_accepted(self, current: Object, desired: Object, chart: ChartMode, *, accepted: bool) -> None:
        """Record whether the chart's object is accepted: one that is accepted is not read again."""
        if accepted:
            self._accepted[key_of(current)] = self.kind.digest(current), self.kind.digest(desired), chart
        else:
            self._accepted.pop(key_of(current), None)

    def conflict(self, current: Object, chart: ChartMode) -> Finding:
        """The finding about an object of Helm's that is left as it is."""
        namespace, name = key_of(current)
        remedy = takeover_remedy(release_of(current), namespace) if chart == "none" else ""
        return chart_conflict(_quoted(self.kind.resource, name), remedy)

    def record_absent(self, namespace: str, name: str, *, since: int) -> None:
        """Record that an object does not exist, by the answer to a request that was sent when the digests were of this
        `version`. If events have come meanwhile, one of them may have told of an object that was created after the
        answer; that of the deletion is about to come, if it has not."""
        if since == self.version:
            self._digests.put(namespace, name, None)

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self.version = rv
        await super().replace(items, rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self.version = rv
        super().apply(type, obj, rv)

    def bookmark(self, rv: int) -> None:
        self.version = rv

    def _known_keys(self) -> Iterable[Key]:
        return (Key(namespace, name) for namespace, name in self._digests)

    def _sync(self, key: Key, obj: Object | None) -> None:
        digest = None if obj is None or not self.kind.selects(*key) else self.kind.digest_of(obj).packed
        if self._digests.put(*key, digest):
            self._on_change(key)


class _AnyOwner:
    """Permits writes to every object: in a Tenant's own Namespace, the names are reserved for us."""

    def refusal(self, current: Object) -> str:
        return ""


class ContentWriter:
    """Every method raises the cluster's StatusError, and NotLeading. `chart` returns the current setting."""

    def __init__(
        self, *, writer: ClusterWriter, cluster: ClusterClient, chart: Callable[[], ChartMode], remembers: bool = True
    ) -> None:
        """`remembers` is False for a `writer` that sends nothing: then nothing counts as written."""
        self._writer = writer
        self._cluster = cluster
        self._chart = chart
        self._remembers = remembers

    def is_current(self, digests: ObjectDigests, desired: Object, release: Key | None) -> bool:
        """True if `ensure` would neither read nor write anything."""
        metadata = desired["metadata"]
        known, digest = digests.get(metadata["namespace"], metadata["name"]), digests.kind.digest(desired)
        if known is not None and known.digest == digest and not self._should_hand_over(known.manager, release):
            return True
        return digests.accepts(Key(metadata["namespace"], metadata["name"]), digest, self._chart())

    async def ensure(self, digests: ObjectDigests, render: Renderer, release: Key | None) -> Sequence[Finding]:
        """Create or update the object that `render` returns. A differing object that Helm manages is reported
        and not overwritten.

        `release` is the Helm release that the object is part of, None if no chart of a Tenant creates it.
        """
        desired = render(None)
        if self.is_current(digests, desired, release):
            return []
        namespace, name = desired["metadata"]["namespace"], desired["metadata"]["name"]
        known = digests.get(namespace, name)
        current = None if known is None else await self._read(digests, namespace, name)
        is_helms = current is not None and object_manager(current) is ObjectManager.HELM
        takes_over = current is not None and is_helms and await self._may_take_over(current)
        if current is not None and not takes_over and _is_charts(digests.kind, current):
            return self._charts_findings(digests, current, desired)
        if current is not None and (takes_over or not is_helms) and digests.kind.must_be_replaced(current, desired):
            await self._writer.delete(digests.kind.resource, current)
            current = None

        def patch(stored: Object | None) -> Object:
            if takes_over and stored is not None:
                return as_taken_over(render(stored))
            return self._render(digests.kind, render, stored, release)

        return await self._write(digests, patch, current, desired)

    async def _write(
        self, digests: ObjectDigests, render: Renderer, current: Object | None, desired: Object
    ) -> Sequence[Finding]:
        kind = digests.kind
        written = await self._writer.ensure(
            kind.resource, render, observed=current, owner=_AnyOwner(), is_busy=kind.is_busy
        )
        if self._remembers:
            digests.record_written(written)
        if _is_charts(kind, written):
            return self._charts_findings(digests, written, desired)
        if object_manager(written) is ObjectManager.HELM and kind.digest(written) != kind.digest(desired):
            return [digests.conflict(written, self._chart())]
        return []

    def _charts_findings(self, digests: ObjectDigests, current: Object, desired: Object) -> Sequence[Finding]:
        found = digests.charts_findings(current, desired, self._chart())
        if self._remembers:
            digests.record_accepted(current, desired, self._chart(), accepted=not found)
        return found

    async def _may_take_over(self, current: Object) -> bool:
        """True if nobody renders the chart any more that an object of Helm's is part of: `tenants.chart` is none, and
        Flux has nothing to do with the HelmRelease of the object's own Tenant."""
        release = release_of(current) if self._chart() == "none" else None
        if release is None or not is_of_own_chart(key_of(current).namespace, release):
            return False
        try:
            return not is_live(await self._cluster.get(HELMRELEASES, *release))
        except StatusError as e:
            if e.reason != "NotFound":
                raise
            return True

    async def remove(self, digests: ObjectDigests, namespace: str, name: str) -> Sequence[Finding]:
        """Delete an object that we created, or that the Tenant's chart has left behind. An object that Helm manages is
        reported; any other is ignored."""
        known = digests.get(namespace, name)
        if known is None or known.manager is ObjectManager.OTHER:
            return []
        if known.manager is ObjectManager.HELM and self._chart() == "flux":
            return [chart_conflict(_quoted(digests.kind.resource, name))]
        current = await self._read(digests, namespace, name)
        if current is None or object_manager(current) is ObjectManager.OTHER or is_terminating(current):
            return []
        if object_manager(current) is ObjectManager.HELM and not await self._may_take_over(current):
            return [digests.conflict(current, self._chart())]
        since = digests.version
        await self._writer.delete(digests.kind.resource, current)
        if self._remembers:
            digests.record_absent(namespace, name, since=since)
        return []

    async def _read(self, digests: ObjectDigests, namespace: str, name: str) -> Object | None:
        return await read_managed(self._cluster, digests, namespace, name, remembers=self._remembers)

    def _render(self, kind: ManagedKind, render: Renderer, current: Object | None, release: Key | None) -> Object:
        if current is not None and _is_charts(kind, current):
            return {}
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


async def read_managed(
    cluster: ClusterClient, digests: ObjectDigests, namespace: str, name: str, *, remembers: bool = True
) -> Object | None:
    """The stored object; None if it does not exist, which `digests` records if the caller `remembers` anything. Raises
    the cluster's StatusError."""
    since = digests.version
    try:
        return await cluster.get(digests.kind.resource, namespace, name)
    except StatusError as e:
        if e.reason != "NotFound":
            raise
        if remembers:
            digests.record_absent(namespace, name, since=since)
        return None


def _is_charts(kind: ManagedKind, current: Object) -> bool:
    """True if the object is left to the chart as a whole."""
    return kind.accepts_charts is not None and object_manager(current) is ObjectManager.HELM


def _quoted(resource: ClusterResource, name: str) -> str:
    return f'the {resource.kind} "{name}"'
