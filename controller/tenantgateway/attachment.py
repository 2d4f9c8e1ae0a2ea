"""Decides which gateway each listed namespace is attached to, and patches the label that names it. Pure.

An annotation marks the labels that this controller wrote. A label without the annotation is the tenant's own and is
never changed (PEER-05).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.model import Attachments, TenantGateway
from registry.names import GATEWAY_ATTACHED_BY_ANNOTATION, GATEWAY_LABEL


@dataclass(frozen=True, slots=True)
class AttachmentRules:
    """`publisher` is the namespace of the tenant that publishes the platform's services, which live in the namespaces
    `platform`; `depth` returns the distance of a gateway's namespace from the root of the tenant tree. A gateway in a
    namespace that may not own one, according to `may_own`, keeps the namespaces that it has, and gets no others.
    Without `has_publisher`, `publisher` is the namespace of no tenant, perhaps by a typing error: the platform's
    namespaces stay where they are."""

    publisher: str
    platform: Collection[str]
    depth: Callable[[str], int]
    may_own: Callable[[str], bool] = lambda _: True
    has_publisher: bool = True


def assign_attachments(
    gateways: Sequence[TenantGateway], namespaces: Mapping[str, Object], rules: AttachmentRules
) -> Attachments:
    """Assigns every existing namespace that TenantGateways list to at most one of them (R-188 to R-197).

    A namespace of the platform is attached to the publisher's gateway alone, because routes of the platform name no
    other. Any other one goes to the publisher, else stays with its holder as long as that lists it, so that a new
    tenant takes nothing from a working one; else to the gateway nearest to the root.

    `namespaces` are those that exist, by name. Pass the result to `namespace_patch(namespace, owners.get(name))`: it
    labels a namespace in `owners` and removes our label from any other.
    """
    claimants = [each for each in gateways if not each.terminating]
    owners: dict[str, str] = {}
    attached_elsewhere: dict[Key, dict[str, str]] = {}
    for name in sorted({name for each in claimants for name in each.attached} & namespaces.keys()):
        listing = [each for each in claimants if name in each.attached and _may_have(each, namespaces[name], rules)]
        owner = foreign_owner(namespaces[name])
        if not owner and (holder := _holder(name, listing, namespaces[name], rules)):
            owner = owners[name] = holder
        for gateway in listing:
            # without an owner, it is one of the platform, which waits for the publisher's gateway
            if owner != gateway.key.namespace:
                attached_elsewhere.setdefault(gateway.key, {})[name] = owner
    return Attachments(owners=owners, attached_elsewhere=attached_elsewhere)


def _may_have(gateway: TenantGateway, namespace: Object, rules: AttachmentRules) -> bool:
    return rules.may_own(gateway.key.namespace) or attached_by(namespace) == gateway.key.namespace


def _holder(name: str, listing: Sequence[TenantGateway], namespace: Object, rules: AttachmentRules) -> str:
    """The namespace of the gateway that gets a namespace without a foreign label; empty if none does."""
    owners = {each.key.namespace for each in listing}
    if rules.publisher in owners:
        return rules.publisher
    if name in rules.platform and rules.has_publisher:
        return ""
    if (present := attached_by(namespace)) in owners:
        return present
    if name in rules.platform:
        return ""
    return min(owners, key=lambda owner: (rules.depth(owner), owner), default="")


def attached_by(namespace: Object) -> str:
    """The namespace of the gateway that this controller has attached a namespace to; empty if to none."""
    return str((namespace["metadata"].get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION) or "")


def foreign_owner(namespace: Object) -> str:
    """The owner named by a label that this controller did not write; empty if the label is missing, empty or ours."""
    if attached_by(namespace):
        return ""
    return str((namespace["metadata"].get("labels") or {}).get(GATEWAY_LABEL) or "")


def namespace_patch(namespace: Object, owner: str | None) -> Object | None:
    """The desired changes to a Namespace for `ClusterWriter.patch`; None if there is nothing to change.

    With an owner they set the label and the annotation (R-189); without one they remove both if the label is ours
    (R-191).
    """
    metadata = namespace["metadata"]
    label = (metadata.get("labels") or {}).get(GATEWAY_LABEL)
    annotation = attached_by(namespace)
    foreign_or_absent = not annotation and (label or owner is None)
    if foreign_or_absent or (label == owner and annotation == owner):
        return None
    return {
        "metadata": {
            "name": metadata["name"],
            "labels": {GATEWAY_LABEL: owner},
            "annotations": {GATEWAY_ATTACHED_BY_ANNOTATION: owner},
        }
    }
