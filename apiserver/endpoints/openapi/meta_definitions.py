"""OpenAPI v3 definitions of the shared kinds: meta/v1 and RawExtension (WIRE-C41, WIRE-C48).

Names, types, `required`, defaults and extensions equal those of Kubernetes, because an aggregator merges definitions by
name, and clients look some of them up by name. The descriptions are our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.meta.resource import Schema
from apiserver.schema.object_meta import MANAGED_FIELDS_ENTRY, OBJECT_META, OWNER_REFERENCE

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"

REF_PREFIX = "#/components/schemas/"

API_VERSION: Schema = {
    "type": "string",
    "description": "Group and version of this object's schema, such as apps/v1, or v1 for the core group.",
}
KIND: Schema = {
    "type": "string",
    "description": "The kind of this object, in CamelCase. It is determined by the endpoint and cannot be changed.",
}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"{REF_PREFIX}{name}"}


def meta_ref(name: str) -> dict[str, Any]:
    return ref(f"{META}.{name}")


def described_ref(description: str, name: str, **more: object) -> dict[str, Any]:
    """A reference with a description. It uses allOf, because OpenAPI 3.0 ignores keywords beside $ref."""
    return {"description": description, **more, "allOf": [meta_ref(name)]}


def _string(description: str, **more: object) -> Schema:
    return {"type": "string", "description": description, **more}


def _required_string(description: str) -> Schema:
    """A string that Go marshals even if it is empty."""
    return _string(description, default="")


def _boolean(description: str, **more: object) -> Schema:
    return {"type": "boolean", "description": description, **more}


def _integer(description: str, width: str = "int64") -> Schema:
    return {"type": "integer", "format": width, "description": description}


def _array(description: str, items: Schema, **hints: object) -> Schema:
    return {"type": "array", "description": description, "items": items, **hints}


def _atomic(description: str, items: Schema) -> Schema:
    return _array(description, items, **{"x-kubernetes-list-type": "atomic"})


def _object(description: str, properties: Mapping[str, Schema], required: Iterable[str] = (), **more: object) -> Schema:
    schema: dict[str, Any] = {"type": "object", "description": description, "properties": dict(properties), **more}
    names = list(required)
    return {**schema, "required": names} if names else schema


def _with_descriptions(
    schema: Schema, description: str, fields: Mapping[str, str], definitions: Mapping[str, str]
) -> Schema:
    """`schema` with a description of every field. Fields and list items that have a definition refer to it."""
    properties: dict[str, Schema] = {}
    for name, each in schema["properties"].items():
        text, definition = fields[name], definitions.get(name)
        if definition is None:
            empty = {"default": ""} if name in schema.get("required", ()) else {}
            properties[name] = {**each, **empty, "description": text}
        elif each["type"] == "array":
            properties[name] = {**each, "items": meta_ref(definition), "description": text}
        else:
            properties[name] = described_ref(text, definition)
    return {**schema, "properties": properties, "description": description}


_OBJECT_META = _with_descriptions(
    OBJECT_META,
    "Metadata of an object that is stored.",
    {
        "annotations": "Arbitrary key-value pairs for tools. Selectors do not apply to them.",
        "creationTimestamp": "The time at which the server created the object, in UTC. Read-only.",
        "deletionGracePeriodSeconds": "Seconds that a deletion may take. Read-only.",
        "deletionTimestamp": "The time at which deletion was requested, in UTC. The object is removed once it has no "
        "finalizers. Read-only.",
        "finalizers": "Controllers that must act before the object is removed; each removes its own entry.",
        "generateName": "Prefix of a name that the server makes unique, if name is empty.",
        "generation": "Counts the changes of the desired state. Read-only.",
        "labels": "Key-value pairs that objects can be selected by.",
        "managedFields": "The managers of each field. Maintained by the server.",
        "name": "Unique among the objects of this resource in the namespace. Cannot be changed.",
        "namespace": "The namespace that the object lives in; empty for cluster-scoped ones.",
        "ownerReferences": "Objects that this one depends on: when all of them are deleted, it is garbage-collected. "
        "One may be the controller.",
        "resourceVersion": "Changes with every write. Opaque; send it back to prevent lost updates.",
        "selfLink": "Deprecated and always empty.",
        "uid": "Distinguishes this object from others that had the same name at other times. Read-only.",
    },
    {
        "creationTimestamp": "Time",
        "deletionTimestamp": "Time",
        "managedFields": "ManagedFieldsEntry",
        "ownerReferences": "OwnerReference",
    },
)

_OWNER_REFERENCE = _with_descriptions(
    OWNER_REFERENCE,
    "Names an owner in the same namespace, or a cluster-scoped one.",
    {
        "apiVersion": "The owner's group and version.",
        "blockOwnerDeletion": "True if a foreground deletion of the owner waits for this object.",
        "controller": "True if the owner is the managing controller.",
        "kind": "The owner's kind.",
        "name": "The owner's name.",
        "uid": "The owner's uid.",
    },
    {},
)

_MANAGED_FIELDS_ENTRY = _with_descriptions(
    MANAGED_FIELDS_ENTRY,
    "The fields that one manager set by one kind of operation.",
    {
        "apiVersion": "The version that the fields are named in.",
        "fieldsType": "The format of the field set: FieldsV1.",
        "fieldsV1": "The field set.",
        "manager": "The name of the manager of these fields.",
        "operation": "Apply or Update.",
        "subresource": "The subresource through which they were set, if any.",
        "time": "The time of the last change of the set.",
    },
    {"fieldsV1": "FieldsV1", "time": "Time"},
)

_LIST_META = _object(
    "Metadata of a list.",
    {
        "continue": _string("Token for the next page of a limited list; empty on the last page."),
        "remainingItemCount": _integer("The number of items on the following pages, if known."),
        "resourceVersion": _string("The version at which the list was read. A watch may start from it."),
        "selfLink": _string("Deprecated and always empty."),
        "shardInfo": described_ref("Set if the list is one shard of a collection.", "ShardInfo"),
    },
)

_STATUS_DETAILS = _object(
    "Details of a failure, or of the object that was deleted.",
    {
        "causes": _atomic("The individual causes; one per field if fields are invalid.", meta_ref("StatusCause")),
        "group": _string("The group concerned."),
        "kind": _string("The kind or resource concerned."),
        "name": _string("The object's name."),
        "retryAfterSeconds": _integer("Seconds after which to try again.", "int32"),
        "uid": _string("The object's uid."),
    },
)

_STATUS = _object(
    "The response to a request that returns no object.",
    {
        "apiVersion": API_VERSION,
        "code": _integer("The HTTP status.", "int32"),
        "details": described_ref("Details of the outcome.", "StatusDetails"),
        "kind": KIND,
        "message": _string("A description of the outcome for people."),
        "metadata": described_ref("Metadata of a list.", "ListMeta", default={}),
        "reason": _string("A description of the outcome for programs."),
        "status": _string("Success or Failure."),
    },
)

_DELETE_OPTIONS = _object(
    "Options of a deletion.",
    {
        "apiVersion": API_VERSION,
        "dryRun": _atomic("All: run every check, store nothing.", {"type": "string"}),
        "gracePeriodSeconds": _integer("Seconds that the deletion may take; 0 means immediately."),
        "ignoreStoreReadErrorWithClusterBreakingPotential": _boolean("Accepted, but without effect."),
        "kind": KIND,
        "orphanDependents": _boolean("Deprecated: see propagationPolicy."),
        "preconditions": described_ref("Conditions of the deletion; 409 Conflict if not met.", "Preconditions"),
        "propagationPolicy": _string("The treatment of dependents: Orphan, Background or Foreground."),
    },
)

_API_RESOURCE = _object(
    "A resource as discovery lists it.",
    {
        "categories": _atomic("Groups of resources that this one is in, such as all.", {"type": "string"}),
        "group": _string("The group of its kind, if it is not the list's."),
        "kind": _required_string("Its kind."),
        "name": _required_string("Its name, plural."),
        "namespaced": _boolean("True if its objects are in namespaces.", default=False),
        "shortNames": _atomic("Short names for command lines.", {"type": "string"}),
        "singularName": _required_string("Its name, singular."),
        "storageVersionHash": _string("Opaque; changes with the version that objects are stored in."),
        "verbs": _array("The verbs that it supports.", {"type": "string"}),
        "version": _string("The version of its kind, if it is not the list's."),
    },
    ("name", "singularName", "namespaced", "kind", "verbs"),
)

_DEFINITIONS: Mapping[str, Schema] = {
    "APIResource": _API_RESOURCE,
    "APIResourceList": _object(
        "The resources of one version of a group.",
        {
            "apiVersion": API_VERSION,
            "groupVersion": _required_string("The group and version listed."),
            "kind": KIND,
            "resources": _atomic("The resources and their subresources.", meta_ref("APIResource")),
        },
        ("groupVersion", "resources"),
    ),
    "DeleteOptions": _DELETE_OPTIONS,
    "FieldsV1": {
        "type": "object",
        "description": "A set of fields as a tree: f:<name> is a field, k:<keys> a list item by its keys, "
        "v:<value> a list item by its value, i:<index> a list item by its index, and . the node itself.",
    },
    "ListMeta": _LIST_META,
    "ManagedFieldsEntry": _MANAGED_FIELDS_ENTRY,
    "ObjectMeta": _OBJECT_META,
    "OwnerReference": _OWNER_REFERENCE,
    "Patch": {"type": "object", "description": "A patch; its format depends on the content type."},
    "Preconditions": _object(
        "Required properties of the stored object.",
        {"resourceVersion": _string("The required resourceVersion."), "uid": _string("The required uid.")},
    ),
    "ShardInfo": _object(
        "The shard of a collection that a list contains.",
        {"selector": _required_string("The shard's selector, as it was sent.")},
        ("selector",),
    ),
    "Status": _STATUS,
    "StatusCause": _object(
        "One cause of a failure.",
        {
            "field": _string("The path of the invalid field, such as spec.items[0].name."),
            "message": _string("A description of the error for people."),
            "reason": _string("A description of the error for programs."),
        },
    ),
    "StatusDetails": _STATUS_DETAILS,
    "Time": _string("A time in whole seconds, in UTC.", format="date-time"),
    "WatchEvent": _object(
        "One event of a watch.",
        {
            "object": {
                "description": "The object's new state; its last state if DELETED; a Status if ERROR.",
                "allOf": [ref(RAW_EXTENSION)],
            },
            "type": {"type": "string", "default": ""},
        },
        ("type", "object"),
    ),
}

# The kinds of meta/v1 that are registered in every group version, and those only in the core group (WIRE-C41)
_IN_EVERY_GROUP = ("DeleteOptions", "WatchEvent")
_IN_CORE = ("APIResourceList", "Status")


def meta_definitions(group_versions: Iterable[tuple[str, str]]) -> dict[str, Schema]:
    """The shared definitions by their full names, for a document about `group_versions` (group, version)."""
    everywhere = list(dict.fromkeys([("", "v1"), *group_versions]))
    definitions: dict[str, Schema] = {}
    for name, schema in _DEFINITIONS.items():
        registered = everywhere if name in _IN_EVERY_GROUP else [("", "v1")] if name in _IN_CORE else []
        kinds = [{"group": group, "kind": name, "version": version} for group, version in registered]
        hint = {"x-kubernetes-group-version-kind": kinds} if kinds else {}
        definitions[f"{META}.{name}"] = {**schema, **hint}
    definitions[RAW_EXTENSION] = {"type": "object", "description": "Any object."}
    return definitions
