"""Which requests a plugin is about, and what they are called in its refusals. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.admission import Attributes, Operation
from apiserver.meta.resource import GroupResource
from registry.names import GROUP

TENANTS = GroupResource(GROUP, "tenants")
WRITES: frozenset[Operation] = frozenset(("CREATE", "UPDATE"))


@dataclass(frozen=True, slots=True)
class Rule:
    """Operations on one resource, its subresources included: a rule that a subresource could dodge guards nothing."""

    resource: GroupResource
    operations: frozenset[Operation]

    def matches(self, attributes: Attributes) -> bool:
        return attributes.operation in self.operations and attributes.resource.group_resource == self.resource


def name_in_refusal(attributes: Attributes) -> str:
    """The object's name; while it has none, its generateName or `Unknown` (WIRE-H21)."""
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata") or {}
    return metadata.get("generateName") or "Unknown"
