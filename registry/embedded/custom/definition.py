"""Parses a CustomResourceDefinition into the settings that its kind is served with. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.meta.resource import FieldValue, GroupKind, GroupResource, Object, Resource, Schema
from registry.embedded.custom import printer_columns
from registry.embedded.custom.json_path import json_path

_IMPLICIT = ("apiVersion", "kind", "metadata")
_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STAGES = {None: 2, "beta": 1, "alpha": 0}


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The paths of the scale subresource's values in the object, dotted, with a leading dot."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, kw_only=True)
class CustomVersion:
    """One version of a kind. `schema` is that of whole objects; `columns` and `selectable_fields` are as declared."""

    name: str
    is_storage: bool
    schema: Schema
    status: bool
    scale: ScalePaths | None
    columns: Sequence[Object]
    selectable_fields: Sequence[str]
    deprecation: str
    """The warning that every request for a deprecated version gets."""


@dataclass(frozen=True, kw_only=True)
class CustomDefinition:
    """A definition with its served versions, the preferred one first."""

    name: str
    group: str
    names: Mapping[str, Any]
    namespaced: bool
    versions: Sequence[CustomVersion]
    storage: CustomVersion
    """The version that objects are stored in, which need not be served."""

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.names["plural"])

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.names["kind"])

    def resource(self, version: CustomVersion) -> Resource:
        names, schema = self.names, version.schema
        properties = schema.get("properties") or {}
        return Resource(
            group=self.group,
            version=version.name,
            kind=names["kind"],
            plural=names["plural"],
            singular=names.get("singular") or names["kind"].lower(),
            list_kind_name=names.get("listKind") or "",
            namespaced=self.namespaced,
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            description=schema.get("description") or "",
            properties={name: each for name, each in properties.items() if name not in _IMPLICIT},
            required=tuple(schema.get("required") or ()),
            preserve_unknown_fields=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
            columns=printer_columns.columns(version.columns),
            cells=printer_columns.cells(version.columns),
            replaces_default_columns=True,
            selectable_fields={path.removeprefix("."): _selectable(path) for path in version.selectable_fields},
        )


def parse_definition(crd: Object) -> CustomDefinition:
    """Parses a valid CustomResourceDefinition. The names are the accepted ones, if there are any."""
    spec = crd["spec"]
    names = _accepted(crd) or spec["names"]
    versions = [_version(spec["group"], names["kind"], each) for each in spec["versions"]]
    served = {each["name"] for each in spec["versions"] if each.get("served")}
    return CustomDefinition(
        name=crd["metadata"]["name"],
        group=spec["group"],
        names=names,
        namespaced=spec.get("scope") == "Namespaced",
        versions=sorted(
            (each for each in versions if each.name in served),
            key=lambda each: version_priority(each.name),
            reverse=True,
        ),
        storage=next(each for each in versions if each.is_storage),
    )


def _accepted(crd: Object) -> Mapping[str, Any]:
    accepted = (crd.get("status") or {}).get("acceptedNames") or {}
    return accepted if accepted.get("plural") and accepted.get("kind") else {}


def _version(group: str, kind: str, version: Mapping[str, Any]) -> CustomVersion:
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    warning = ""
    if version.get("deprecated"):
        warning = version.get("deprecationWarning") or f"{group}/{version['name']} {kind} is deprecated"
    return CustomVersion(
        name=version["name"],
        is_storage=bool(version.get("storage")),
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        status="status" in subresources,
        scale=_scale(scale) if scale is not None else None,
        columns=version.get("additionalPrinterColumns") or (),
        selectable_fields=[each["jsonPath"] for each in version.get("selectableFields") or ()],
        deprecation=warning,
    )


def _scale(scale: Mapping[str, Any]) -> ScalePaths:
    return ScalePaths(
        spec_replicas=scale["specReplicasPath"],
        status_replicas=scale["statusReplicasPath"],
        label_selector=scale.get("labelSelectorPath") or "",
    )


def version_priority(name: str) -> tuple[int, int, int, int, str]:
    """The key by which Kubernetes sorts versions, descending: v10, v2, v1, v2beta1, v1beta2, v1alpha1, other names."""
    found = _VERSION.fullmatch(name)
    if found is None:
        # other names are in alphabetical order, the first one first
        return 0, 0, 0, 0, "".join(chr(0x10FFFF - ord(each)) for each in name) + chr(0x10FFFF)
    return 1, _STAGES[found[2]], int(found[1]), int(found[3] or 0), ""


def _selectable(path: str) -> FieldValue:
    find = json_path(path)

    def value(obj: Object) -> str:
        found = find(obj)
        if not found or found[0] is None:
            return ""
        return found[0] if isinstance(found[0], str) else str(found[0]).lower()

    return value
