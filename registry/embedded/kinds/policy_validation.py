"""Validation of ValidatingAdmissionPolicies and their bindings, with the messages of kube-apiserver. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from apiserver.json.values import equal
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.label_validation import qualified_name_errors
from apiserver.meta.name_validation import (
    dns1035_label_errors,
    dns1123_subdomain_errors,
    kind_problem,
    path_segment_errors,
)
from apiserver.meta.resource import Object
from registry.embedded.kinds.admission_rules import (
    FAILURE_POLICIES,
    condition_errors,
    duplicates,
    match_errors,
    unsupported,
)
from registry.embedded.kinds.kind import NoValidation
from registry.embedded.kinds.label_selector_validation import label_selector_errors

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_PARAMETER_ACTIONS = ("Deny", "Allow")
_MAX_AUDIT_ANNOTATIONS = 20
_DENY_AND_WARN = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)

ExpressionErrors = Callable[[Object], list[FieldError]]
"""One error for each expression of a policy that does not compile."""


class PolicyValidation(NoValidation):
    """A stored policy may be invalid, by an earlier version of this server: only a new one, and a changed spec, is
    judged."""

    def __init__(self, expression_errors: ExpressionErrors) -> None:
        self._expression_errors = expression_errors

    def validate(self, obj: Object) -> list[FieldError]:
        variables = (obj.get("spec") or {}).get("variables") or []
        return [
            problem
            for index, variable in enumerate(variables)
            for problem in _variable_errors(variable, f"spec.variables[{index}]")
        ]

    def validate_create(self, obj: Object) -> list[FieldError]:
        return [
            *_policy_errors(obj.get("spec") or {}, obj["metadata"].get("name") or ""),
            *self._expression_errors(obj),
        ]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [] if equal(new.get("spec"), old.get("spec")) else self.validate_create(new)

    def is_slow(self) -> bool:
        # all expressions are compiled
        return True


def _variable_errors(variable: dict[str, Any], path: str) -> list[FieldError]:
    name, problems = variable.get("name") or "", []
    if not name.strip():
        problems.append(errors.required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        problems.append(errors.invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not (variable.get("expression") or "").strip():
        problems.append(errors.required(f"{path}.expression", "expression is not specified"))
    return problems


def _policy_errors(spec: Mapping[str, Any], name: str) -> Iterator[FieldError]:
    """The errors of a policy but for those of expressions."""
    yield from unsupported(spec, "spec", "failurePolicy", FAILURE_POLICIES)
    if (params := spec.get("paramKind")) is not None:
        yield from _param_kind_errors(params, "spec.paramKind")
    match = spec.get("matchConstraints")
    if match is None:
        yield errors.required("spec.matchConstraints")
    else:
        yield from match_errors(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            yield errors.required("spec.matchConstraints.resourceRules")
    yield from condition_errors(spec.get("matchConditions") or (), "spec.matchConditions", texts=False)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        for field in ("validations", "auditAnnotations"):
            yield errors.required(f"spec.{field}", "validations or auditAnnotations must contain at least one item")
    for index, validation in enumerate(validations):
        yield from _message_errors(validation, f"spec.validations[{index}]")
    yield from _annotation_errors(annotations, name)


def _param_kind_errors(params: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    api_version, kind = params.get("apiVersion") or "", params.get("kind") or ""
    group, _, version = api_version.rpartition("/")
    if not api_version:
        yield errors.required(f"{path}.apiVersion")
    elif "/" in group:
        yield errors.invalid(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    else:
        if group and (problems := dns1123_subdomain_errors(group)):
            yield errors.invalid(f"{path}.apiVersion", group, ",".join(problems))
        if not version:
            yield errors.invalid(f"{path}.apiVersion", api_version, "version must be specified")
        elif problems := dns1035_label_errors(version):
            yield errors.invalid(f"{path}.apiVersion", version, ",".join(problems))
    if not kind:
        yield errors.required(f"{path}.kind")
    elif why := kind_problem(kind):
        yield errors.invalid(f"{path}.kind", kind, why)


def _message_errors(validation: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    message = validation.get("message") or ""
    if message and not message.strip():
        yield errors.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        yield errors.invalid(f"{path}.message", message, "must not contain line breaks")
    yield from unsupported(validation, path, "reason", _REASONS)


def _annotation_errors(annotations: Sequence[Mapping[str, Any]], policy: str) -> Iterator[FieldError]:
    path = "spec.auditAnnotations"
    if len(annotations) > _MAX_AUDIT_ANNOTATIONS:
        yield errors.invalid(path, annotations, f"must not have more than {_MAX_AUDIT_ANNOTATIONS} auditAnnotations")
    keys = [each.get("key") or "" for each in annotations]
    for index, key in enumerate(keys):
        if not policy:
            yield errors.invalid(f"{path}[{index}].key", key, "requires metadata.name be non-empty")
            continue
        name = f"{policy}/{key}"
        for why in qualified_name_errors(name):
            yield errors.invalid(f"{path}[{index}].key", name, why)
    yield from duplicates(keys, path, ".key")


class PolicyBindingValidation(NoValidation):
    """A stored binding may be invalid, by an earlier version of this server: only a new one, and a change of the spec,
    is judged."""

    def validate_create(self, obj: Object) -> list[FieldError]:
        return list(_binding_errors(obj.get("spec") or {}))

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [] if equal(new.get("spec"), old.get("spec")) else self.validate_create(new)


def _binding_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    policy, actions = spec.get("policyName") or "", spec.get("validationActions") or ()
    if not policy:
        yield errors.required("spec.policyName")
    else:
        for why in dns1123_subdomain_errors(policy):
            yield errors.invalid("spec.policyName", policy, why)
    if (reference := spec.get("paramRef")) is not None:
        yield from _param_ref_errors(reference, "spec.paramRef")
    yield from match_errors(spec.get("matchResources") or {}, "spec.matchResources")
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield errors.not_supported(f"spec.validationActions[{index}]", action, _ACTIONS)
    yield from duplicates(actions, "spec.validationActions")
    if "Deny" in actions and "Warn" in actions:
        yield errors.invalid("spec.validationActions", actions, _DENY_AND_WARN)
    if not actions:
        yield errors.required("spec.validationActions", "at least one validation action is required")


def _param_ref_errors(reference: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    name, selector = reference.get("name") or "", reference.get("selector")
    for why in path_segment_errors(name):
        yield errors.invalid(f"{path}.name", name, why)
    if name and selector is not None:
        for field in ("name", "selector"):
            yield errors.forbidden(f"{path}.{field}", "name and selector are mutually exclusive")
    if selector is not None:
        yield from label_selector_errors(selector, f"{path}.selector")
    if not name and selector is None:
        yield errors.required(path, "one of name or selector must be specified")
    if reference.get("parameterNotFoundAction"):
        yield from unsupported(reference, path, "parameterNotFoundAction", _PARAMETER_ACTIONS)
    else:
        yield errors.required(f"{path}.parameterNotFoundAction")
