"""Combines several past states of a user's visibility: their union and their intersection."""

from __future__ import annotations

from apiserver.meta.resource import Key
from apiserver.storage.visibility import VisibleObjects, intersection, union
from registry.visibility.visible_objects import VisibleInNamespace


def with_namespace(visible: VisibleObjects, namespace: str, found: VisibleInNamespace) -> VisibleObjects:
    """`visible` with what was found in one namespace; the same object if that is no difference."""
    namespaces = visible.namespaces
    if namespaces is None:
        return visible
    before = frozenset(key for key in visible.keys if key.namespace == namespace)
    keys = frozenset(Key(namespace, name) for name in found.names)
    if found.everything == (namespace in namespaces) and keys == before:
        return visible
    namespaces = namespaces | {namespace} if found.everything else namespaces - {namespace}
    return VisibleObjects(namespaces, (visible.keys - before) | keys, visible.names)


class PastVisibility:
    """The visible objects, further and further back in time.

    `ever` and `always` are the union and the intersection of the states since the first `record`. A step costs as much
    as it changes, because with ten thousand visible namespaces, thousands of steps would block the event loop.
    """

    def __init__(self, visible: VisibleObjects) -> None:
        self._ever = _Objects(visible)
        self._always = self._ever
        self._recording = False
        self._unrestricted = visible.namespaces is None

    @property
    def ever(self) -> VisibleObjects:
        return self._ever.frozen()

    @property
    def always(self) -> VisibleObjects:
        return self._always.frozen()

    def record(self) -> None:
        """The current state and all earlier ones count."""
        if not self._recording:
            self._recording = True
            self._always = _Objects(self._ever.frozen())

    def replace(self, visible: VisibleObjects) -> None:
        """An earlier state."""
        self._unrestricted = visible.namespaces is None
        if self._recording:
            self._ever = _Objects(union(self._ever.frozen(), visible))
            self._always = _Objects(intersection(self._always.frozen(), visible))
        else:
            self._ever = self._always = _Objects(visible)

    def replace_in(self, namespace: str, found: VisibleInNamespace) -> None:
        """An earlier state, which differs in one namespace only."""
        if self._unrestricted:
            return
        keys = {Key(namespace, name) for name in found.names}
        if not self._recording or not found.everything:
            self._always.remove(namespace, keys, with_namespace=not found.everything)
        self._ever.add(namespace, keys, with_namespace=found.everything)


class _Objects:
    """VisibleObjects that change."""

    def __init__(self, visible: VisibleObjects) -> None:
        self._namespaces = None if visible.namespaces is None else set(visible.namespaces)
        self._keys = set(visible.keys)
        self._names = visible.names

    def frozen(self) -> VisibleObjects:
        namespaces = None if self._namespaces is None else frozenset(self._namespaces)
        return VisibleObjects(namespaces, frozenset(self._keys), self._names)

    def add(self, namespace: str, keys: set[Key], *, with_namespace: bool) -> None:
        """Adds objects of a namespace: these, or all."""
        self._keys |= keys
        if with_namespace and self._namespaces is not None:
            self._namespaces.add(namespace)

    def remove(self, namespace: str, keys: set[Key], *, with_namespace: bool) -> None:
        """Removes objects of a namespace except `keys`."""
        self._keys -= {key for key in self._keys if key.namespace == namespace and key not in keys}
        if with_namespace and self._namespaces is not None:
            self._namespaces.discard(namespace)
