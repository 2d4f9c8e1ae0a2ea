"""Drops owners that do not exist from new ownerReferences of Tenants, with a Warning.

Restored YAML often has the uids of another cluster, and the garbage collector would delete the Tenant at once. Owners
that the caller may not get are dropped in the same way, so that nobody can find out whether they exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from admission.owner_references import OwnerReferenceObject, owner_references
from admission.plugin_rule import TENANTS, WRITES, PluginRule, name_for_errors
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.resource import GroupKind, Object
from apiserver.request.context import User
from registry.names import is_root

# A Tenant has few owners, and each new one may cost a call to the cluster.
_MAX_ADDED = 64
_MAX_NAMED = 3
_MAX_NAME = 63


class Owners(Protocol):
    """Existing objects of one kind."""

    async def has(self, user: User, namespace: str, name: str, uid: str) -> bool:
        """True if the object exists and the user may get it. Raises StatusError."""
        ...


def added_references(new: Object, old: Object | None) -> list[OwnerReferenceObject]:
    """The references to objects that did not own the object before."""
    before = {each.get("uid") for each in owner_references(old)}
    return [each for each in owner_references(new) if each.get("uid") not in before]


def without_references(obj: Object, dropped: Sequence[OwnerReferenceObject]) -> Object:
    """A copy of the object without these references."""
    remaining = [each for each in owner_references(obj) if each not in dropped]
    metadata = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    return {**obj, "metadata": {**metadata, "ownerReferences": remaining} if remaining else metadata}


def stale_warning(dropped: Sequence[OwnerReferenceObject]) -> str:
    named = ", ".join(f"{each.get('kind')} {str(each.get('name'))[:_MAX_NAME]}" for each in dropped[:_MAX_NAMED])
    more = f" and {len(dropped) - _MAX_NAMED} more" if len(dropped) > _MAX_NAMED else ""
    return (
        f"metadata.ownerReferences: dropped {named}{more}, because no such owner exists with this uid, and the garbage "
        "collector would delete the tenant"
    )


class StaleOwners:
    """`owners` has the kinds that are looked up; owners of other kinds stay. The root Tenant takes no owner at all,
    which validation reports."""

    name = "StaleOwners"
    _rule = PluginRule(TENANTS, WRITES)

    def __init__(self, *, owners: Mapping[GroupKind, Owners]) -> None:
        self._owners = owners

    def handles(self, attributes: Attributes) -> bool:
        if not self._rule.matches(attributes) or is_root(attributes.namespace, attributes.name):
            return False
        return bool(owner_references(attributes.object))

    async def admit(self, attributes: Attributes) -> Object:
        """Raises Invalid for too many new owners."""
        assert attributes.object is not None
        added = added_references(attributes.object, attributes.old_object)
        if len(added) > _MAX_ADDED:
            why = f"must have at most {_MAX_ADDED} items that are new"
            problem = errors.FieldError("FieldValueTooMany", "metadata.ownerReferences", len(added), why)
            raise errors.Invalid(attributes.resource.group_kind, name_for_errors(attributes), [problem])
        stale = [each for each in added if not await self._exists(attributes, each)]
        if not stale:
            return attributes.object
        attributes.context.warn(stale_warning(stale))
        return without_references(attributes.object, stale)

    async def _exists(self, attributes: Attributes, reference: OwnerReferenceObject) -> bool:
        group, slash, _ = str(reference.get("apiVersion") or "").rpartition("/")
        owners = self._owners.get(GroupKind(group if slash else "", str(reference.get("kind") or "")))
        name, uid = str(reference.get("name") or ""), str(reference.get("uid") or "")
        if owners is None or not name or not uid:
            # validation reports what is missing
            return True
        return await owners.has(attributes.user, attributes.namespace, name, uid)
