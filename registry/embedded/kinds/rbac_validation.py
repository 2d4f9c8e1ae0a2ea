"""Defaulting and validation of RBAC's kinds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object
from registry.embedded.kinds.kind import NoValidation
from registry.embedded.kinds.label_selector_validation import label_selector_errors
from registry.rbac import role_index as rbac

_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


class RoleValidation(NoValidation):
    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def validate(self, obj: Object) -> list[FieldError]:
        rules = obj.get("rules") or []
        return [problem for index, rule in enumerate(rules) for problem in self._errors(rule, f"rules[{index}]")]

    def validate_create(self, obj: Object) -> list[FieldError]:
        return list(_aggregation_errors(obj))

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        # what an earlier version has stored can still be labelled and deleted
        return [] if new.get("aggregationRule") == old.get("aggregationRule") else list(_aggregation_errors(new))

    def _errors(self, rule: dict[str, Any], path: str) -> list[FieldError]:
        problems = []
        if not rule.get("verbs"):
            problems.append(errors.required(f"{path}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            if self._namespaced:
                why = "namespaced rules cannot apply to non-resource URLs"
                problems.append(errors.invalid(f"{path}.nonResourceURLs", urls, why))
            if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
                why = "rules cannot apply to both regular resources and non-resource URLs"
                problems.append(errors.invalid(f"{path}.nonResourceURLs", urls, why))
            return problems
        if not rule.get("apiGroups"):
            problems.append(errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            problems.append(errors.required(f"{path}.resources", "resource rules must supply at least one resource"))
        return problems


class RoleBindingValidation(NoValidation):
    def __init__(self, *, namespaced: bool) -> None:
        self._roles = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)

    def default(self, obj: Object) -> None:
        reference = obj.get("roleRef")
        if isinstance(reference, dict) and not reference.get("apiGroup"):
            obj["roleRef"] = {**reference, "apiGroup": rbac.GROUP}
        if obj.get("subjects"):
            obj["subjects"] = [_with_group(subject) for subject in obj["subjects"]]

    def validate(self, obj: Object) -> list[FieldError]:
        reference = obj.get("roleRef") or {}
        problems = []
        if reference.get("apiGroup") not in (None, rbac.GROUP):
            problems.append(errors.not_supported("roleRef.apiGroup", reference["apiGroup"], (rbac.GROUP,)))
        if reference.get("kind") not in self._roles:
            problems.append(errors.not_supported("roleRef.kind", reference.get("kind", ""), self._roles))
        if not reference.get("name"):
            problems.append(errors.required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects") or []):
            problems += self._subject_errors(subject, f"subjects[{index}]")
        return problems

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new.get("roleRef") == old.get("roleRef"):
            return []
        return [errors.invalid("roleRef", new.get("roleRef"), "cannot change roleRef")]

    def _subject_errors(self, subject: dict[str, Any], path: str) -> list[FieldError]:
        problems = []
        kind = subject.get("kind")
        if not subject.get("name"):
            problems.append(errors.required(f"{path}.name"))
        if kind not in _SUBJECT_KINDS:
            problems.append(errors.not_supported(f"{path}.kind", kind or "", _SUBJECT_KINDS))
        elif subject.get("apiGroup", "") != _group_of(kind):
            problems.append(errors.not_supported(f"{path}.apiGroup", subject["apiGroup"], (_group_of(kind),)))
        if kind == "ServiceAccount" and not subject.get("namespace"):
            problems.append(errors.required(f"{path}.namespace"))
        return problems


def _aggregation_errors(role: Object) -> Iterator[FieldError]:
    rule, path = role.get("aggregationRule"), "aggregationRule.clusterRoleSelectors"
    if rule is None:
        return
    selectors = rule.get("clusterRoleSelectors") or ()
    if not selectors:
        yield errors.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        problems = list(label_selector_errors(selector, f"{path}[{index}]"))
        yield from problems
        if problems:
            yield errors.invalid(f"{path}[{index}]", None, "invalid label selector.")


def _with_group(subject: dict[str, Any]) -> dict[str, Any]:
    group = _group_of(subject.get("kind"))
    return subject if subject.get("apiGroup") or not group else {**subject, "apiGroup": group}


def _group_of(kind: object) -> str:
    return rbac.GROUP if kind in ("User", "Group") else ""
