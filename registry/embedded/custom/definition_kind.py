"""The kind CustomResourceDefinition."""

from __future__ import annotations

from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object
from apiserver.schema.rules import RuleCompiler
from registry.embedded.custom.conditions import with_condition
from registry.embedded.custom.definition_validation import definition_errors, definition_update_errors
from registry.embedded.custom.schema_types import with_schema_types
from registry.embedded.kinds import schema_builders as schemas
from registry.embedded.kinds import table_cells as cells
from registry.embedded.kinds.kind import CREATED_AT, Kind, NoValidation
from registry.embedded.kinds.schema_builders import ANYTHING, BOOLEAN, INTEGER, STRING, STRINGS, list_of, struct
from registry.generic.deletion import MetadataFinalizers

GROUP = "apiextensions.k8s.io"
DEFINITIONS = f"customresourcedefinitions.{GROUP}"
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

_NAMES = struct(
    {
        "plural": STRING,
        "singular": STRING,
        "kind": STRING,
        "listKind": STRING,
        "shortNames": STRINGS,
        "categories": STRINGS,
    }
)
_COLUMN = struct(
    {
        **dict.fromkeys(("name", "type", "format", "description", "jsonPath"), STRING),
        "priority": INTEGER,
    }
)
_SUBRESOURCES = struct(
    {
        "status": ANYTHING,
        "scale": struct(dict.fromkeys(("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), STRING)),
    }
)
_VERSION = struct(
    {
        "name": STRING,
        **dict.fromkeys(("served", "storage", "deprecated"), BOOLEAN),
        "deprecationWarning": STRING,
        "schema": struct({"openAPIV3Schema": ANYTHING}),
        "subresources": _SUBRESOURCES,
        "additionalPrinterColumns": list_of(_COLUMN, **{"x-kubernetes-list-type": "atomic"}),
        "selectableFields": list_of(struct({"jsonPath": STRING}), **{"x-kubernetes-list-type": "atomic"}),
    }
)
_SPEC = struct(
    {
        "group": STRING,
        "names": _NAMES,
        "scope": STRING,
        "versions": list_of(_VERSION, **{"x-kubernetes-list-type": "atomic"}),
        "conversion": struct({"strategy": STRING, "webhook": ANYTHING}),
        "preserveUnknownFields": BOOLEAN,
    }
)
_STATUS = struct({"conditions": schemas.CONDITIONS, "acceptedNames": _NAMES, "storedVersions": STRINGS})


def with_spec_defaults(spec: Object) -> Object:
    """Returns a copy of the spec of a definition with its defaults."""
    names = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    names["singular"] = names.get("singular") or kind.lower()
    names["listKind"] = names.get("listKind") or (f"{kind}List" if kind else "")
    return {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}


class _DefinitionValidation(NoValidation):
    def __init__(self, compiler: RuleCompiler) -> None:
        self._compiler = compiler

    def initialize(self, obj: Object) -> None:
        obj["status"] = {"acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}

    def default(self, obj: Object) -> None:
        if not obj.get("spec"):
            return
        spec = obj["spec"] = with_spec_defaults(with_schema_types(obj)["spec"])
        if "status" in obj:
            stored = obj["status"].get("storedVersions") or []
            added = [each["name"] for each in spec.get("versions") or () if each.get("storage") and each.get("name")]
            obj["status"] = {**obj["status"], "storedVersions": list(dict.fromkeys([*stored, *added[:1]]))}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        names, name = spec.get("names") or {}, obj["metadata"].get("name") or ""
        problems = definition_errors(obj, self._compiler)
        if name and name != f"{names.get('plural', '')}.{spec.get('group', '')}":
            problems.insert(0, errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
        return problems

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return definition_update_errors(new, old)

    def is_slow(self) -> bool:
        # all rules are compiled
        return True


class _DefinitionFinalization(MetadataFinalizers):
    """The first DELETE adds a finalizer, which is removed when all objects of the kind are deleted."""

    def has_finalizers(self, obj: Object) -> bool:
        return "deletionTimestamp" not in obj["metadata"] or super().has_finalizers(obj)

    def mark_terminating(self, obj: Object) -> None:
        metadata: dict[str, Any] = obj["metadata"]
        metadata["finalizers"] = list(dict.fromkeys([*(metadata.get("finalizers") or ()), CLEANUP_FINALIZER]))
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        obj["status"] = with_condition(obj, "Terminating", "True", "InstanceDeletionPending", message)["status"]


def definition_kind(compiler: RuleCompiler) -> Kind:
    """`compiler` checks the rules in schemas."""
    return Kind(
        group=GROUP,
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        description="CustomResourceDefinition declares a kind that the server serves.",
        status=True,
        generation=True,
        required=("spec",),
        properties={"spec": _SPEC, "status": _STATUS},
        replaces_default_columns=True,
        columns=CREATED_AT,
        cells=cells.created_at,
        validation=_DefinitionValidation(compiler),
        finalization=_DefinitionFinalization(),
    )
