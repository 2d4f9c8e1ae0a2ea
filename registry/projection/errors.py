"""Translates errors about an object of the cluster into errors about its projection. Pure."""

from __future__ import annotations

from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, GroupResource, Key, Resource
from registry.cluster.interface import ClusterResource, ClusterUnreachable, NotServed, missing_right


def translate(
    error: StatusError, key: Key, *, shown: Resource, stored: ClusterResource, missing: str = ""
) -> StatusError:
    """The same error for the projection, with the same code. Errors about other objects are returned unchanged.
    `missing` is the message if the cluster does not serve the stored kind."""
    about = _is_about(error, key, stored)
    if isinstance(error, NotServed) or (error.code == 404 and not about):
        return errors.ServiceUnavailable(missing or f"kube-apiserver does not serve {stored.plural}", retry_after=1)
    if isinstance(error, ClusterUnreachable) or not about:
        return error
    match error.reason:
        case "Forbidden" if missing_right(error):
            return not_permitted(shown)
        case "NotFound":
            return errors.NotFound(shown.group_resource, key.name)
        case "AlreadyExists":
            deleting = error.message.startswith("object is being deleted")
            return errors.AlreadyExists(shown.group_resource, key.name, deleting=deleting)
        case "Conflict":
            why = error.message.partition(f'"{key.name}": ')[2] or errors.Conflict.MODIFIED
            return errors.Conflict(shown.group_resource, key.name, why)
        case _:
            details = _details(error.details or {}, shown, stored)
            return StatusError(error.code, error.reason, _renamed(error.message, shown, stored), details=details)


def not_permitted(shown: Resource) -> StatusError:
    return errors.ServiceUnavailable(f"the server may not read or write what {shown.plural} are made from")


def _is_about(error: StatusError, key: Key, stored: ClusterResource) -> bool:
    details = error.details or {}
    kinds = (stored.plural, stored.kind)
    return (
        details.get("kind") in kinds
        and (details.get("group") or "") == stored.group
        and details.get("name") == key.name
    )


def _details(details: dict[str, Any], shown: Resource, stored: ClusterResource) -> dict[str, Any]:
    kind = shown.plural if details.get("kind") == stored.plural else shown.kind
    return {**details, "group": shown.group, "kind": kind}


def _renamed(text: str, shown: Resource, stored: ClusterResource) -> str:
    pairs = (
        (str(GroupResource(stored.group, stored.plural)), str(shown.group_resource)),
        (str(GroupKind(stored.group, stored.kind)), str(shown.group_kind)),
    )
    for theirs, ours in pairs:
        text = text.replace(f'{theirs} "', f'{ours} "', 1)
    return text
