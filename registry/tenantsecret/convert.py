"""Converts a Secret to a TenantSecret, and back. Pure; malformed parts are omitted.

The data is the same. `stringData` is written only, as in a Secret, and never shown.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from apiserver.encoding.encoded_object import epoch
from apiserver.encoding.table import NAME
from apiserver.json.values import deep_copy
from apiserver.meta.resource import Age, Column, Object, Resource, Schema
from registry.application.release_metadata import string_entries
from registry.cluster.interface import SECRETS
from registry.projection.metadata import Hidden, shown_metadata, stored_metadata

GROUP = "core.cozystack.io"
VERSION = "v1alpha1"
KIND = "TenantSecret"
PLURAL = "tenantsecrets"
SECRET_LABEL = "internal.cozystack.io/tenantresource"
SECRET_SELECTOR = f"{SECRET_LABEL}=true"

_HIDDEN = Hidden(label=SECRET_LABEL)
_STRING_MAP: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


class SecretConversion:
    """The Conversion of TenantSecrets."""

    def shows(self, stored: Object) -> bool:
        return string_entries(stored["metadata"].get("labels")).get(SECRET_LABEL) == "true"

    def to_object(self, stored: Object) -> Object:
        return {**to_identity(stored), "data": string_entries(stored.get("data"))}

    def to_new(self, obj: Object) -> Object:
        metadata = stored_metadata(obj["metadata"], {}, _HIDDEN)
        return {"apiVersion": SECRETS.api_version, "kind": SECRETS.kind, "metadata": metadata, **_content(obj)}

    def to_changed(self, obj: Object, current: Object) -> Object:
        """Fields that a TenantSecret does not have, such as `immutable`, stay."""
        metadata = stored_metadata(obj["metadata"], current["metadata"], _HIDDEN)
        others = {field: deep_copy(value) for field, value in current.items() if field not in ("data", "type")}
        changed = {**others, "metadata": metadata, **_content(obj)}
        return current if changed == _without_managed_fields(current) else changed


def to_identity(stored: Object) -> Object:
    """The TenantSecret without its data."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": shown_metadata(stored["metadata"], _HIDDEN),
        "type": str(stored.get("type") or "Opaque"),
    }


def trim_secret(secret: Object) -> Object:
    """The transform of the informer: leaves out what no TenantSecret shows."""
    return _without_managed_fields(secret)


def default_secret(obj: Object) -> None:
    """Adds the entries of `stringData` to `data`, where they win, and the default type, in place."""
    obj["type"] = obj.get("type") or "Opaque"
    written = obj.pop("stringData", None)
    if written:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in written.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _content(obj: Object) -> Object:
    data = string_entries(obj.get("data"))
    return {"type": obj.get("type") or "Opaque"} | ({"data": data} if data else {})


def _without_managed_fields(secret: Object) -> Object:
    metadata = {field: value for field, value in secret["metadata"].items() if field != "managedFields"}
    return {**secret, "metadata": metadata}


def tenant_secret_resource() -> Resource:
    data: Schema = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=KIND,
        plural=PLURAL,
        singular="tenantsecret",
        namespaced=True,
        description="TenantSecret is a Secret that the platform shows to the people of a tenant, such as the "
        "credentials of a database.",
        properties={
            "type": {"type": "string", "description": "The type of the Secret. It cannot be changed."},
            "data": {**data, "description": "The values by their keys, in base64."},
            "stringData": {**_STRING_MAP, "description": "Values as text. Written only: they become a part of data."},
        },
        columns=(
            NAME,
            Column("Type", description="The type of the Secret."),
            Column("Age", description="The time since the object was created."),
        ),
        cells=_cells,
        replaces_default_columns=True,
        default=default_secret,
    )


def _cells(obj: Object) -> Sequence[object]:
    metadata = obj["metadata"]
    return metadata.get("name", ""), obj.get("type", ""), Age(epoch(metadata.get("creationTimestamp")))
