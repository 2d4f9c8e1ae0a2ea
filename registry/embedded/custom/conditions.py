"""The conditions of CustomResourceDefinitions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.meta import object_meta as meta
from apiserver.meta.resource import Object


def is_true(crd: Object, type_: str) -> bool:
    return any(each.get("type") == type_ and each.get("status") == "True" for each in _conditions(crd))


def with_condition(crd: Object, type_: str, status: str, reason: str, message: str) -> Object:
    """Returns a copy of the definition with this condition. An unchanged status keeps its lastTransitionTime.

    There is no observedGeneration, as in Kubernetes without the feature CRDObservedGenerationTracking: `kubectl wait`
    would compare it with the generation, which every change of the spec increases.
    """
    before = next((each for each in _conditions(crd) if each.get("type") == type_), {})
    since = before.get("lastTransitionTime") if before.get("status") == status else meta.now_rfc3339()
    condition = {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    others = [each for each in _conditions(crd) if each.get("type") != type_]
    place = next((index for index, each in enumerate(_conditions(crd)) if each.get("type") == type_), len(others))
    conditions = [*others[:place], condition, *others[place:]]
    return {**crd, "status": {**(crd.get("status") or {}), "conditions": conditions}}


def _conditions(crd: Object) -> Sequence[Mapping[str, Any]]:
    return (crd.get("status") or {}).get("conditions") or ()
