"""What a Tenant leaves in a Namespace that stays when it goes: one that was given to it. All that was ours is taken
out again, so that nobody keeps rights in it, and nothing there follows the fate of another tenant."""

from __future__ import annotations

from apiserver.meta.resource import Object
from controller.runtime.apply import Apply
from controller.tenant.managed_objects import ContentWriter, Marks
from controller.tenant.namespace_content_steps import Listen
from registry.cluster.event_handlers import EventHandler
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.names import (
    ANCESTOR_LABEL_PREFIX,
    GATEWAY_ATTACHED_BY_ANNOTATION,
    GATEWAY_LABEL,
    NAMESPACE_LABEL_PREFIX,
    SCHEDULING_CLASS_LABEL,
)
from registry.tenant.summary import TenantFacts


def stripped(namespace: Object, facts: TenantFacts) -> Object:
    """The merge patch that takes our labels and our ownerReference off a Namespace; empty if there are none.

    The gateway label stays where the gateway part wrote it.
    """
    metadata = namespace["metadata"]
    attached = GATEWAY_ATTACHED_BY_ANNOTATION in (metadata.get("annotations") or {})
    labels = {
        key: None for key in metadata.get("labels") or {} if _is_ours(key) and not (attached and key == GATEWAY_LABEL)
    }
    held = metadata.get("ownerReferences") or []
    kept = [each for each in held if (each.get("kind"), each.get("name")) != (NAMESPACES.kind, facts.key.namespace)]
    changes: Object = {"labels": labels} if labels else {}
    if kept != held:
        changes["ownerReferences"] = kept or None
    return {"metadata": changes} if changes else {}


def _is_ours(key: str) -> bool:
    return key.startswith((ANCESTOR_LABEL_PREFIX, NAMESPACE_LABEL_PREFIX)) or key == SCHEDULING_CLASS_LABEL


class Leavings:
    """To be given as `listen` to whoever keeps marks of what Namespaces hold. Methods raise the host's StatusError,
    NotLeading."""

    def __init__(self, *, apply: Apply, writer: ContentWriter, listen: Listen) -> None:
        self._apply = apply
        self._writer = writer
        self._listen = listen
        self._marks: list[Marks] = []

    def listen(self, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
        if isinstance(handler, Marks):
            self._marks.append(handler)
        self._listen(resource, handler, name=name)

    async def take_out(self, namespace: Object, facts: TenantFacts) -> None:
        """What others made stays, and so does all that Helm manages."""
        for marks in self._marks:
            for name in marks.names(facts.namespace):
                await self._writer.remove(marks, facts.namespace, name)
        if changes := stripped(namespace, facts):
            await self._apply.patch(NAMESPACES, namespace, changes)
