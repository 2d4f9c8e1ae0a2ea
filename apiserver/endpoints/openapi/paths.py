"""Generates the OpenAPI v3 paths and operations of a group version (WIRE-C40 to WIRE-C47).

Parameters are inline, because kubectl does not follow references when it looks up the parameters of an operation
(WIRE-C43).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.endpoints.discovery import ServedGroup, ServedResource, ServedSubresource
from apiserver.endpoints.openapi.definitions import definition_name
from apiserver.endpoints.openapi.meta_definitions import meta_ref, ref
from apiserver.endpoints.openapi.parameters import (
    CREATE,
    DELETE,
    DELETE_COLLECTION,
    LIST,
    NAMESPACE,
    PATCH,
    PRETTY,
    READ,
    Parameter,
    name_of,
    own_parameters,
)
from apiserver.meta.resource import Resource, Schema

PathItem = Mapping[str, Any]
_Operation = tuple[str, dict[str, Any]]
"""An HTTP method and its operation."""

_OBJECT_TYPES = ("application/json", "application/yaml")
_WATCH_TYPE = "application/json;stream=watch"
# without strategic merge, which is not supported: kubectl apply sends it if it is listed (WIRE-C44)
PATCH_TYPES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")


@dataclass(frozen=True, slots=True)
class _Verb:
    """A verb in OpenAPI: its method, x-kubernetes-action, and templates of operationId and description."""

    method: str
    action: str
    operation_id: str
    description: str
    parameters: Sequence[Parameter] = ()
    codes: tuple[str, ...] = ("200",)


def _body(schema: Schema, *, types: Sequence[str] = _OBJECT_TYPES, required: bool = True) -> dict[str, Any]:
    body: dict[str, Any] = {"content": {media_type: {"schema": schema} for media_type in types}}
    return {**body, "required": True} if required else body


_OPTIONS = _body(meta_ref("DeleteOptions"), required=False)
_CREATED = ("200", "201", "202")
_LIST = _Verb("get", "list", "list{group}{subject}", "list or watch objects of kind {kind}", LIST)
_CREATE = _Verb("post", "post", "create{group}{subject}", "create {part}{kind}", CREATE, _CREATED)
_READ = _Verb("get", "get", "read{group}{subject}", "read {part}{kind}", READ)
_REPLACE = _Verb("put", "put", "replace{group}{subject}", "replace {part}{kind}", CREATE, ("200", "201"))
_PATCH = _Verb("patch", "patch", "patch{group}{subject}", "partially update {part}{kind}", PATCH, ("200", "201"))
_DELETE = _Verb("delete", "delete", "delete{group}{subject}", "delete {part}{kind}", DELETE, ("200", "202"))
_DELETE_COLLECTION = _Verb(
    "delete", "deletecollection", "delete{group}Collection{subject}", "delete collection of {kind}", DELETE_COLLECTION
)
_WATCH = _Verb("get", "watch", "watch{group}{subject}", "watch {kind}. Deprecated: list with watch and fieldSelector.")
_WATCH_LIST = _Verb("get", "watchlist", "watch{group}{subject}", "watch all {kind}. Deprecated: list with watch.")

_ON_OBJECTS = {"get": _READ, "update": _REPLACE, "patch": _PATCH, "delete": _DELETE}
_ON_SUBRESOURCES = {**_ON_OBJECTS, "create": _CREATE}


def paths(group: ServedGroup) -> dict[str, PathItem]:
    """The path items of every resource and subresource of `group`, by path."""
    found: dict[str, PathItem] = {f"{group.path}/": _resource_list(group)}
    for served in group.resources:
        found.update(_Builder(group, served).items())
    return found


def _resource_list(group: ServedGroup) -> PathItem:
    operation = {
        "tags": [_tag(group)],
        "description": "get available resources",
        "operationId": f"get{_camel(group)}APIResources",
        "responses": _responses(("200",), meta_ref("APIResourceList"), _OBJECT_TYPES),
    }
    return {"get": operation}


class _Builder:
    """The paths of one resource."""

    def __init__(self, group: ServedGroup, served: ServedResource) -> None:
        self._group = group
        self._resource = served.resource
        self._verbs = served.verbs
        self._subresources = served.subresources
        self._subject = f"{'Namespaced' if served.resource.namespaced else ''}{served.resource.kind}"
        self._schema = ref(definition_name(served.resource))
        self._list = ref(f"{definition_name(served.resource)}List")

    def items(self) -> Iterator[tuple[str, PathItem]]:
        """Every path with at least one operation."""
        for path, operations, parameters in self._candidates():
            methods = dict(operations)
            if methods:
                yield f"{self._group.path}{path}", {**methods, "parameters": [*parameters, PRETTY]}

    def _candidates(self) -> Iterator[tuple[str, Iterator[_Operation], Sequence[Parameter]]]:
        kind, plural = self._resource.kind, self._resource.plural
        prefix = "/namespaces/{namespace}" if self._resource.namespaced else ""
        scope = [NAMESPACE] if self._resource.namespaced else []
        named = [name_of(kind), *scope]
        one = f"{plural}/{{name}}"
        yield f"{prefix}/{plural}", self._collection(), scope
        yield f"{prefix}/{one}", self._object(), named
        yield f"/watch{prefix}/{plural}", self._watch_list(f"{self._subject}List"), [*scope, *LIST]
        yield f"/watch{prefix}/{one}", self._watch(), [*named, *LIST]
        if self._resource.namespaced:
            yield f"/{plural}", self._list_of(f"{kind}ForAllNamespaces"), []
            yield f"/watch/{plural}", self._watch_list(f"{kind}ListForAllNamespaces"), LIST
        for subresource in self._subresources:
            yield f"{prefix}/{one}/{subresource.name}", self._subresource(subresource), named

    def _collection(self) -> Iterator[_Operation]:
        yield from self._list_of(self._subject)
        if "create" in self._verbs:
            yield self._operation(_CREATE, self._subject, self._schema, body=_body(self._schema))
        if "deletecollection" in self._verbs:
            yield self._operation(_DELETE_COLLECTION, self._subject, meta_ref("Status"), body=_OPTIONS)

    def _list_of(self, subject: str) -> Iterator[_Operation]:
        if "list" in self._verbs:
            produces = (*_OBJECT_TYPES, _WATCH_TYPE) if "watch" in self._verbs else _OBJECT_TYPES
            yield self._operation(_LIST, subject, self._list, produces=produces)

    def _object(self) -> Iterator[_Operation]:
        for verb, form in _ON_OBJECTS.items():
            if verb in self._verbs:
                yield self._on_object(form, self._resource, self._subject)

    def _subresource(self, subresource: ServedSubresource) -> Iterator[_Operation]:
        kind = subresource.resource or self._resource
        subject = f"{self._subject}{subresource.name.capitalize()}"
        for verb, form in _ON_SUBRESOURCES.items():
            if verb in subresource.verbs:
                yield self._on_object(form, kind, subject, part=f"{subresource.name} of ")

    def _on_object(self, form: _Verb, kind: Resource, subject: str, *, part: str = "") -> _Operation:
        schema = ref(definition_name(kind))
        response = meta_ref("Status") if form is _DELETE else schema
        bodies = {"patch": _body(meta_ref("Patch"), types=PATCH_TYPES), "delete": _OPTIONS, "get": None}
        body = bodies.get(form.method, _body(schema))
        return self._operation(form, subject, response, body=body, part=part, kind=kind)

    def _watch(self) -> Iterator[_Operation]:
        if "watch" in self._verbs:
            yield self._deprecated(_WATCH, self._subject)

    def _watch_list(self, subject: str) -> Iterator[_Operation]:
        if "watch" in self._verbs:
            yield self._deprecated(_WATCH_LIST, subject)

    def _deprecated(self, form: _Verb, subject: str) -> _Operation:
        produces = (_OBJECT_TYPES[0], _WATCH_TYPE)
        method, operation = self._operation(form, subject, meta_ref("WatchEvent"), produces=produces)
        return method, {**operation, "deprecated": True}

    def _operation(
        self,
        form: _Verb,
        subject: str,
        response: Schema,
        *,
        body: Mapping[str, Any] | None = None,
        produces: Sequence[str] = _OBJECT_TYPES,
        part: str = "",
        kind: Resource | None = None,
    ) -> _Operation:
        """`subject` is the end of the operationId. `kind` is the kind of the request and response, if it differs from
        the resource's own."""
        kind = kind or self._resource
        operation: dict[str, Any] = {
            "tags": [_tag(self._group)],
            "description": form.description.format(kind=self._resource.kind, part=part),
            "operationId": form.operation_id.format(group=_camel(self._group), subject=subject),
            "parameters": [*form.parameters, *(own_parameters(kind) if form is _READ else ())],
            "responses": _responses(form.codes, response, produces),
            "x-kubernetes-action": form.action,
            "x-kubernetes-group-version-kind": {"group": kind.group, "kind": kind.kind, "version": kind.version},
        }
        if body is not None:
            operation["requestBody"] = body
        return form.method, operation


def _responses(codes: Sequence[str], schema: Schema, types: Sequence[str]) -> dict[str, Any]:
    phrases = {"200": "OK", "201": "Created", "202": "Accepted"}
    content = {media_type: {"schema": schema} for media_type in types}
    responses: dict[str, Any] = {code: {"description": phrases[code], "content": content} for code in codes}
    return {**responses, "401": {"description": "Unauthorized"}}


def _camel(group: ServedGroup) -> str:
    """The group version in an operationId, such as AppsCozystackIoV1alpha1; CoreV1 for the core group (WIRE-C47)."""
    return f"{_camel_group(group.group)}{group.version[:1].upper()}{group.version[1:]}"


def _camel_group(group: str) -> str:
    parts = re.split(r"[^0-9A-Za-z]+", group.removesuffix(".k8s.io") or "core")
    return "".join(part[:1].upper() + part[1:] for part in parts)


def _tag(group: ServedGroup) -> str:
    name = _camel_group(group.group)
    return f"{name[:1].lower()}{name[1:]}_{group.version}"
