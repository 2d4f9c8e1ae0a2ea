"""Cleans up the Namespace that a deleted Tenant had adopted, and that therefore remains.

Everything that we created in it is removed, so that no user keeps permissions there, and the deletion of another
tenant does not delete objects in it.
"""

from __future__ import annotations

from apiserver.meta.resource import Object
from controller.runtime.apply import ClusterWriter
from controller.tenant.managed_objects import ContentWriter, ObjectDigests
from controller.tenant.namespace_content_steps import AddHandler
from registry.cluster.event_handlers import EventHandler
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.names import (
    ANCESTOR_LABEL_PREFIX,
    GATEWAY_ATTACHED_BY_ANNOTATION,
    GATEWAY_LABEL,
    NAMESPACE_LABEL_PREFIX,
    SCHEDULING_CLASS_LABEL,
)
from registry.tenant.summary import TenantSummary


def cleanup_patch(namespace: Object, tenant: TenantSummary) -> Object:
    """The merge patch that removes our labels and our ownerReference from a Namespace; empty if it has none.

    The gateway label stays if the TenantGateway controller has set it.
    """
    metadata = namespace["metadata"]
    attached = GATEWAY_ATTACHED_BY_ANNOTATION in (metadata.get("annotations") or {})
    labels = {
        key: None for key in metadata.get("labels") or {} if _is_ours(key) and not (attached and key == GATEWAY_LABEL)
    }
    present = metadata.get("ownerReferences") or []
    remaining = [
        each for each in present if (each.get("kind"), each.get("name")) != (NAMESPACES.kind, tenant.key.namespace)
    ]
    changes: Object = {"labels": labels} if labels else {}
    if remaining != present:
        changes["ownerReferences"] = remaining or None
    return {"metadata": changes} if changes else {}


def _is_ours(key: str) -> bool:
    return key.startswith((ANCESTOR_LABEL_PREFIX, NAMESPACE_LABEL_PREFIX)) or key == SCHEDULING_CLASS_LABEL


class AdoptedNamespaceCleanup:
    """Its `add_handler` is passed to `content_steps`, so that it knows all objects that the steps create.

    Methods raise the cluster's StatusError, and NotLeading.
    """

    def __init__(self, *, writer: ClusterWriter, contents: ContentWriter, add_handler: AddHandler) -> None:
        self._writer = writer
        self._contents = contents
        self._add_handler = add_handler
        self._digests: list[ObjectDigests] = []
        self._last_digests: list[ObjectDigests] = []

    def add_handler(self, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
        if isinstance(handler, ObjectDigests):
            self._digests.append(handler)
        self._add_handler(resource, handler, name=name)

    def add_digests(self, *digests: ObjectDigests) -> None:
        """Further objects to remove, after those of handlers: the Namespace stays isolated while others have access."""
        self._last_digests.extend(digests)

    async def clean_up(self, namespace: Object, tenant: TenantSummary) -> None:
        """Remove what we created. Objects that Helm or others created remain."""
        for digests in (*self._digests, *self._last_digests):
            for name in digests.names(tenant.namespace):
                await self._contents.remove(digests, tenant.namespace, name)
        if changes := cleanup_patch(namespace, tenant):
            await self._writer.patch(NAMESPACES, namespace, changes)
