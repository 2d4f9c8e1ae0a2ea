"""The query and path parameters of the operations, grouped by verb (WIRE-C47)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Resource

Parameter = Mapping[str, Any]


def _query(name: str, kind: str, description: str) -> Parameter:
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind}}


def _path(name: str, description: str) -> Parameter:
    return {"name": name, "in": "path", "description": description, "required": True, "schema": {"type": "string"}}


PRETTY = _query("pretty", "string", "Indent the output. The default is true for browsers, curl and wget.")
NAMESPACE = _path("namespace", "The namespace of the object.")


def name_of(kind: str) -> Parameter:
    return _path("name", f"name of the {kind}")


def own_parameters(resource: Resource) -> Sequence[Parameter]:
    """The query parameters of `get` that only this resource has."""
    return [_query(name, "string", text) for name, text in resource.get_parameters.items()]


_BOOKMARKS = _query("allowWatchBookmarks", "boolean", "True to receive events of type BOOKMARK in a watch.")
_CONTINUE = _query("continue", "string", "The continue token of the previous page of the list.")
_FIELD_SELECTOR = _query("fieldSelector", "string", "Selects by fields: metadata.name and metadata.namespace.")
_LABEL_SELECTOR = _query("labelSelector", "string", "Selects by labels.")
_LIMIT = _query("limit", "integer", "The maximum number of items to return; continue requests the next ones.")
_RESOURCE_VERSION = _query("resourceVersion", "string", "The version to read at, or to start a watch from.")
_MATCH = _query("resourceVersionMatch", "string", "The meaning of resourceVersion for a list: Exact or NotOlderThan.")
_INITIAL_EVENTS = _query(
    "sendInitialEvents", "boolean", "Begin a watch with the existing objects, and a bookmark after them."
)
_TIMEOUT = _query("timeoutSeconds", "integer", "Seconds after which the list or watch ends.")
_WATCH = _query("watch", "boolean", "Stream changes instead of a list.")

_DRY_RUN = _query("dryRun", "string", "All: run every check, store nothing.")
_FIELD_MANAGER = _query(
    "fieldManager", "string", "The name of the client that makes the change, at most 128 bytes. Apply requires it."
)
_FIELD_VALIDATION = _query(
    "fieldValidation", "string", "Treatment of unknown and duplicate fields: Ignore, Warn (the default) or Strict."
)
_FORCE = _query("force", "boolean", "Take over fields of other managers. Only for apply.")

_GRACE_PERIOD = _query("gracePeriodSeconds", "integer", "Seconds that the deletion may take; 0 means immediately.")
_UNSAFE = _query("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean", "Accepted, but without effect.")
_ORPHAN = _query("orphanDependents", "boolean", "Deprecated: see propagationPolicy.")
_PROPAGATION = _query("propagationPolicy", "string", "The treatment of dependents: Orphan, Background or Foreground.")

READ: Sequence[Parameter] = (_RESOURCE_VERSION,)
LIST: Sequence[Parameter] = (
    _BOOKMARKS,
    _CONTINUE,
    _FIELD_SELECTOR,
    _LABEL_SELECTOR,
    _LIMIT,
    _RESOURCE_VERSION,
    _MATCH,
    _INITIAL_EVENTS,
    _TIMEOUT,
    _WATCH,
)
CREATE: Sequence[Parameter] = (_DRY_RUN, _FIELD_MANAGER, _FIELD_VALIDATION)
PATCH: Sequence[Parameter] = (*CREATE, _FORCE)
DELETE: Sequence[Parameter] = (_DRY_RUN, _GRACE_PERIOD, _UNSAFE, _ORPHAN, _PROPAGATION)
DELETE_COLLECTION: Sequence[Parameter] = (
    _CONTINUE,
    _DRY_RUN,
    _FIELD_SELECTOR,
    _GRACE_PERIOD,
    _UNSAFE,
    _LABEL_SELECTOR,
    _LIMIT,
    _ORPHAN,
    _PROPAGATION,
    _RESOURCE_VERSION,
    _MATCH,
    _INITIAL_EVENTS,
    _TIMEOUT,
)
