"""Reconciles the flat routes with the rules of one route: those of a root itself, or those of a vertex below each of
its roots."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter, ForeignObject, create_merge_patch
from controller.tenantgateway.collected_errors import is_transient
from controller.tenantgateway.delegation.flat_routes import (
    FlatRouteId,
    PlacesOf,
    parse_flat_route,
    render_flat_route,
    vertex_label,
)
from controller.tenantgateway.delegation.model import FlatRoute
from controller.tenantgateway.delegation.parts import DelegationParts
from controller.tenantgateway.model import RouteId
from controller.tenantgateway.watched_kinds import WatchedKind, WatchedKinds

# Lists that the cluster must have exactly as rendered: an entry more would serve more.
_EXACT_FIELDS = ("hostnames", "parentRefs", "rules")
_UNWANTED_FIELDS = ("useDefaultGateways",)


class FlatRouteOwner:
    """An Owner whose flat routes carry an ownerReference to their root, and the label of their vertex (R-211)."""

    def __init__(self, flat: FlatRoute) -> None:
        self._flat = flat

    def refusal(self, current: Object) -> str:
        root = self._flat.root
        found = parse_flat_route(current, root.id.kind)
        if found is not None and (found.root, found.vertex) == (root.id, vertex_label(self._flat.content.id)):
            return ""
        metadata = current["metadata"]
        return (
            f"{root.id.kind.lower()} {metadata['namespace']}/{metadata['name']} exists but is not owned by "
            f"{root.id.kind} {root.id}: rename or delete it"
        )


class DelegationReconciler:
    def __init__(
        self,
        *,
        writer: ClusterWriter,
        kinds: WatchedKinds,
        parts: DelegationParts,
        places_of: PlacesOf,
    ) -> None:
        self._writer = writer
        self._kinds = kinds
        self._parts = parts
        self._places_of = places_of
        self._index = parts.index
        self._errors = parts.errors
        # what the cluster made of a written spec, if it is not what was written
        self._changed_by_cluster: dict[RouteId, tuple[Object, Object]] = {}

    def initial_keys(self) -> Iterable[RouteId]:
        """The keys to reconcile at the start."""
        return iter(self._index)

    async def reconcile(self, key: RouteId) -> None:
        """Raises the first of the cluster's errors, but only after all writes. A route of which nothing is known may be
        a flat route that nobody wants."""
        kind = self._kinds.of_routes[key.kind]
        if not (kind.synced and self._kinds.grants.synced):
            return
        self._parts.record_states(key)
        errors: list[StatusError] = []
        wanted = self._index.graph.flat_routes(key)
        for flat in wanted:
            await self._ensure(kind, flat, errors)
        self._errors.keep_only(key, {each.root.id for each in wanted})
        existing = {*self._index.flat_routes_of(key)}
        if (itself := self._index.flat_route(key)) is not None:
            existing.add(itself)
        for found in sorted(existing):
            await self._prune(kind, found, errors)
        if errors:
            raise errors[0]

    async def _ensure(self, kind: WatchedKind, flat: FlatRoute, errors: list[StatusError]) -> None:
        desired = render_flat_route(flat, api_version=kind.resource.api_version, places_of=self._places_of)
        message = ""
        try:
            await self._write(kind, flat, desired)
        except ForeignObject as e:
            message = str(e)
            self._parts.foreign[flat.root.id.kind].wait(flat, desired["metadata"]["name"])
        except StatusError as e:
            errors.append(e)
            if is_transient(e):
                return
            message = f"{flat.root.id.kind.lower()} {flat.root.id.namespace}/{desired['metadata']['name']}: {e.message}"
        self._errors.record(flat.root.id, flat.content.id, message)

    async def _write(self, kind: WatchedKind, flat: FlatRoute, desired: Object) -> None:
        key, owner = Key(flat.root.id.namespace, desired["metadata"]["name"]), FlatRouteOwner(flat)
        identity = RouteId(*key, flat.root.id.kind)
        observed = kind.get(key)
        if observed is None:
            created = await self._writer.ensure(kind.resource, lambda _: desired, observed=None, owner=owner)
            self._record(kind, identity, desired, created)
            return
        if reason := owner.refusal(observed):
            raise ForeignObject(reason)
        if not self._knows_places():
            desired["spec"]["parentRefs"] = observed["spec"].get("parentRefs") or desired["spec"]["parentRefs"]
        changes = create_merge_patch(observed, {"metadata": desired["metadata"]})
        if spec := self._spec_changes(identity, observed["spec"], desired["spec"]):
            changes["spec"] = spec
        if changes:
            self._record(kind, identity, desired, await self._writer.patch(kind.resource, observed, changes))

    def _knows_places(self) -> bool:
        """False if ListenerSets exist but cannot be listed: flat routes keep the parentRefs that they have."""
        return self._kinds.listener_sets.synced or self._kinds.listener_sets.not_served

    def _spec_changes(self, key: RouteId, observed: Object, desired: Object) -> Object:
        changes: Object = {each: None for each in _UNWANTED_FIELDS if each in observed}
        if self._changed_by_cluster.get(key) != (desired, observed):
            changes |= {each: desired[each] for each in _EXACT_FIELDS if observed.get(each) != desired[each]}
        return changes

    def _record(self, kind: WatchedKind, key: RouteId, desired: Object, written: Object) -> None:
        kind.record_write(written)
        if any(written["spec"].get(each) != desired["spec"][each] for each in _EXACT_FIELDS):
            self._changed_by_cluster[key] = (desired["spec"], written["spec"])
        else:
            self._changed_by_cluster.pop(key, None)

    async def _prune(self, kind: WatchedKind, flat: FlatRouteId, errors: list[StatusError]) -> None:
        if self._index.is_wanted(flat):
            return
        key = Key(flat.id.namespace, flat.id.name)
        observed = kind.get(key)
        if observed is None or "deletionTimestamp" in observed["metadata"]:
            return
        self._changed_by_cluster.pop(flat.id, None)
        try:
            await self._writer.delete(kind.resource, observed)
        except StatusError as e:
            errors.append(e)
