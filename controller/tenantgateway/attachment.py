"""Which gateway the system namespaces are attached to, and the label that says so. Pure.

The annotation marks a label that this controller wrote. A label without it is the tenant's, and never touched
(PEER-05).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.model import Attachments, TenantGateway
from registry.names import GATEWAY_ATTACHED_BY_ANNOTATION, GATEWAY_LABEL


def assign_attachments(
    gateways: Sequence[TenantGateway], namespaces: Mapping[str, Object], *, depth: Callable[[str], int]
) -> Attachments:
    """Of all TenantGatewayIndex: who has which of the namespaces that they list (R-188 to R-197).

    `namespaces` are those that exist, by name; `depth` is how far a gateway's namespace is from the tree's root.
    A namespace in `owners` is to be labelled, any other that carries our annotation is to be stripped:
    `namespace_patch(namespace, owners.get(name))` does both.
    """
    nearest_first = sorted(
        (each for each in gateways if not each.terminating), key=lambda each: (depth(each.key.namespace), each.key)
    )
    owners: dict[str, str] = {}
    attached_elsewhere: dict[Key, dict[str, str]] = {}
    for gateway in nearest_first:
        for name in sorted(set(gateway.attached) & namespaces.keys()):
            holder = foreign_owner(namespaces[name]) or owners.setdefault(name, gateway.key.namespace)
            if holder != gateway.key.namespace:
                attached_elsewhere.setdefault(gateway.key, {})[name] = holder
    return Attachments(owners=owners, attached_elsewhere=attached_elsewhere)


def foreign_owner(namespace: Object) -> str:
    """Whose gateway a label that we did not write names; empty if the label is missing, empty or ours."""
    metadata = namespace["metadata"]
    if (metadata.get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION):
        return ""
    return str((metadata.get("labels") or {}).get(GATEWAY_LABEL) or "")


def namespace_patch(namespace: Object, owner: str | None) -> Object | None:
    """What to change on a Namespace, as a desired object for controller.runtime.apply; None if nothing.

    With an owner the label and the annotation (R-189), without one their removal, if the label is ours (R-191).
    """
    metadata = namespace["metadata"]
    label = (metadata.get("labels") or {}).get(GATEWAY_LABEL)
    annotation = (metadata.get("annotations") or {}).get(GATEWAY_ATTACHED_BY_ANNOTATION)
    unmarked = not annotation and (label or owner is None)
    if unmarked or (label == owner and annotation == owner):
        return None
    return {
        "metadata": {
            "name": metadata["name"],
            "labels": {GATEWAY_LABEL: owner},
            "annotations": {GATEWAY_ATTACHED_BY_ANNOTATION: owner},
        }
    }
