"""The ClusterRoles and Roles of our ServiceAccount, with the reason of each rule as a comment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import yaml

from apiserver.meta.resource import Object
from registry.rbac.role_index import RbacRule, to_policy_rule
from tenant_apiserver.least_privilege.right import Right, Role

COMPONENT_LABELS = {"app.kubernetes.io/part-of": "tenant-apiserver"}
"""By which an installation is removed. In the base, kustomize adds it; a component that let it do so would also label
what else its user builds, such as the roles of tenants' people, which must stay."""
_WIDTH = 118


def render_role(role: Role, rights: Sequence[Right]) -> str:
    """The YAML of one role, with its rows of the table."""
    metadata: Object = {"name": role.name} | ({"namespace": role.namespace} if role.namespace else {})
    if role.component:
        metadata["labels"] = COMPONENT_LABELS
    kind = "Role" if role.namespace else "ClusterRole"
    head = yaml.safe_dump(
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata}, sort_keys=False
    )
    return head + "rules:\n" + "".join(_rendered(right) for right in rights if right.role == role and right.verbs)


def _rendered(right: Right) -> str:
    comment = textwrap.wrap(right.why, _WIDTH - 4)
    rules = yaml.safe_dump([to_policy_rule(rule) for rule in rules_of(right)], sort_keys=False, width=_WIDTH)
    lines = [*(f"# {line}" for line in comment), *rules.splitlines()]
    return textwrap.indent("\n".join(lines) + "\n", "  ")


def rules_of(right: Right) -> Iterator[RbacRule]:
    """RBAC authorizes a creation before the object has a name, so `create` is a rule without names."""
    groups, resources = (right.group,), tuple(right.resources)
    if not right.names:
        yield RbacRule(verbs=tuple(right.verbs), groups=groups, resources=resources)
        return
    if "create" in right.verbs:
        yield RbacRule(verbs=("create",), groups=groups, resources=resources)
    named = tuple(verb for verb in right.verbs if verb != "create")
    yield RbacRule(verbs=named, groups=groups, resources=resources, names=tuple(right.names))
