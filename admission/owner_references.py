"""The plugin OwnerReferencesPermissionEnforcement of Kubernetes (plugin/pkg/admission/gc).

A caller who sets an owner can have the garbage collector delete the object, and one who sets `blockOwnerDeletion` can
delay the deletion of the owner. So the first needs the right to delete the object, unless it is new, and the second
the right to update the finalizers of the owner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from admission.plugin_rule import WRITES, PluginRule, name_for_errors
from apiserver.admission import Attributes
from apiserver.authorization.authorizer import AccessAttributes, Authorizer
from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Object
from apiserver.request.context import User
from registry.cluster.interface import ClusterResource

# where Kubernetes ends with ", <nil>"
_NO_RULE = "no rule allows it"

OwnerReferenceObject = Mapping[str, Any]
"""An entry of metadata.ownerReferences."""


class OwnerKinds(Protocol):
    async def resources(self, api_version: str, kind: str) -> Sequence[ClusterResource]:
        """The resources that the cluster serves for a kind in this version, none for an unknown one. Raises
        StatusError."""
        ...


def owner_references(obj: Object | None) -> Sequence[OwnerReferenceObject]:
    return (obj["metadata"].get("ownerReferences") or ()) if obj is not None else ()


def changes_owners(new: Object, old: Object | None) -> bool:
    """True if the references differ, also in their order."""
    return list(owner_references(new)) != list(owner_references(old))


def newly_blocking(new: Object, old: Object | None) -> list[OwnerReferenceObject]:
    """The references with blockOwnerDeletion that did not have it before."""
    before = {each.get("uid") for each in owner_references(old) if each.get("blockOwnerDeletion") is True}
    return [
        each
        for each in owner_references(new)
        if each.get("blockOwnerDeletion") is True and each.get("uid") not in before
    ]


class OwnerReferencesPermissionEnforcement:
    """Applies to writes of one resource."""

    name = "OwnerReferencesPermissionEnforcement"

    def __init__(self, *, resource: GroupResource, authorizer: Authorizer, kinds: OwnerKinds) -> None:
        self._rule = PluginRule(resource, WRITES)
        self._authorizer = authorizer
        self._kinds = kinds

    def handles(self, attributes: Attributes) -> bool:
        if not self._rule.matches(attributes):
            return False
        assert attributes.object is not None
        return changes_owners(attributes.object, attributes.old_object)

    async def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if attributes.operation != "CREATE" and (why := await denied_deletion(self._authorizer, attributes)):
            raise _forbidden(attributes, f"cannot set an ownerRef on a resource you can't delete: {why}")
        blocking = newly_blocking(attributes.object, attributes.old_object)
        if blocking and not await self._may_finalize_anything(attributes.user):
            for reference in blocking:
                await self._check_blocking(attributes, reference)

    async def _may_finalize_anything(self, user: User) -> bool:
        """Spares the lookup of the owner's resource for users who may update all finalizers."""
        every = AccessAttributes(
            user=user, verb="update", group="*", version="*", resource="*", subresource="finalizers", name="*"
        )
        return (await self._authorizer.authorize(every)).allowed

    async def _check_blocking(self, attributes: Attributes, reference: OwnerReferenceObject) -> None:
        version, kind = str(reference.get("apiVersion") or ""), str(reference.get("kind") or "")
        resources = await self._kinds.resources(version, kind)
        if not resources:
            why = (
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
                f'{version} Kind {kind}: no matches for kind "{kind}" in version "{version}"'
            )
            raise _forbidden(attributes, why)
        for resource in resources:
            access = AccessAttributes(
                user=attributes.user,
                verb="update",
                group=resource.group,
                version=resource.version,
                resource=resource.plural,
                subresource="finalizers",
                namespace=attributes.namespace if resource.namespaced else "",
                name=str(reference.get("name") or ""),
            )
            decision = await self._authorizer.authorize(access)
            if not decision.allowed:
                why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers"
                raise _forbidden(attributes, f"{why} on: {decision.reason or _NO_RULE}")


async def denied_deletion(authorizer: Authorizer, attributes: Attributes) -> str:
    """The reason why the user may not delete the object of the request, empty if that is allowed. Raises the errors of
    the authorizer."""
    resource = attributes.resource
    access = AccessAttributes(
        user=attributes.user,
        verb="delete",
        group=resource.group,
        version=resource.version,
        resource=resource.plural,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
    )
    decision = await authorizer.authorize(access)
    return "" if decision.allowed else decision.reason or _NO_RULE


def _forbidden(attributes: Attributes, why: str) -> errors.Forbidden:
    return errors.Forbidden(attributes.resource.group_resource, name_for_errors(attributes), why)
