"""The changes of the fake cluster, and the events that a watcher with a selector gets of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from apiserver.json.values import deep_copy
from apiserver.meta.resource import Object
from apiserver.meta.selectors import parse_field_selector, parse_label_selector
from registry.cluster.interface import ClusterResource, WatchEvent


@dataclass(slots=True)
class Change:
    rv: int
    type: str
    resource: ClusterResource
    object: Object
    old: Object | None
    manager: str = ""


def matcher(namespace: str, label_selector: str, field_selector: str) -> Callable[[Object], bool]:
    labels = parse_label_selector(label_selector)
    fields = parse_field_selector(field_selector)

    def matches(obj: Object) -> bool:
        metadata = obj["metadata"]
        values = {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}
        in_namespace = not namespace or values["metadata.namespace"] == namespace
        return in_namespace and labels.matches(metadata.get("labels") or {}) and fields.matches(values)

    return matches


def event_of(change: Change, matches: Callable[[Object], bool]) -> WatchEvent | None:
    """Returns the event for a watcher with a selector: ADDED if the object starts to match, DELETED if it no longer
    does."""
    before = change.old is not None and matches(change.old)
    after = change.type != "DELETED" and matches(change.object)
    if not before and not after:
        return None
    type_ = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
    return WatchEvent(type_, deep_copy(change.object))


def objects_at(
    res: ClusterResource, version: int, present: Iterable[Object], history: Sequence[Change]
) -> list[Object]:
    """The objects of a kind as they were at a resourceVersion. Here only, managedFields tell who wrote that version."""
    found = {_name(each): each for each in present}
    managers: dict[tuple[str, str], str] = {}
    for change in reversed(history):
        name = _name(change.object)
        if change.resource != res:
            continue
        if change.rv <= version:
            managers.setdefault(name, change.manager)
        elif change.old is None:
            found.pop(name, None)
        else:
            found[name] = change.old
    return [_with_manager(deep_copy(obj), managers.get(name, "")) for name, obj in found.items()]


def _name(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _with_manager(obj: Object, manager: str) -> Object:
    annotations = obj["metadata"].get("annotations") or {}
    fields: Object = {"f:metadata": {"f:annotations": {f"f:{key}": {} for key in annotations}}}
    obj["metadata"]["managedFields"] = [{"manager": manager, "operation": "Update", "fieldsV1": fields}]
    return obj
