"""Reads what a user may do with a Tenant, and by which groups and Role its people see it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.cluster.interface import ROLEBINDINGS, ROLES
from registry.explain.known import KnownTenant, KnownUser
from registry.explain.sight import Sight
from registry.names import SELF_ROLE_PREFIX

_ON_TENANT = ("get", "list", "watch", "update", "patch", "delete")
_ON_CHILDREN = ("get", "list", "watch", "create", "update", "patch", "delete")
_VIEW = "-view"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedUser:
    """The user whose rights are asked for. `groups` are those that the question names, `may_set_host` is the verdict of
    the host policy."""

    user: User
    may_set_host: bool
    groups: Sequence[str] = ()
    groups_are_known: bool = True


async def read_user(sight: Sight, tenant: KnownTenant, asked: AskedUser) -> KnownUser:
    """The rights of a user: the caller, or anybody if the caller may create SubjectAccessReviews."""

    async def allowed(verbs: Sequence[str], key: Key) -> Mapping[str, bool]:
        reviews = (sight.tenant_access(each, key, user=asked.user) for each in verbs)
        answers = await asyncio.gather(*(sight.is_allowed(each) for each in reviews))
        return dict(zip(verbs, answers, strict=True))

    own = Key(tenant.key.namespace, f"{SELF_ROLE_PREFIX}{tenant.key.name}")
    role, binding = await asyncio.gather(sight.get(ROLES, own), sight.get(ROLEBINDINGS, own))
    return KnownUser(
        tenant=tenant,
        user=asked.user.name,
        groups=asked.groups,
        groups_are_known=asked.groups_are_known,
        allowed=await allowed(_ON_TENANT, tenant.key),
        children=await allowed(_ON_CHILDREN, Key(tenant.namespace, "")) if tenant.namespace else {},
        may_set_host=asked.may_set_host,
        viewers=_viewers(binding) or (f"{tenant.namespace}{_VIEW}" if tenant.namespace else ""),
        role=own.name if role is not None else "",
    )


def _viewers(binding: Object | None) -> str:
    """The group with the fewest rights that the RoleBinding names."""
    subjects = (binding or {}).get("subjects") or ()
    groups = (str(each.get("name")) for each in subjects if isinstance(each, dict) and each.get("kind") == "Group")
    return next((each for each in sorted(groups) if each.endswith(_VIEW)), "")
