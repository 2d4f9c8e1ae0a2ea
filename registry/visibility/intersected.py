"""The objects that two sources show, each by a right of its own."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.request.context import User
from apiserver.storage.visibility import (
    Visibility,
    VisibilityChange,
    VisibilitySource,
    VisibleObjects,
    intersection,
)


class IntersectedVisibility:
    """A VisibilitySource: an object is visible if it is by both sources. RBAC may grant the two in different roles, at
    different times, so no rule tells both."""

    def __init__(self, one: VisibilitySource, other: VisibilitySource) -> None:
        self._one = one
        self._other = other

    async def for_user(self, user: User) -> Visibility:
        return _Both(await self._one.for_user(user), await self._other.for_user(user))


class _Both:
    def __init__(self, one: Visibility, other: Visibility) -> None:
        self._one = one
        self._other = other
        self._of = (one.visible, other.visible)
        self._visible = _common(*self._of)

    @property
    def visible(self) -> VisibleObjects:
        one, other = self._one.visible, self._other.visible
        if one is not self._of[0] or other is not self._of[1]:
            self._of = one, other
            self._visible = _common(one, other)
        return self._visible

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        one, other = self._one.change_since(rv, sent), self._other.change_since(rv, sent)
        if one is None or other is None:
            return None
        ever, always = _common(one.ever, other.ever), _common(one.always, other.always)
        return VisibilityChange(ever, always, self.visible, max(one.rv, other.rv))

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        def follow(changing: Visibility, still: Visibility) -> Callable[[], None]:
            return changing.subscribe(lambda change: callback(self._with(change, still)))

        ends = follow(self._one, self._other), follow(self._other, self._one)

        def end() -> None:
            for each in ends:
                each()

        return end

    def _with(self, change: VisibilityChange, still: Visibility) -> VisibilityChange:
        """The change of both, after that of one."""
        ever, always = _common(change.ever, still.visible), _common(change.always, still.visible)
        return VisibilityChange(ever, always, self.visible, change.rv)


def _common(one: VisibleObjects, other: VisibleObjects) -> VisibleObjects:
    """Everything has all keys and names, too."""
    if one.namespaces is None:
        return other
    return one if other.namespaces is None else intersection(one, other)
