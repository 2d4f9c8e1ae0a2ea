"""Parsing and validation of request options from the query, or from a DeleteOptions body."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import METADATA_FIELDS, GroupKind, Object
from apiserver.meta.selectors import (
    MAX_REQUIREMENTS,
    NAME,
    FieldSelector,
    LabelSelector,
    Requirement,
    check_supported,
    parse_field_selector,
    parse_label_selector,
)
from apiserver.request.query_numbers import parse_int64, parse_resource_version
from apiserver.request.request_info import Query, RequestInfo

EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"

_META = "meta.k8s.io"
_MAX_MANAGER_BYTES = 128
_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
# what a parsed requirement takes at most, and each of its values, in bytes; fewer values are not counted
_REQUIREMENT_BYTES, _VALUE_BYTES, _FEW_VALUES = 800, 110, 16
_PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """`resource_version` is None if absent; `resource_version_match` is "", Exact or NotOlderThan; `limit` 0 is no
    limit."""

    label_selector: LabelSelector = field(default_factory=LabelSelector)
    field_selector: FieldSelector = field(default_factory=FieldSelector)
    resource_version: int | None = None
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """`send_initial_events` is None if absent; `timeout_seconds` is None for the default, and below 0 the watch ends at
    once, as in Kubernetes."""

    label_selector: LabelSelector = field(default_factory=LabelSelector)
    field_selector: FieldSelector = field(default_factory=FieldSelector)
    resource_version: int | None = None
    send_initial_events: bool | None = None
    allow_bookmarks: bool = False
    timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """`field_manager` is only empty for a User-Agent without printable characters; `force` is None if absent."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None


@dataclass(frozen=True, slots=True)
class Preconditions:
    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    dry_run: bool = False
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    grace_period_seconds: int | None = None
    preconditions: Preconditions = field(default_factory=Preconditions)


def label_selector(query: Query) -> LabelSelector:
    """The label selector of a list or watch, parsed once for authorization and the handler. Raises BadRequest."""
    return query.parsed("labelSelector", parse_label_selector)


def field_selector(query: Query) -> FieldSelector:
    """The field selector of a list or watch, on any fields. Raises BadRequest."""
    return query.parsed("fieldSelector", _parse_field_selector_on_any_field)


def selector_memory(query: Query) -> int:
    """The approximate memory of the parsed selectors in bytes, which can be a hundred times that of their texts; 0 for
    selectors with a few requirements and values."""
    commas = query.get("labelSelector").count(",") + query.get("fieldSelector").count(",")
    if commas < _FEW_VALUES:
        return 0
    return min(commas, MAX_REQUIREMENTS) * _REQUIREMENT_BYTES + commas * _VALUE_BYTES


def _parse_field_selector_on_any_field(text: str) -> FieldSelector:
    return parse_field_selector(text, None)


def parse_get_options(query: Query) -> int:
    """Returns the minimum resourceVersion of a GET, 0 for none. Raises BadRequest (WIRE-D64, WIRE-D65)."""
    if query.flag("export"):
        raise errors.BadRequest("the export parameter, deprecated since v1.14, is no longer supported")
    return parse_resource_version(query) or 0


def parse_list_options(query: Query, info: RequestInfo, field_labels: Collection[str] = METADATA_FIELDS) -> ListOptions:
    """Parses the options of a list. `field_labels` can be used in field selectors.

    Raises BadRequest (WIRE-D54, WIRE-D56 to WIRE-D58, WIRE-D64), Invalid (WIRE-D55).
    """
    limit, version = check_list_query(query)
    return ListOptions(
        label_selector=label_selector(query),
        field_selector=_field_selector(query, info, field_labels),
        resource_version=version,
        resource_version_match=query.get("resourceVersionMatch"),
        limit=limit,
        continue_token=query.get("continue"),
    )


def check_list_query(query: Query) -> tuple[int, int | None]:
    """The checks of a list but for its selectors. Returns its limit, 0 for none, and its resourceVersion. Raises as
    `parse_list_options`."""
    limit = parse_int64(query, "limit") or 0
    # ignored by lists, but still validated (WIRE-D54)
    parse_int64(query, "timeoutSeconds")
    match, token = query.get("resourceVersionMatch"), query.get("continue")
    _raise_if_invalid("ListOptions", _list_problems(query, match, token))
    version = parse_resource_version(query)
    if token and version:
        raise errors.BadRequest("specifying resource version is not allowed when using continue")
    return max(limit, 0), version


