"""Which of the names that a CustomResourceDefinition requests it gets (apiextensions-apiserver/pkg/controller/status).
Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.meta.resource import Object
from registry.embedded.custom.conditions import is_true, with_condition

_RESOURCE_NAMES = (("plural", "PluralConflict"), ("singular", "SingularConflict"))
_KIND_NAMES = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


def with_accepted_names(crd: Object, others: Iterable[Object]) -> Object:
    """Returns a copy of the definition with its accepted names, and the conditions NamesAccepted and Established.

    `others` are all other definitions. A name that one of them has in the same group is not accepted.
    """
    group = crd["spec"]["group"]
    accepted_by_others = [_accepted(each) for each in others if each["spec"]["group"] == group]
    resources = {
        name for each in accepted_by_others for name in (each.get("plural"), each.get("singular"), *_short(each))
    }
    kinds = {name for each in accepted_by_others for name in (each.get("kind"), each.get("listKind"))}
    requested, accepted = crd["spec"]["names"], dict(_accepted(crd))
    conflict: tuple[str, str] | None = None
    for names, used in ((_RESOURCE_NAMES, resources), (_KIND_NAMES, kinds)):
        for field, reason in names:
            wanted = requested.get(field) or ""
            if wanted != accepted.get(field) and wanted in used:
                conflict = reason, f'"{wanted}" is already in use'
            else:
                accepted[field] = wanted
    taken = [name for name in _short(requested) if name not in _short(accepted) and name in resources]
    if taken:
        texts = [f'"{name}" is already in use' for name in taken]
        conflict = "ShortNamesConflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    else:
        _copy(requested, accepted, "shortNames")
    _copy(requested, accepted, "categories")
    named = {**crd, "status": {**(crd.get("status") or {}), "acceptedNames": accepted}}
    return _with_conditions(named, conflict)


def _with_conditions(crd: Object, conflict: tuple[str, str] | None) -> Object:
    reason, message = conflict or ("NoConflicts", "no conflicts found")
    crd = with_condition(crd, "NamesAccepted", "False" if conflict else "True", reason, message)
    if is_true(crd, "Established"):
        return crd
    if conflict:
        return with_condition(crd, "Established", "False", "NotAccepted", "not all names are accepted")
    return with_condition(crd, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted")


def _accepted(crd: Object) -> dict[str, Any]:
    return (crd.get("status") or {}).get("acceptedNames") or {}


def _short(names: Object) -> list[str]:
    return names.get("shortNames") or []


def _copy(source: Object, target: Object, field: str) -> None:
    if source.get(field):
        target[field] = source[field]
    else:
        target.pop(field, None)
