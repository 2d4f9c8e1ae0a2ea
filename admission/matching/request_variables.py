"""The CEL variables request, object, oldObject and namespaceObject (WIRE-H16, WIRE-H17, WIRE-H28). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission.matching.match_rules import Target, request_namespace
from apiserver.admission import Attributes
from apiserver.meta.resource import Object

_NAMESPACE_METADATA = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
)


def request_variable(attributes: Attributes, own: Target, target: Target, *, uid: str = "") -> Object:
    """An AdmissionRequest without its objects. Empty optional fields are absent."""
    user = attributes.user
    info: Object = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    info["extra"] = {key: list(values) for key, values in user.extra.items()}
    # a request that deletes a collection names no object
    named = attributes.context.info.verb != "deletecollection"
    optional = {
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
        "name": attributes.name if named else "",
        "namespace": request_namespace(attributes),
    }
    return {
        "uid": uid,
        "kind": _kind(target),
        "resource": _resource(target),
        "requestKind": _kind(own),
        "requestResource": _resource(own),
        **{name: value for name, value in optional.items() if value},
        "operation": attributes.operation,
        "userInfo": {name: value for name, value in info.items() if value},
        "dryRun": attributes.dry_run,
        "options": dict(attributes.options),
    }


def _kind(target: Target) -> Object:
    return {"group": target.group, "version": target.version, "kind": target.kind}


def _resource(target: Target) -> Object:
    return {"group": target.group, "version": target.version, "resource": target.resource}


def object_as(obj: Object | None, target: Target) -> Object | None:
    """The object in the version of `target`; versions of one kind differ only in apiVersion here."""
    if obj is None:
        return None
    return {**obj, "apiVersion": target.api_version, "kind": target.kind}


def namespace_variable(namespace: Object | None) -> Mapping[str, Any] | None:
    """The fields of a Namespace that expressions may read."""
    if namespace is None:
        return None
    metadata = {name: value for name, value in namespace["metadata"].items() if name in _NAMESPACE_METADATA}
    return {"metadata": metadata, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}
