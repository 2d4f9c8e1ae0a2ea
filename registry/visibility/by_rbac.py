"""Visibility by RBAC, updated for each identity when a role or binding that affects it changes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple
from weakref import WeakSet, finalize

from apiserver.authorization.authorizer import MASTERS
from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.context import User
from apiserver.storage.visibility import EVERYTHING, Visibility, VisibilityChange, VisibleObjects
from registry.rbac.role_index import Subject, subjects_of
from registry.visibility.past_visibility import PastVisibility, with_namespace
from registry.visibility.rbac_history import Affected, RbacHistory
from registry.visibility.visible_objects import (
    VisibilityCriterion,
    visible_in_namespace,
    visible_objects,
)

MARGIN_SECONDS = 10.0
"""A change shortly before the last event that a watcher got may not have reached the watcher, if another replica that
learns of changes later has served it: it is sent again."""

_MAX_IDENTITIES = 4096
_SYNC_SECONDS = 2.0


class Identity(NamedTuple):
    """The properties of a user that RBAC depends on."""

    name: str
    groups: tuple[str, ...]


def identity_of(user: User) -> Identity:
    return Identity(user.name, tuple(sorted(set(user.groups))))


class RbacVisibility:
    """A VisibilitySource by RBAC: what is visible is what the user may `get` by one of the criteria.

    `synced` is set once all roles and bindings have been listed.
    """

    def __init__(
        self,
        history: RbacHistory,
        criteria: Sequence[VisibilityCriterion],
        *,
        synced: asyncio.Event,
        margin_seconds: float = MARGIN_SECONDS,
    ) -> None:
        """`margin_seconds` can be 0 if no other process serves watches: one process sends everything in order."""
        self._history = history
        self._criteria = tuple(criteria)
        self._synced = synced
        self._margin = margin_seconds
        # the most recently used ones; the weak references below also find those that only a watch refers to
        self._by_identity: OrderedDict[Identity, _RbacUserVisibility] = OrderedDict()
        self._by_subject: dict[Subject, WeakSet[_RbacUserVisibility]] = {}
        history.subscribe(self._on_change)

    async def for_user(self, user: User) -> Visibility:
        if MASTERS in user.groups:
            return UNRESTRICTED
        await self._wait_until_synced()
        identity = identity_of(user)
        visibility = self._by_identity.get(identity)
        if visibility is None:
            visibility = _RbacUserVisibility(user, self._history, self._criteria, self._margin)
            self._by_identity[identity] = visibility
            # called after it has left the sets below, because it is added to them later: at the end of a watch, perhaps
            finalize(visibility, self._forget, identity).atexit = False
            for subject in subjects_of(user):
                found = self._by_subject.get(subject, WeakSet())
                found.add(visibility)
                # only now: an empty set may be dropped by the finalizer of another visibility, at any allocation
                self._by_subject[subject] = found
            while len(self._by_identity) > _MAX_IDENTITIES:
                self._by_identity.popitem(last=False)
        self._by_identity.move_to_end(identity)
        return visibility

    async def _wait_until_synced(self) -> None:
        """Waits for the first lists of roles and bindings. Without them it raises ServiceUnavailable, because an empty
        result would be wrong."""
        if self._synced.is_set():
            return
        try:
            async with asyncio.timeout(_SYNC_SECONDS):
                await self._synced.wait()
        except TimeoutError:
            raise ServiceUnavailable("roles and bindings are still being read", retry_after=1) from None

    def _on_change(self, affected: Affected, rv: int, namespace: str | None) -> None:
        known = {subject for subjects in affected for subject in subjects if subject in self._by_subject}
        for visibility in {visibility for subject in known for visibility in self._by_subject.get(subject, ())}:
            visibility.refresh(rv, namespace)

    def _forget(self, identity: Identity) -> None:
        """Drops the subjects of an identity that no other visibility has."""
        for subject in subjects_of(User(name=identity.name, groups=identity.groups)):
            if not self._by_subject.get(subject, True):
                del self._by_subject[subject]


class _RbacUserVisibility:
    def __init__(
        self, user: User, history: RbacHistory, criteria: Sequence[VisibilityCriterion], margin_seconds: float
    ) -> None:
        self.user = user
        self._history = history
        self._criteria = criteria
        self._margin = margin_seconds
        self._visible = visible_objects(user, history.index, criteria)
        self._callbacks: dict[int, Callable[[VisibilityChange], None]] = {}
        self._next = 0

    @property
    def visible(self) -> VisibleObjects:
        return self._visible

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        if rv < self._history.first_rv:
            return None
        first, last = sent
        # the watcher received `rv` after recording started, even if the cache does not know when
        start = max(first - self._margin, self._history.started_at)
        undone = self._history.undo_until(start, frozenset(subjects_of(self.user)))
        if undone is None:
            return None
        visible = PastVisibility(self._visible)
        for change in undone:
            if change.time <= last:
                visible.record()
            if change.namespace is None:
                visible.replace(visible_objects(self.user, change.past, self._criteria))
            else:
                found = visible_in_namespace(self.user, change.past, self._criteria, change.namespace)
                visible.replace_in(change.namespace, found)
        visible.record()
        return VisibilityChange(visible.ever, visible.always, self._visible, self._history.rv)

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        number = self._next = self._next + 1
        self._callbacks[number] = callback

        def end() -> None:
            self._callbacks.pop(number, None)

        return end

    def refresh(self, rv: int, namespace: str | None) -> None:
        """Recomputes the visibility of one namespace, or of all. The former keeps the creation of thousands of tenants
        cheap for a user who is bound in each of them."""
        before = self._visible
        if namespace is None:
            self._visible = visible_objects(self.user, self._history.index, self._criteria)
        else:
            found = visible_in_namespace(self.user, self._history.index, self._criteria, namespace)
            self._visible = with_namespace(before, namespace, found)
        if before is self._visible or before == self._visible:
            return
        change = VisibilityChange(before, before, self._visible, rv)
        for callback in tuple(self._callbacks.values()):
            callback(change)


class _Unrestricted:
    visible = EVERYTHING

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        return VisibilityChange(EVERYTHING, EVERYTHING, EVERYTHING, rv)

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        return lambda: None


UNRESTRICTED: Visibility = _Unrestricted()
