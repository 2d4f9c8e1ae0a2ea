"""Accepts the names that a CustomResourceDefinition requests, unless another kind has them. Pure.

Follows apiextensions-apiserver/pkg/controller/status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from apiserver.meta.resource import GroupKind, GroupResource, Object, Resource
from registry.embedded.custom.conditions import is_true, with_condition

_RESOURCE_NAMES = (("plural", "PluralConflict"), ("singular", "SingularConflict"))
_KIND_NAMES = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


@dataclass(frozen=True, slots=True)
class BuiltInNames:
    """The names of the kinds that are served without a definition, by group. A definition never has one of them, even
    if an earlier release has accepted it: its objects would be those of the built-in kind."""

    resources: Mapping[str, Set[str]]
    kinds: Mapping[str, Set[str]]

    @classmethod
    def of(cls, served: Iterable[Resource]) -> BuiltInNames:
        resources: dict[str, set[str]] = {}
        kinds: dict[str, set[str]] = {}
        for each in served:
            resources.setdefault(each.group, set()).update((each.plural, each.singular, *each.short_names))
            kinds.setdefault(each.group, set()).update((each.kind, each.list_kind))
        return cls(resources, kinds)

    def exclude(self, crd: Object) -> bool:
        """True if the definition requests the plural or the kind of one of them: it is never served."""
        group, names = crd["spec"]["group"], crd["spec"]["names"]
        return names.get("plural") in self.resources.get(group, ()) or names.get("kind") in self.kinds.get(group, ())


NO_NAMES = BuiltInNames({}, {})


def taken_names(resource: GroupResource, kind: GroupKind) -> Object:
    """A kind that has no definition, in the form of one whose names are accepted."""
    names = {"plural": resource.resource, "kind": kind.kind, "listKind": f"{kind.kind}List"}
    return {"spec": {"group": resource.group}, "status": {"acceptedNames": names}}


def with_accepted_names(crd: Object, others: Iterable[Object], built_in: BuiltInNames = NO_NAMES) -> Object:
    """Returns a copy of the definition with its accepted names, and the conditions NamesAccepted and Established.

    `others` are all other definitions. A name that one of them has in the same group is not accepted.
    """
    group = crd["spec"]["group"]
    accepted_by_others = [_accepted(each) for each in others if each["spec"]["group"] == group]
    resources = {
        name for each in accepted_by_others for name in (each.get("plural"), each.get("singular"), *_short(each))
    }
    kinds = {name for each in accepted_by_others for name in (each.get("kind"), each.get("listKind"))}
    never_resources, never_kinds = built_in.resources.get(group, set()), built_in.kinds.get(group, set())
    requested, accepted = crd["spec"]["names"], _without(_accepted(crd), never_resources, never_kinds)
    conflict: tuple[str, str] | None = None
    for names, used in ((_RESOURCE_NAMES, resources | never_resources), (_KIND_NAMES, kinds | never_kinds)):
        for field, reason in names:
            wanted = requested.get(field) or ""
            if wanted != accepted.get(field) and wanted in used:
                conflict = reason, f'"{wanted}" is already in use'
            else:
                accepted[field] = wanted
    resources |= never_resources
    taken = [name for name in _short(requested) if name not in _short(accepted) and name in resources]
    if taken:
        texts = [f'"{name}" is already in use' for name in taken]
        conflict = "ShortNamesConflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    else:
        _copy(requested, accepted, "shortNames")
    _copy(requested, accepted, "categories")
    named = {**crd, "status": {**(crd.get("status") or {}), "acceptedNames": accepted}}
    return _with_conditions(named, conflict, never=built_in.exclude(crd))


def _with_conditions(crd: Object, conflict: tuple[str, str] | None, *, never: bool) -> Object:
    reason, message = conflict or ("NoConflicts", "no conflicts found")
    crd = with_condition(crd, "NamesAccepted", "False" if conflict else "True", reason, message)
    if conflict and (never or not is_true(crd, "Established")):
        return with_condition(crd, "Established", "False", "NotAccepted", "not all names are accepted")
    return with_condition(crd, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted")


def _accepted(crd: Object) -> dict[str, Any]:
    return (crd.get("status") or {}).get("acceptedNames") or {}


def _without(names: Object, resources: Set[str], kinds: Set[str]) -> dict[str, Any]:
    """A copy of the names without these."""
    kept = {name: value for name, value in names.items() if name not in ("kind", "listKind") or value not in kinds}
    for name, _ in _RESOURCE_NAMES:
        if kept.get(name) in resources:
            del kept[name]
    if "shortNames" in kept:
        kept["shortNames"] = [each for each in kept["shortNames"] if each not in resources]
    return kept


def _short(names: Object) -> list[str]:
    return names.get("shortNames") or []


def _copy(source: Object, target: Object, field: str) -> None:
    if source.get(field):
        target[field] = source[field]
    else:
        target.pop(field, None)
