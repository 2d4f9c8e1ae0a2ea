"""What a Tenant leaves in a Namespace that stays when it goes: one that was given to it. All that was ours is taken
out again, so that nobody keeps rights in it, and nothing there follows the fate of another tenant."""

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
    """The merge patch that takes our labels and our ownerReference off a Namespace; empty if there are none.

    The gateway label stays where the gateway part wrote it.
    """
    metadata = namespace["metadata"]
    attached = GATEWAY_ATTACHED_BY_ANNOTATION in (metadata.get("annotations") or {})
    labels = {
        key: None for key in metadata.get("labels") or {} if _is_ours(key) and not (attached and key == GATEWAY_LABEL)
    }
    held = metadata.get("ownerReferences") or []
    kept = [each for each in held if (each.get("kind"), each.get("name")) != (NAMESPACES.kind, tenant.key.namespace)]
    changes: Object = {"labels": labels} if labels else {}
    if kept != held:
        changes["ownerReferences"] = kept or None
    return {"metadata": changes} if changes else {}


def _is_ours(key: str) -> bool:
    return key.startswith((ANCESTOR_LABEL_PREFIX, NAMESPACE_LABEL_PREFIX)) or key == SCHEDULING_CLASS_LABEL


class AdoptedNamespaceCleanup:
    """To be given as `listen` to whoever keeps marks of what Namespaces hold. Methods raise the host's StatusError,
    NotLeading."""

    def __init__(self, *, writer: ClusterWriter, contents: ContentWriter, add_handler: AddHandler) -> None:
        self._writer = writer
        self._writer = contents
        self._listen = add_handler
        self._marks: list[ObjectDigests] = []

    def add_handler(self, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
        if isinstance(handler, ObjectDigests):
            self._marks.append(handler)
        self._listen(resource, handler, name=name)

    async def clean_up(self, namespace: Object, tenant: TenantSummary) -> None:
        """What others made stays, and so does all that Helm manages."""
        for marks in self._marks:
            for name in marks.names(tenant.namespace):
                await self._writer.remove(marks, tenant.namespace, name)
        if changes := cleanup_patch(namespace, tenant):
            await self._writer.patch(NAMESPACES, namespace, changes)
