"""Decides which gateway each listed namespace is attached to, and patches the label that names it. Pure.

An annotation marks the labels that this controller wrote. A label without the annotation is the tenant's own and is
never changed (PEER-05).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.model import Attachments, TenantGateway
from registry.names import GATEWAY_ATTACHED_BY_ANNOTATION, GATEWAY_LABEL


def assign_attachments(
    gateways: Sequence[TenantGateway], namespaces: Mapping[str, Object], *, depth: Callable[[str], int]
) -> Attachments:
    """Assigns every existing namespace that TenantGateways list to exactly one of them (R-188 to R-197).

    `namespaces` are those that exist, by name; `depth` returns the distance of a gateway's namespace from the root of
    the tenant tree, and the smallest depth wins. Pass the result to `namespace_patch(namespace, owners.get(name))`:
    it labels a namespace in `owners` and removes our label from any other.
    """
    nearest_first = sorted(
        (each for each in gateways if not each.terminating), key=lambda each: (depth(each.key.namespace), each.key)
    )
    owners: dict[str, str] = {}
    attached_elsewhere: dict[Key, dict[str, str]] = {}
    for gateway in nearest_first:
        for name in sorted(set(gateway.attached) & namespaces.keys()):
            owner = foreign_owner(namespaces[name]) or owners.setdefault(name, gateway.key.namespace)
            if owner != gateway.key.namespace:
                attached_elsewhere.setdefault(gateway.key, {})[name] = owner
    return Attachments(owners=owners, attached_elsewhere=attached_elsewhere)


def foreign_owner(namespace: Object) -> str:
    """The owner named by a label that this controller did not write; empty if the label is missing, empty or ours."""
    metadata = namespace["metadata"]
    if (metadata.get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION):
        return ""
    return str((metadata.get("labels") or {}).get(GATEWAY_LABEL) or "")


def namespace_patch(namespace: Object, owner: str | None) -> Object | None:
    """The desired changes to a Namespace for `ClusterWriter.patch`; None if there is nothing to change.

    With an owner they set the label and the annotation (R-189); without one they remove both if the label is ours
    (R-191).
    """
    metadata = namespace["metadata"]
    label = (metadata.get("labels") or {}).get(GATEWAY_LABEL)
    annotation = (metadata.get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION)
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
