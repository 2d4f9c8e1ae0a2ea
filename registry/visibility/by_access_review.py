"""Who may see what, by asking the host about each place: for hosts that do not authorize by RBAC alone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

from apiserver.authorization.authorizer import MASTERS, AccessAttributes, Authorizer
from apiserver.meta.errors import StatusError
from apiserver.request.context import User
from apiserver.storage.visibility import Visibility, VisibilityChange, VisibleNamespaces
from registry.visibility.by_rbac import UNRESTRICTED, Identity, identity_of
from registry.visibility.visible_namespaces import VisibilityCriterion

_logger = logging.getLogger(__name__)
_INTERVAL_SECONDS = 10.0
_MAX_IDENTITIES = 1024
_AT_A_TIME = 32


class AccessReviewVisibility:
    """Sights by SubjectAccessReviews, of which `authorizer` asks: one for the whole cluster, and if that is a no, one
    for each of the `places` that there are.

    What was found holds for ten seconds, and is found anew as often for those who watch. `version` is the
    resourceVersion that a revocation is told under. Of the past nothing is known: a watch that is to go on where it
    stopped begins anew.
    """

    def __init__(
        self,
        authorizer: Authorizer,
        questions: Sequence[VisibilityCriterion],
        *,
        places: Callable[[], Iterable[str]],
        version: Callable[[], int],
        interval: float = _INTERVAL_SECONDS,
    ) -> None:
        self._authorizer = authorizer
        self._questions = tuple(questions)
        self._places = places
        self._version = version
        self._interval = interval
        self._by_identity: OrderedDict[Identity, _ReviewedUserVisibility] = OrderedDict()
        self._slots = asyncio.Semaphore(_AT_A_TIME)

    async def for_user(self, user: User) -> Visibility:
        if MASTERS in user.groups:
            return UNRESTRICTED
        identity = identity_of(user)
        visibility = self._by_identity.get(identity)
        if visibility is None:
            visibility = self._by_identity[identity] = _ReviewedUserVisibility(
                look=lambda: self._look(user), version=self._version, interval=self._interval
            )
            while len(self._by_identity) > _MAX_IDENTITIES:
                self._by_identity.popitem(last=False)
        self._by_identity.move_to_end(identity)
        await visibility.look_again()
        return visibility

    async def _look(self, user: User) -> VisibleNamespaces:
        if await self._may(user, ""):
            return None
        places = list(self._places())
        allowed = await asyncio.gather(*(self._may(user, place) for place in places))
        return frozenset(place for place, yes in zip(places, allowed, strict=True) if yes)

    async def _may(self, user: User, place: str) -> bool:
        """Whether one question is answered with yes; of a Namespace in the whole cluster that is meant which has any
        name."""
        for question in self._questions:
            attributes = AccessAttributes(
                user=user,
                verb="get",
                group=question.group,
                resource=question.resource,
                namespace=place,
                name=place if question.by_name else "",
            )
            async with self._slots:
                if (await self._authorizer.authorize(attributes)).allowed:
                    return True
        return False


class _ReviewedUserVisibility:
    def __init__(
        self, *, look: Callable[[], Awaitable[VisibleNamespaces]], version: Callable[[], int], interval: float
    ) -> None:
        self._look = look
        self._version = version
        self._interval = interval
        self._places: VisibleNamespaces = frozenset()
        self._looked = float("-inf")
        self._looking: asyncio.Future[None] | None = None
        self._callbacks: dict[int, Callable[[VisibilityChange], None]] = {}
        self._next = 0
        self._watching: asyncio.Task[None] | None = None

    @property
    def namespaces(self) -> VisibleNamespaces:
        return self._places

    def change_since(self, rv: int, told: tuple[float, float]) -> VisibilityChange | None:
        return None

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        number = self._next = self._next + 1
        self._callbacks[number] = callback
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="watch-what-is-seen")

        def end() -> None:
            self._callbacks.pop(number, None)
            if not self._callbacks and self._watching is not None:
                self._watching.cancel()
                self._watching = None

        return end

    async def look_again(self) -> None:
        """Ask the host, unless it has just been asked. Raises StatusError."""
        if time.monotonic() < self._looked + self._interval:
            return
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._refresh())
            self._looking.add_done_callback(self._looked_at)
        await asyncio.shield(self._looking)

    def _looked_at(self, looking: asyncio.Future[None]) -> None:
        self._looking = None
        # whoever waited has been told; nobody may have
        with suppress(asyncio.CancelledError):
            looking.exception()

    async def _refresh(self) -> None:
        found = await self._look()
        before, self._places = self._places, found
        self._looked = time.monotonic()
        if before != found:
            change = VisibilityChange(before, before, found, self._version())
            for callback in tuple(self._callbacks.values()):
                callback(change)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self.look_again()
            except StatusError as error:
                # what is seen stays seen until the host can be asked again
                _logger.debug("who may see what cannot be asked: %s", error)
