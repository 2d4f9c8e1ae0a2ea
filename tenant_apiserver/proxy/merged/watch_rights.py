"""The rights to list and to watch, of which merged watches need both."""

from __future__ import annotations

from apiserver.meta.resource import GroupResource
from apiserver.storage.visibility import VisibilitySource
from registry.visibility.intersected import IntersectedVisibility
from registry.visibility.visible_objects import NamedObjects, VisibilityCriterion
from tenant_apiserver.wiring.visibility import RbacSources


class WatchRights:
    """One source for each right to a kind, as the history keeps them all. None has a margin: the answers know since
    when a client has had what it has."""

    def __init__(self, rbac: RbacSources, named: NamedObjects = NamedObjects.NOTHING) -> None:
        self._rbac = rbac
        self._named = named
        self._sources: dict[tuple[GroupResource, str], VisibilitySource] = {}

    def to(self, verb: str, kind: GroupResource) -> VisibilitySource:
        """Shows the objects that callers may use one verb on."""
        source = self._sources.get((kind, verb))
        if source is None:
            criterion = VisibilityCriterion(kind.group, kind.resource, self._named, verb=verb)
            source = self._sources[kind, verb] = self._rbac.new_source([criterion], margin_seconds=0.0)
        return source

    def to_follow(self, kind: GroupResource) -> VisibilitySource:
        """A client that is granted a part is sent its objects, which takes both rights. With one of them, which may
        have come first, it would wait in vain for these objects when the other one comes."""
        return IntersectedVisibility(self.to("watch", kind), self.to("list", kind))
