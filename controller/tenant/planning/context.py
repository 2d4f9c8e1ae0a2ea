"""The parts by which a step plans instead of writing."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from controller.runtime.planning_writer import PlanningWriter
from controller.tenant.isolation.policy_writer import PolicyWriter
from controller.tenant.managed_objects import ContentWriter
from registry.tenant.tree import BaseTenantTree


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningContext:
    """`contents` and `policies` write by `writer`, which sends nothing, and remember nothing. `tree` has the Tenant as
    it would be. `namespaces` are those of the Tenants that the plan looks at."""

    writer: PlanningWriter
    contents: ContentWriter
    policies: PolicyWriter
    tree: BaseTenantTree
    namespaces: Set[str]
