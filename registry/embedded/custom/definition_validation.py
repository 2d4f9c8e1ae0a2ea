"""The validation of CustomResourceDefinitions (apiextensions-apiserver/pkg/apis/apiextensions/validation). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apiserver.json.values import equal
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.name_validation import dns1035_label_errors, dns1123_subdomain_errors, kind_problem
from apiserver.meta.resource import Object, Schema
from apiserver.schema.pruning_and_defaulting import apply_defaults, prune
from apiserver.schema.rules import RULES, RuleCompiler, RuleValidator
from apiserver.schema.validation import SchemaValidator
from registry.embedded.custom.conditions import is_true
from registry.embedded.custom.pattern_checks import pattern_errors
from registry.embedded.custom.structural_checks import structural_errors

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SCOPES = ("Cluster", "Namespaced")
_STRATEGIES = ("None", "Webhook")
_SELECTABLE = ("string", "boolean", "integer")
_MOST_SELECTABLE = 8
_APPROVED = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")


def definition_errors(crd: Object, compiler: RuleCompiler) -> list[FieldError]:
    """All errors of a definition whose fields have the right types."""
    spec = crd.get("spec") or {}
    return [*_spec_errors(spec, compiler), *_stored_version_errors(crd), *_approval_errors(crd)]


def definition_update_errors(new: Object, old: Object) -> list[FieldError]:
    """The changes that are not allowed, besides those that `definition_errors` finds."""
    problems: list[FieldError] = []
    established = is_true(old, "Established")
    fixed = [("group",), ("names", "plural"), *([("scope",), ("names", "kind")] if established else [])]
    for path in fixed:
        now, before = _at(new["spec"], path), _at(old["spec"], path)
        if now != before:
            problems.append(errors.invalid(f"spec.{'.'.join(path)}", now, "field is immutable"))
    return problems


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = (value or {}).get(name)
    return value


def _spec_errors(spec: Mapping[str, Any], compiler: RuleCompiler) -> Iterator[FieldError]:
    group, scope = spec.get("group") or "", spec.get("scope") or ""
    if not group:
        yield errors.required("spec.group")
    elif problems := dns1123_subdomain_errors(group):
        yield errors.invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield errors.invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield errors.required("spec.scope")
    elif scope not in _SCOPES:
        yield errors.not_supported("spec.scope", scope, _SCOPES)
    versions = spec.get("versions") or ()
    yield from _version_name_errors(versions)
    yield from _version_errors(versions, compiler)
    yield from _name_errors(spec.get("names") or {})
    yield from _conversion_errors(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        if any(_has_default((version.get("schema") or {}).get("openAPIV3Schema")) for version in versions):
            why = "must be false in order to use defaults in the schema"
            yield errors.invalid("spec.preserveUnknownFields", True, why)
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield errors.invalid("spec.preserveUnknownFields", True, why)


def _version_name_errors(versions: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        for problem in _label_errors(version.get("name") or "-", f"{path}.name"):
            yield errors.invalid(problem.field, version.get("name") or "", problem.detail)
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            why = "can only be set for deprecated versions"
            yield errors.invalid(f"{path}.deprecationWarning", version["deprecationWarning"], why)
    if len({version.get("name") for version in versions}) < len(versions):
        yield errors.invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield errors.invalid("spec.versions", versions, "must have exactly one version marked as storage version")


def _name_errors(names: Mapping[str, Any]) -> Iterator[FieldError]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield errors.required(f"spec.names.{field}")
    for field in ("plural", "singular"):
        yield from _label_errors(names.get(field), f"spec.names.{field}")
    for field in ("kind", "listKind"):
        name = names.get(field) or ""
        if name and (why := kind_problem(name)):
            yield errors.invalid(f"spec.names.{field}", name, why)
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            yield from _label_errors(name, f"spec.names.{field}[{index}]")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield errors.invalid("spec.names.listKind", names["kind"], "kind and listKind may not be the same")


def _label_errors(name: str | None, path: str) -> Iterator[FieldError]:
    if name and (problems := dns1035_label_errors(name)):
        yield errors.invalid(path, name, ",".join(problems))


def _conversion_errors(conversion: Mapping[str, Any]) -> Iterator[FieldError]:
    strategy = conversion.get("strategy") or ""
    if strategy == "Webhook":
        why = "webhooks are not called by this server: the strategy must be None"
        yield errors.invalid("spec.conversion.strategy", strategy, why)
    elif strategy and strategy not in _STRATEGIES:
        yield errors.not_supported("spec.conversion.strategy", strategy, _STRATEGIES)
    elif conversion.get("webhook"):
        why = "should not be set when strategy is not set to Webhook"
        yield errors.forbidden("spec.conversion.webhookClientConfig", why)


def _version_errors(versions: Sequence[Mapping[str, Any]], compiler: RuleCompiler) -> Iterator[FieldError]:
    """Checks parts that are the same in all versions once; the path of their errors is that of an older API."""
    for path, schema in _once(versions, "schema", "spec.validation"):
        found = (schema or {}).get("openAPIV3Schema")
        if not isinstance(found, Mapping):
            yield errors.required(f"{path}.openAPIV3Schema")
        else:
            yield from _schema_errors(found, f"{path}.openAPIV3Schema", compiler)
    for path, subresources in _once(versions, "subresources", "spec.subresources"):
        if (scale := (subresources or {}).get("scale")) is not None:
            yield from _scale_errors(scale, f"{path}.scale")
    for path, columns in _once(versions, "additionalPrinterColumns", "spec.additionalPrinterColumns"):
        for index, column in enumerate(columns or ()):
            yield from _column_errors(column, f"{path}[{index}]")
    for index, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        fields = version.get("selectableFields") or ()
        if fields and isinstance(schema, Mapping):
            alone = "spec.selectableFields" if len(versions) == 1 else f"spec.versions[{index}].selectableFields"
            yield from _selectable_errors(fields, schema, alone)


def _once(versions: Sequence[Mapping[str, Any]], field: str, shared: str) -> Iterator[tuple[str, Any]]:
    values = [version.get(field) for version in versions]
    if values and values[0] and all(equal(value, values[0]) for value in values):
        yield shared, values[0]
        return
    for index, value in enumerate(values):
        yield f"spec.versions[{index}].{field}", value


def _schema_errors(schema: Schema, path: str, compiler: RuleCompiler) -> Iterator[FieldError]:
    problems = [*structural_errors(schema, path), *pattern_errors(schema, path, compiler.matches)]
    yield from problems
    if problems:
        return
    problems = list(_rule_errors(schema, path, compiler, is_root=True))
    yield from problems
    yield from _default_errors(schema, path, compiler, judge_rules=not problems)


def _default_errors(schema: Schema, path: str, compiler: RuleCompiler, *, judge_rules: bool) -> Iterator[FieldError]:
    """A default must be valid, by the rules as well, and have no fields that the schema does not have."""
    if "default" in schema:
        value = schema["default"]
        pruned = prune(schema, value)
        if pruned != value:
            yield errors.invalid(f"{path}.default", value, "must not have unknown fields")
        apply_defaults(schema, pruned)
        found = SchemaValidator(schema, matches=compiler.matches).errors(pruned)
        for each in found:
            below = "" if each.field in ("", errors.NO_FIELD) else f".{each.field}"
            yield replace(each, field=f"{path}.default{below}")
        if judge_rules and not found:
            rules = RuleValidator({"type": "object", "properties": {"default": schema}}, compiler)
            for each in rules.errors({"default": pruned}):
                yield replace(each, field=f"{path}.{each.field}")
    for name, each in (schema.get("properties") or {}).items():
        yield from _default_errors(each, f"{path}.properties[{name}]", compiler, judge_rules=judge_rules)
    for name in ("items", "additionalProperties"):
        if isinstance(part := schema.get(name), Mapping):
            yield from _default_errors(part, f"{path}.{name}", compiler, judge_rules=judge_rules)


def _has_default(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return "default" in schema or any(_has_default(part) for part in parts)


def _rule_errors(schema: Schema, path: str, compiler: RuleCompiler, *, is_root: bool) -> Iterator[FieldError]:
    if rules := schema.get(RULES):
        texts = list(_rule_text_errors(rules, path))
        yield from texts
        for problem in () if texts else compiler.compile(schema, is_root=is_root).problems():
            where = f"{path}.{RULES}[{problem.index}].{problem.field}"
            yield errors.invalid(where, rules[problem.index], problem.text)
    for name, each in (schema.get("properties") or {}).items():
        embedded = bool(each.get("x-kubernetes-embedded-resource"))
        yield from _rule_errors(each, f"{path}.properties[{name}]", compiler, is_root=embedded)
    for name in ("items", "additionalProperties"):
        if isinstance(part := schema.get(name), Mapping):
            embedded = bool(part.get("x-kubernetes-embedded-resource"))
            yield from _rule_errors(part, f"{path}.{name}", compiler, is_root=embedded)


def _rule_text_errors(rules: Sequence[Mapping[str, Any]], path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(rules):
        where, text = f"{path}.{RULES}[{index}]", (rule.get("rule") or "").strip()
        message = rule.get("message") or ""
        if not text:
            yield errors.required(f"{where}.rule", "rule is not specified")
        elif message and not message.strip():
            yield errors.invalid(f"{where}.message", message, "must be non-empty if specified")
        elif "\n" in message.strip():
            yield errors.invalid(f"{where}.message", message, "must not contain line breaks")
        elif "\n" in text and not message:
            why = "message must be specified if rule contains line breaks"
            yield errors.required(f"{where}.message", why)
        reasons = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
        if rule.get("reason") is not None and rule["reason"] not in reasons:
            yield errors.not_supported(f"{where}.reason", rule["reason"], reasons)


def _selectable_errors(fields: Sequence[Mapping[str, Any]], schema: Schema, path: str) -> Iterator[FieldError]:
    unique: set[str] = set()
    for index, field in enumerate(fields):
        text, where = field.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not text:
            yield errors.required(where)
            continue
        found: Schema = schema
        for name in text.removeprefix(".").split("."):
            found = (found.get("properties") or {}).get(name) or {}
        if not text.startswith(".") or not found:
            yield errors.invalid(where, text, "is an invalid path: does not refer to a valid field")
            continue
        if text.startswith(".metadata"):
            yield errors.invalid(where, text, "must not point to fields in metadata")
        elif found.get("type") not in _SELECTABLE:
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            yield errors.invalid(where, text, why)
        if text in unique:
            yield FieldError("FieldValueDuplicate", where, text)
        unique.add(text)
    if len(unique) > _MOST_SELECTABLE:
        yield FieldError("FieldValueTooMany", path, len(unique), f"must have at most {_MOST_SELECTABLE} items")


def _scale_errors(scale: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    required = {"specReplicasPath": ".spec.", "statusReplicasPath": ".status."}
    for name, prefix in required.items():
        found = scale.get(name) or ""
        if not found:
            yield errors.required(f"{path}.{name}")
        elif not found.startswith(prefix):
            yield errors.invalid(f"{path}.{name}", found, f"should be a json path under {prefix.rstrip('.')}")
    selector = scale.get("labelSelectorPath") or ""
    if selector and not selector.startswith((".spec.", ".status.")):
        why = "should be a json path under either .spec or .status"
        yield errors.invalid(f"{path}.labelSelectorPath", selector, why)


def _column_errors(column: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    kind, format_, text = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
    if not column.get("name"):
        yield errors.required(f"{path}.name")
    why = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield errors.required(f"{path}.type", why)
    elif kind not in _COLUMN_TYPES:
        yield errors.invalid(f"{path}.type", kind, why)
    if format_ and format_ not in _COLUMN_FORMATS:
        yield errors.invalid(f"{path}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not text:
        yield errors.required(f"{path}.JSONPath")
    elif not text.startswith("."):
        why = "must be a simple json path starting with ."
        yield errors.invalid(f"{path}.JSONPath", text, why)


def _stored_version_errors(crd: Object) -> Iterator[FieldError]:
    stored = (crd.get("status") or {}).get("storedVersions") or []
    names = [version.get("name") for version in (crd.get("spec") or {}).get("versions") or ()]
    if not stored:
        yield errors.invalid("status.storedVersions", stored, "must have at least one stored version")
    for index, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield errors.invalid(f"status.storedVersions[{index}]", name, why)


def _approval_errors(crd: Object) -> Iterator[FieldError]:
    group = (crd.get("spec") or {}).get("group") or ""
    if not any(group == each or group.endswith(f".{each}") for each in _PROTECTED):
        return
    value = (crd["metadata"].get("annotations") or {}).get(_APPROVED)
    where = f"metadata.annotations[{_APPROVED}]"
    if value is None:
        why = (
            'protected groups must have approval annotation "api-approved.kubernetes.io", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield errors.required(where, why)
    elif not value.startswith(("https://", "http://", "unapproved")):
        why = (
            f'protected groups must have approval annotation "{_APPROVED}" with either a URL or a reason starting with '
            '"unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
        )
        yield errors.invalid(where, value, why)
