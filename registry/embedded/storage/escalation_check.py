"""RBAC's escalation check: a user can create or bind a role only if the user has all permissions of that role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.authorization.authorizer import MASTERS, AccessAttributes
from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Object, Resource
from apiserver.request.context import RequestContext, User
from registry.rbac.escalation import (
    ALL_RULES,
    MAX_PERMISSIONS,
    describe_rule,
    number_of_permissions,
    uncovered,
)
from registry.rbac.role_index import GROUP, RbacRule, RoleIndex, parse_binding, parse_rules, split_key


@dataclass(frozen=True, slots=True)
class RoleEscalationCheck:
    """Checks Roles and ClusterRoles. A user with the verb `escalate` on the role is exempt."""

    index: RoleIndex
    resource: Resource

    def __call__(self, context: RequestContext, new: Object, old: Object | None) -> None:
        """Raises Forbidden."""
        if old is not None and _fields_equal(new, old, ("rules", "aggregationRule")):
            return
        metadata = new["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        user = context.user
        if _is_allowed(self.index, user, "escalate", self.resource.plural, name, namespace):
            return
        wanted = list(parse_rules(new.get("rules")))
        if new.get("aggregationRule"):
            # the role gets the rules of all roles that match its selectors, now or later, so the user needs all
            # permissions
            wanted += ALL_RULES
        _reject_missing_permissions(self.index, user, namespace, wanted, self.resource, name)


@dataclass(frozen=True, slots=True)
class BindingEscalationCheck:
    """Checks RoleBindings and ClusterRoleBindings. A user with the verb `bind` on the role is exempt."""

    index: RoleIndex
    resource: Resource

    def __call__(self, context: RequestContext, new: Object, old: Object | None) -> None:
        """Raises Forbidden, or NotFound if the role does not exist."""
        if old is not None and _fields_equal(new, old, ("roleRef", "subjects")):
            return
        binding = parse_binding(new)
        if binding is None:
            return
        role, (namespace, name), user = split_key(binding.role), split_key(binding.key), context.user
        plural = "roles" if role.namespace else "clusterroles"
        if _is_allowed(self.index, user, "bind", plural, role.name, namespace):
            return
        rules = self.index.rules_of(binding.role)
        if rules is None:
            raise errors.NotFound(GroupResource(GROUP, plural), role.name)
        _reject_missing_permissions(self.index, user, namespace, rules, self.resource, name)


def _is_allowed(index: RoleIndex, user: User, verb: str, plural: str, role: str, namespace: str) -> bool:
    if MASTERS in user.groups:
        return True
    access = AccessAttributes(
        user=user, verb=verb, group=GROUP, version="v1", resource=plural, namespace=namespace, name=role
    )
    return index.decide(access).allowed


def _reject_missing_permissions(
    index: RoleIndex, user: User, namespace: str, wanted: Sequence[RbacRule], resource: Resource, name: str
) -> None:
    if number_of_permissions(wanted) > MAX_PERMISSIONS:
        raise errors.RequestEntityTooLarge(f"a role may have {MAX_PERMISSIONS} single permissions")
    missing = uncovered(index.rules_for(user, namespace), wanted)
    if not missing:
        return
    groups = " ".join(f'"{group}"' for group in user.groups)
    lines = "\n".join(errors.first_texts(map(describe_rule, missing)))
    why = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{lines}'
    raise errors.Forbidden(resource.group_resource, name, why)


def _fields_equal(new: Object, old: Object, fields: Sequence[str]) -> bool:
    return all(new.get(field) == old.get(field) for field in fields)
