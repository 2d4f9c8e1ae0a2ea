"""Watches that would go on at the cluster without what their clients could not see before."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from aiohttp import web

from apiserver.meta.resource import GroupResource
from apiserver.request.context import Handler, RequestContext
from tenant_apiserver.proxy.merged.answers import MergedAnswers
from tenant_apiserver.proxy.merged.watch_rights import WatchRights
from tenant_apiserver.proxy.own_kind import is_whole_collection


class WidenedWatches:
    """A client has a part of a collection, its watch ends, and then its user is granted the whole: the cluster answers
    the next watch, and sends no objects that exist already. Such a watch gets 410, so that its client lists again.
    After a start of the proxy nothing is known of the time before."""

    def __init__(
        self, answers: MergedAnswers, rights: WatchRights, kinds: Collection[GroupResource], *, synced: asyncio.Event
    ) -> None:
        """`kinds` are those that the proxy answers itself. `synced` is set once the rights are known."""
        self._answers = answers
        self._sources = {kind: rights.to_follow(kind) for kind in kinds}
        self._synced = synced

    async def handler(self, context: RequestContext) -> Handler | None:
        """The handler of such a watch, None for every other request: the cluster is asked."""
        info = context.info
        if not info.is_watch or not is_whole_collection(context) or not self._synced.is_set():
            return None
        source = self._sources.get(GroupResource(info.group, info.resource))
        if source is None:
            return None
        rights = await source.for_user(context.user)
        if rights.visible.namespaces is not None or not self._answers.has_less(context, rights):
            return None
        return self._expired

    async def _expired(self, context: RequestContext) -> web.StreamResponse:
        return await self._answers.everything_expired(context)
