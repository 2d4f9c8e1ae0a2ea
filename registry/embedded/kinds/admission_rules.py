"""Validation of the parts that webhooks and admission policies have in common: the requests that they match, and
conditions. Messages are those of kube-apiserver. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.label_validation import qualified_name_errors
from apiserver.meta.name_validation import path_segment_errors
from registry.embedded.kinds.label_selector_validation import label_selector_errors

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_MAX_CONDITIONS = 64


def unsupported(of: Mapping[str, Any], path: str, field: str, choices: Sequence[str]) -> Iterator[FieldError]:
    """The error of a field whose value is none of the choices. A field that is absent has a default."""
    value = of.get(field)
    if value is not None and value not in choices:
        yield errors.not_supported(f"{path}.{field}", value, choices)


def duplicates(values: Sequence[str], path: str, field: str = "") -> Iterator[FieldError]:
    """An error for each value that stands before, of those that are not empty."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value and value in seen:
            yield FieldError("FieldValueDuplicate", f"{path}[{index}]{field}", value)
        seen.add(value)


def match_errors(match: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """The errors of a MatchResources."""
    yield from unsupported(match, path, "matchPolicy", MATCH_POLICIES)
    yield from selector_errors(match, path)
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            yield from _named_rule_errors(rule, f"{path}.{field}[{index}]")


def selector_errors(match: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for field in ("namespaceSelector", "objectSelector"):
        yield from label_selector_errors(match.get(field) or {}, f"{path}.{field}")


def _named_rule_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    names = rule.get("resourceNames") or ()
    for index, name in enumerate(names):
        for why in path_segment_errors(name):
            yield errors.invalid(f"{path}.resourceNames[{index}]", name, why)
    yield from duplicates(names, f"{path}.resourceNames")
    yield from rule_errors(rule, path)


def rule_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """The errors of a RuleWithOperations."""
    yield from _list_errors(rule, path, "operations", "operations")
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in _OPERATIONS:
            yield errors.not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    yield from _list_errors(rule, path, "apiGroups", "API groups")
    yield from _list_errors(rule, path, "apiVersions", "API versions")
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield errors.required(f"{path}.apiVersions[{index}]")
    yield from _resource_errors(rule.get("resources") or (), f"{path}.resources")
    yield from unsupported(rule, path, "scope", _SCOPES)


def _list_errors(rule: Mapping[str, Any], path: str, field: str, others: str) -> Iterator[FieldError]:
    values = rule.get(field) or ()
    if not values:
        yield errors.required(f"{path}.{field}")
    if len(values) > 1 and "*" in values:
        yield errors.invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {others}")


def _resource_errors(resources: Sequence[str], path: str) -> Iterator[FieldError]:
    """The errors of resources and subresources, such as `pods`, `pods/*`, `*/scale` and `*`."""
    if not resources:
        yield errors.required(path)
    all_of: set[str] = set()
    of_all: set[str] = set()
    for index, each in enumerate(resources):
        if not each:
            yield errors.required(f"{path}[{index}]")
        resource, slash, subresource = each.partition("/")
        if not slash:
            continue
        if resource in all_of:
            yield errors.invalid(f"{path}[{index}]", each, f"if '{resource}/*' is present, must not specify {each}")
        if subresource in of_all:
            yield errors.invalid(f"{path}[{index}]", each, f"if '*/{subresource}' is present, must not specify {each}")
        if subresource == "*":
            all_of.add(resource)
        if resource == "*":
            of_all.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        yield errors.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and any(each not in ("", "*") and "/" not in each for each in resources):
        why = "if '*' is present, must not specify other resources without subresources"
        yield errors.invalid(path, resources, why)


def condition_errors(conditions: Sequence[Mapping[str, Any]], path: str, *, texts: bool = True) -> Iterator[FieldError]:
    """The errors of matchConditions, without those of expressions that do not compile. With `texts`, an expression that
    is missing is one, too."""
    if len(conditions) > _MAX_CONDITIONS:
        detail = f"{len(conditions)}: must have at most {_MAX_CONDITIONS} items"
        yield FieldError("FieldValueTooMany", path, errors.OMITTED, detail)
    for index, condition in enumerate(conditions):
        if texts and not (condition.get("expression") or "").strip():
            yield errors.required(f"{path}[{index}].expression")
        name = condition.get("name") or ""
        if not name:
            yield errors.required(f"{path}[{index}].name")
            continue
        for why in qualified_name_errors(name):
            yield errors.invalid(f"{path}[{index}].name", name, why)
    yield from duplicates([each.get("name") or "" for each in conditions], path, ".name")
