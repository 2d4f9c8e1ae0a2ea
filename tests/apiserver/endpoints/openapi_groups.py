"""Two groups of an API, and their OpenAPI documents."""

from __future__ import annotations

import json
from typing import Any

from apiserver.endpoints.discovery import ServedGroup, ServedResource, ServedSubresource
from apiserver.endpoints.openapi.routes import openapi_v3
from apiserver.endpoints.openapi.v2 import to_v2
from apiserver.meta.resource import Resource, Schema

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
FLUNDERS = "/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders"
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


QUANTITY: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
CONDITIONS: Schema = {
    "type": "array",
    "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
FLUNDER = Resource(
    group="wardle.example.com",
    version="v1alpha1",
    kind="Flunder",
    plural="flunders",
    singular="flunder",
    namespaced=True,
    description="A flat fish.",
    properties={
        "spec": {
            "type": "object",
            "description": "The desired state.",
            "properties": {
                "host": {"type": "string", "default": ""},
                "gateway": {"type": "boolean", "nullable": True, "description": "Absent is not false."},
                "quotas": {"type": "object", "additionalProperties": QUANTITY},
                "free": {"type": "object", "additionalProperties": True},
            },
        },
        "status": {"type": "object", "properties": {"conditions": CONDITIONS}},
    },
)
FISCHER = Resource(
    group="wardle.example.com", version="v1alpha1", kind="Fischer", plural="fischers", singular="fischer",
    namespaced=False, preserve_unknown_fields=True, properties={"data": {"type": "object", "x-surplus": 1}},
)  # fmt: skip
ACCOUNT = Resource(
    group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", singular="", namespaced=True
)
TOKEN = Resource(
    group="authentication.k8s.io", version="v1", kind="TokenRequest", plural="tokenrequests", singular="",
    namespaced=True, properties={"spec": {"type": "object"}},
)  # fmt: skip
WARDLE = ServedGroup(
    "wardle.example.com",
    "v1alpha1",
    [
        ServedResource(FLUNDER, ALL_VERBS, (ServedSubresource("status", ("get", "patch", "update")),)),
        ServedResource(FISCHER, ("get", "list", "watch")),
    ],
)
CORE = ServedGroup("", "v1", [ServedResource(ACCOUNT, ALL_VERBS, (ServedSubresource("token", ("create",), TOKEN),))])
GROUPS = (CORE, WARDLE)


def v3(*groups: ServedGroup) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(openapi_v3(groups, title="Wardle", version="1")))
    return document


def v2(*groups: ServedGroup) -> dict[str, Any]:
    return to_v2(v3(*groups))
