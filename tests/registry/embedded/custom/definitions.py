"""CustomResourceDefinitions that are valid unless a test says otherwise, and the errors of others."""

from __future__ import annotations

from typing import Any

from admission.cel.schema_rules import SchemaRuleCompiler
from registry.embedded.custom.definition_validation import definition_errors

SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}


def version(name: str = "v1", **more: Any) -> dict[str, Any]:
    """A served version; the first one of a definition is stored."""
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}, **more}


def widgets(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """The definition of Widgets in example.com, with these fields of its spec. Its first version is the stored one."""
    first, *others = versions or (version(),)
    return definition("widgets", "Widget", versions=[{**first, "storage": True}, *others], **spec)


def definition(plural: str, kind: str, **spec: Any) -> dict[str, Any]:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    body = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version(storage=True)], **spec}
    stored = [each["name"] for each in body["versions"] if each.get("storage")]
    return {
        "metadata": {"name": f"{plural}.{body['group']}"},
        "spec": body,
        "status": {"storedVersions": stored},
    }


def with_schema(**fields: Any) -> dict[str, Any]:
    """A definition whose objects have these fields in their spec."""
    spec = {"type": "object", "properties": fields}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return widgets(version(schema=schema))


def errors_of(crd: dict[str, Any]) -> list[str]:
    return [str(each) for each in definition_errors(crd, SchemaRuleCompiler())]