def parse_watch_options(
    query: Query, info: RequestInfo, field_labels: Collection[str] = METADATA_FIELDS
) -> WatchOptions:
    """Parses the options of a watch. Raises BadRequest (WIRE-D54, WIRE-D56 to WIRE-D58, WIRE-D64), Invalid
    (WIRE-D55)."""
    timeout, send_initial_events = check_watch_query(query)
    return WatchOptions(
        label_selector=label_selector(query),
        field_selector=_field_selector(query, info, field_labels),
        resource_version=parse_resource_version(query),
        send_initial_events=send_initial_events,
        allow_bookmarks=bool(query.flag("allowWatchBookmarks")),
        timeout_seconds=timeout or None,
    )


def check_watch_query(query: Query) -> tuple[int, bool | None]:
    """The checks of a watch but for its version and selectors. Returns timeoutSeconds, 0 for none, and
    sendInitialEvents. Raises as `parse_watch_options`."""
    timeout = parse_int64(query, "timeoutSeconds") or 0
    send_initial_events = query.flag("sendInitialEvents")
    _raise_if_invalid("ListOptions", _watch_problems(query, send_initial_events))
    return timeout, send_initial_events


def parse_create_options(query: Query, user_agent: str) -> WriteOptions:
    """Like all functions for write options, raises Invalid (WIRE-D66, WIRE-D70, WIRE-D71)."""
    return _write_options("CreateOptions", query, user_agent, [])


def parse_update_options(query: Query, user_agent: str) -> WriteOptions:
    return _write_options("UpdateOptions", query, user_agent, [])


def parse_patch_options(query: Query, user_agent: str, *, apply: bool) -> WriteOptions:
    problems = []
    if apply and not query.get("fieldManager"):
        problems.append(errors.required("fieldManager", "is required for apply patch"))
    if not apply and "force" in query:
        problems.append(errors.forbidden("force", "may not be specified for non-apply patch"))
    return _write_options("PatchOptions", query, user_agent, problems)


def parse_delete_options(
    query: Query, body: Object | None, overridden: Sequence[tuple[str, Any]] = ()
) -> DeleteOptions:
    """Parses the DeleteOptions in `body`, or in the query if there is no body (WIRE-D87). Raises BadRequest for a wrong
    type, Invalid (WIRE-D70, WIRE-D88).

    `overridden` are the paths and values of duplicate keys in the body, of which `body` has the last value. As in Go,
    whose structs are decoded key by key, each of them has to have the right type, and preconditions are merged.
    """
    document = _delete_query(query) if body is None else _merged(body, overridden)
    dry_run = _get_typed(document, "dryRun", list) or []
    policy = _get_typed(document, "propagationPolicy", str)
    orphan = _get_typed(document, "orphanDependents", bool)
    preconditions = _get_typed(document, "preconditions", dict) or {}
    problems = []
    if orphan is not None and policy is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(errors.invalid("propagationPolicy", policy, why))
    if policy is not None and policy not in _PROPAGATION_POLICIES:
        problems.append(errors.not_supported("propagationPolicy", policy, (*_PROPAGATION_POLICIES, "nil")))
    _raise_if_invalid("DeleteOptions", [*problems, *_dry_run_problems(dry_run)])
    return DeleteOptions(
        dry_run=bool(dry_run),
        propagation_policy=policy,
        orphan_dependents=orphan,
        grace_period_seconds=_get_typed(document, "gracePeriodSeconds", int),
        preconditions=Preconditions(
            uid=_get_typed(preconditions, "uid", str, "preconditions."),
            resource_version=_get_typed(preconditions, "resourceVersion", str, "preconditions."),
        ),
    )


