"""The changes that the controllers would make, as values, and as users see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from apiserver.cooperative import iterate_cooperatively
from apiserver.encoding.offload import json_size
from apiserver.meta.resource import Key, Object
from registry.cluster.interface import HELMRELEASES, SECRETS, ClusterResource
from registry.names import FINDINGS_ANNOTATION, MANAGED_FIELDS_ANNOTATION

MOST_CHANGES: Final = 500
MOST_BYTES: Final = 4 * 1024 * 1024
_HIDDEN_METADATA = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")
# the managed fields and the status of a Tenant; the values of a Secret
_HIDDEN_ANNOTATIONS = {
    HELMRELEASES.kind: (MANAGED_FIELDS_ANNOTATION, FINDINGS_ANNOTATION),
    SECRETS.kind: ("kubectl.kubernetes.io/last-applied-configuration",),
}
# at a Gateway, for the hostnames of all tenants that it serves: their number would tell of hidden ones
_UNCOUNTED = frozenset({("cert-manager.io", "Certificate"), ("gateway.networking.k8s.io", "ListenerSet")})
_MASK, _MASK_BEFORE, _MASK_AFTER = "***", "*** (before)", "*** (after)"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """An object as it is and as it would be; None where it does not exist."""

    resource: ClusterResource
    key: Key
    before: Object | None
    after: Object | None

    @property
    def action(self) -> str:
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "update"


@dataclass(frozen=True, slots=True)
class PlannedChanges:
    """`problems` keep something from being written. It is `truncated` if further objects were not looked at."""

    changes: Sequence[PlannedChange]
    problems: Sequence[str] = ()
    truncated: bool = False


class Planner(Protocol):
    """Knows what the controllers would do: it has their settings, and their caches."""

    async def plan(self, key: Key, proposed: Object | None, sees: Callable[[Key], bool]) -> PlannedChanges:
        """The changes for an existing Tenant as it is, or for the valid Tenant `proposed`: a new one has the values as
        they were sent. Objects of other Tenants are left out unless `sees` is true of these. Raises ServiceUnavailable
        if this process has no controllers, and the cluster's StatusError."""
        ...


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change, and how users see it who may get its object."""

    change: PlannedChange
    shown: Object


async def shown_changes(changes: Sequence[PlannedChange]) -> list[ShownChange]:
    """Those of which anything is shown."""
    return [
        ShownChange(change, shown)
        async for change in iterate_cooperatively(changes)
        if (shown := shown_change(change)) is not None
    ]


async def diff_status(
    found: Sequence[tuple[ShownChange, bool]],
    problems: Sequence[str],
    *,
    truncated: bool,
    max_changes: int = MOST_CHANGES,
    max_bytes: int = MOST_BYTES,
) -> Object:
    """The status of a TenantDiff. `found` has for each change whether the user may get its object. At most
    `max_changes` are shown or counted as hidden, and the shown ones have at most `max_bytes` of JSON; others are left
    out, and the status says so. Hidden ones that are not counted leave no trace: they take no place of others."""
    shown: list[Object] = []
    hidden, size = 0, 0
    async for each, may_get in iterate_cooperatively(found):
        if not may_get and (each.change.resource.group, each.change.resource.kind) in _UNCOUNTED:
            continue
        size += json_size(each.shown) if may_get else 0
        if len(shown) + hidden == max_changes or size > max_bytes:
            truncated = True
            break
        if may_get:
            shown.append(each.shown)
        else:
            hidden += 1
    return {"changes": shown, "hidden": hidden, "truncated": truncated, "problems": list(problems)}


def shown_change(change: PlannedChange) -> Object | None:
    """The change as users see it: without status, without fields that the cluster sets, and without the values of a
    Secret (as by `kubectl diff`, two that differ are told apart). None if nothing that is shown differs."""
    before, after = _shown(change.resource, change.before), _shown(change.resource, change.after)
    if change.resource == SECRETS:
        before, after = _masked(before, after)
    if before == after:
        return None
    key, resource = change.key, change.resource
    place = {"namespace": key.namespace} if key.namespace else {}
    found: Object = {
        "object": {"apiVersion": resource.api_version, "kind": resource.kind, **place, "name": key.name},
        "action": change.action,
    }
    return found | {name: each for name, each in (("before", before), ("after", after)) if each is not None}


def _shown(resource: ClusterResource, obj: Object | None) -> Object | None:
    if obj is None:
        return None
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _HIDDEN_METADATA}
    if metadata.get("annotations") and (hidden := _HIDDEN_ANNOTATIONS.get(resource.kind)):
        metadata["annotations"] = {name: each for name, each in metadata["annotations"].items() if name not in hidden}
    rest = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}


def _masked(before: Object | None, after: Object | None) -> tuple[Object | None, Object | None]:
    for field in ("data", "stringData"):
        old, new = _mapping((before or {}).get(field)), _mapping((after or {}).get(field))
        if before is not None and field in before:
            before = {**before, field: {key: _mask(old, new, key, _MASK_BEFORE) for key in old}}
        if after is not None and field in after:
            after = {**after, field: {key: _mask(old, new, key, _MASK_AFTER) for key in new}}
    return before, after


def _mask(old: dict[str, Any], new: dict[str, Any], key: str, if_different: str) -> str:
    return if_different if key in old and key in new and old[key] != new[key] else _MASK


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
