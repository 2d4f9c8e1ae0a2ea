"""Rules that select the requests of a built-in plugin, and the object's name in its error messages. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.admission import Attributes, Operation
from apiserver.meta.resource import GroupResource
from registry.names import GROUP

TENANTS = GroupResource(GROUP, "tenants")
WRITES: frozenset[Operation] = frozenset(("CREATE", "UPDATE"))


@dataclass(frozen=True, slots=True)
class PluginRule:
    """Operations on one resource and on all its subresources, so that no subresource bypasses the plugin."""

    resource: GroupResource
    operations: frozenset[Operation]

    def matches(self, attributes: Attributes) -> bool:
        return attributes.operation in self.operations and attributes.resource.group_resource == self.resource


def name_for_errors(attributes: Attributes) -> str:
    """The object's name; if it has none yet, its generateName, else `Unknown` (WIRE-H21)."""
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata") or {}
    return metadata.get("generateName") or "Unknown"