def _list_problems(query: Query, match: str, token: str) -> list[FieldError]:
    problems = []
    version = query.get("resourceVersion")
    if match:
        if not version:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            problems.append(errors.forbidden("resourceVersionMatch", why))
        if token:
            why = "resourceVersionMatch is forbidden when continue is provided"
            problems.append(errors.forbidden("resourceVersionMatch", why))
        if match not in (EXACT, NOT_OLDER_THAN):
            problems.append(errors.not_supported("resourceVersionMatch", match, (EXACT, NOT_OLDER_THAN, "")))
        if match == EXACT and version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            problems.append(errors.forbidden("resourceVersionMatch", why))
    if "sendInitialEvents" in query:
        problems.append(errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return problems


def _watch_problems(query: Query, send_initial_events: bool | None) -> list[FieldError]:
    problems = []
    match = query.get("resourceVersionMatch")
    if send_initial_events is not None and match != NOT_OLDER_THAN:
        why = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
        problems.append(errors.forbidden("resourceVersionMatch", why))
    if match and send_initial_events is None:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        problems.append(errors.forbidden("resourceVersionMatch", why))
    if match and match != NOT_OLDER_THAN:
        problems.append(errors.not_supported("resourceVersionMatch", match, (NOT_OLDER_THAN,)))
    if query.get("continue"):
        problems.append(errors.forbidden("continue", "continue is forbidden for watch"))
    return problems


def _field_selector(query: Query, info: RequestInfo, field_labels: Collection[str]) -> FieldSelector:
    """Parses the field selector and adds the name in the path as a requirement (WIRE-D58, WIRE-F28)."""
    selector = field_selector(query)
    check_supported(selector, field_labels)
    if info.collection_path:
        return selector
    if selector.empty:
        return FieldSelector((Requirement(NAME, "In", (info.name,)),))
    if selector.exact(NAME) != info.name:
        raise errors.BadRequest("fieldSelector metadata.name doesn't match requested name")
    return selector


def _write_options(kind: str, query: Query, user_agent: str, problems: list[FieldError]) -> WriteOptions:
    manager, validation = query.get("fieldManager"), query.get("fieldValidation")
    dry_run = query.all("dryRun")
    problems += _manager_problems(manager)
    problems += _dry_run_problems(dry_run)
    if validation not in _FIELD_VALIDATIONS:
        problems.append(errors.not_supported("fieldValidation", validation, _FIELD_VALIDATIONS))
    _raise_if_invalid(kind, problems)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_manager=manager or _manager_from(user_agent),
        field_validation=validation or "Warn",
        force=query.flag("force"),
    )


def _manager_problems(manager: str) -> list[FieldError]:
    problems = []
    if len(manager.encode(errors="surrogatepass")) > _MAX_MANAGER_BYTES:
        problems.append(errors.too_long("fieldManager", _MAX_MANAGER_BYTES))
    position = 0
    for character in manager:
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {position})"
            problems.append(errors.invalid("fieldManager", manager, why))
        position += len(character.encode(errors="surrogatepass"))
    return problems


def _manager_from(user_agent: str) -> str:
    """Returns the printable part of the User-Agent up to its first slash, truncated to 128 bytes (WIRE-D71)."""
    printable = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return printable.encode()[:_MAX_MANAGER_BYTES].decode(errors="ignore")


def _dry_run_problems(dry_run: list[Any]) -> list[FieldError]:
    if all(value == "All" for value in dry_run):
        return []
    return [errors.not_supported("dryRun", dry_run, ("All",))]


def _delete_query(query: Query) -> Object:
    """The DeleteOptions in the query. Both preconditions are optional, and empty ones count as missing."""
    preconditions = {name: value for name in ("uid", "resourceVersion") if (value := query.get(name))}
    document: Object = {
        "dryRun": query.all("dryRun"),
        "gracePeriodSeconds": parse_int64(query, "gracePeriodSeconds"),
        "orphanDependents": query.flag("orphanDependents"),
        "preconditions": preconditions,
    }
    if "propagationPolicy" in query:
        document["propagationPolicy"] = query.get("propagationPolicy")
    return document


def _merged(body: Object, overridden: Sequence[tuple[str, Any]]) -> Object:
    """The body with the preconditions of all keys of that name. A later null removes those before it."""
    for path, value in overridden:
        if path in _OPTION_TYPES:
            _check_type(path, value, _OPTION_TYPES[path])
    earlier = [value for path, value in overridden if path == "preconditions"]
    if not earlier:
        return body
    preconditions: Object = {}
    for value in (*earlier, body["preconditions"]):
        _check_type("preconditions", value, dict)
        preconditions = {} if value is None else {**preconditions, **value}
    return {**body, "preconditions": preconditions}


def _get_typed(document: Mapping[str, Any], name: str, kind: type, prefix: str = "") -> Any:
    value = document.get(name)
    _check_type(f"{prefix}{name}", value, kind)
    return value


def _check_type(path: str, value: Any, kind: type) -> None:
    if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
        raise errors.BadRequest(f"DeleteOptions: {path} must be {_TYPE_NAMES[kind]}")


_OPTION_TYPES: Mapping[str, type] = {
    "dryRun": list,
    "propagationPolicy": str,
    "orphanDependents": bool,
    "gracePeriodSeconds": int,
    "preconditions": dict,
    "preconditions.uid": str,
    "preconditions.resourceVersion": str,
}


_TYPE_NAMES: Mapping[type, str] = {
    list: "a list",
    str: "a string",
    bool: "a boolean",
    dict: "an object",
    int: "an integer",
}


def _raise_if_invalid(kind: str, problems: list[FieldError]) -> None:
    if problems:
        raise errors.Invalid(GroupKind(_META, kind), "", problems)
