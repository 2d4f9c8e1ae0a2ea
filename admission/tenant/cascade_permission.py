"""Requires the right to delete a Tenant for writes that would delete its children together with it.

Otherwise a user who may only update it could prepare the deletion of its children, at the next deletion by anyone.
"""

from __future__ import annotations

from admission.owner_references import denied_deletion
from admission.plugin_rule import TENANTS, WRITES, PluginRule, name_for_errors
from apiserver.admission import Attributes
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta import errors
from apiserver.meta.resource import Object
from registry.generic.finalizers import FOREGROUND
from registry.names import CASCADE_ANNOTATION


def added_cascade(new: Object, old: Object | None) -> str:
    """Names what a write adds that lets the deletion of the Tenant include its children; empty if it adds nothing."""
    if _allows_cascade(new) and not (old is not None and _allows_cascade(old)):
        return f"the annotation {CASCADE_ANNOTATION}"
    if _is_foreground(new) and not (old is not None and _is_foreground(old)):
        return f"the finalizer {FOREGROUND}"
    return ""


def _allows_cascade(tenant: Object) -> bool:
    return (tenant["metadata"].get("annotations") or {}).get(CASCADE_ANNOTATION) == "true"


def _is_foreground(tenant: Object) -> bool:
    return FOREGROUND in (tenant["metadata"].get("finalizers") or ())


class TenantCascadePermission:
    name = "TenantCascadePermission"
    _rule = PluginRule(TENANTS, WRITES)

    def __init__(self, *, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, attributes: Attributes) -> bool:
        if not self._rule.matches(attributes):
            return False
        assert attributes.object is not None
        return bool(added_cascade(attributes.object, attributes.old_object))

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if why := await denied_deletion(self._authorizer, attributes):
            added = added_cascade(attributes.object, attributes.old_object)
            message = f"cannot set {added} on a tenant that you can't delete: {why}"
            raise errors.Forbidden(TENANTS, name_for_errors(attributes), message)
