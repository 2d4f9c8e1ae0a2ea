"""An endpoint for tests of the FieldManager: one object, without HTTP, storage and admission."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from apiserver.fieldmanager.field_manager import FieldManager
from apiserver.meta.resource import Object, Resource
from apiserver.patch.json_and_merge import merge_patch
from apiserver.schema.pruning_and_defaulting import apply_defaults, object_schema, prune

RECORDED = json.loads((Path(__file__).parent / "data" / "apply_sequences.json").read_text())
TENANTS = Resource(
    group="apps.cozystack.io",
    version="v1alpha1",
    kind="Tenant",
    plural="tenants",
    singular="tenant",
    namespaced=True,
    properties=RECORDED["properties"],
)
TYPE = {"apiVersion": TENANTS.api_version, "kind": TENANTS.kind}
THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"


class Endpoint:
    """One object with its FieldManager, pruned and defaulted as in the request handlers."""

    def __init__(self, *, reset_fields: tuple[str, ...] = ("status",)) -> None:
        self.manager = FieldManager(TENANTS, reset_fields=reset_fields)
        self.live: Object = {}

    def create(self, body: Object, manager: str = "m1", **_: object) -> Object:
        return self._store(self.manager.create(self._decode(body), manager=manager, now=NOW))

    def update(self, body: Object, manager: str = "m1", **_: object) -> Object:
        new = self._decode(body)
        return self._store(self.manager.update(self.live, new, manager=manager, now=NOW))

    def merge(self, patch: Object, manager: str = "m1", **_: object) -> Object:
        return self.update(merge_patch(self.live, patch), manager)

    def apply(self, body: Object, manager: str = "m1", *, force: bool = False) -> Object:
        config = {**TYPE, **copy.deepcopy(body)}
        return self._store(self.manager.apply(self.live or None, config, manager=manager, force=force, now=NOW))

    def owned(self, manager: str, operation: str = "Apply") -> Any:
        for entry in self.live["metadata"].get("managedFields", []):
            if (entry["manager"], entry["operation"]) == (manager, operation):
                return entry["fieldsV1"]
        return None

    def _decode(self, body: Object) -> Object:
        decoded: Object = prune(object_schema(TENANTS), {**TYPE, **body})
        apply_defaults(object_schema(TENANTS), decoded)
        return decoded

    def _store(self, new: Object) -> Object:
        apply_defaults(object_schema(TENANTS), new)
        new.pop("status", None)
        new["metadata"]["uid"] = "a-uid"
        self.live = new
        return new


def named(**fields: Any) -> Object:
    """Returns the body of an object with these top-level fields."""
    return {"metadata": {"name": "x"}, **fields}
