"""Lists and watches of all namespaces for those who may list a kind in some: `kubectl get pods -A`."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from apiserver.meta.errors import Forbidden
from apiserver.meta.resource import GroupResource
from apiserver.request.context import Handler, RequestContext, User
from apiserver.request.request_info import RequestInfo
from apiserver.storage.visibility import Visibility, VisibleObjects
from tenant_apiserver.proxy.merged.answers import MergedAnswers
from tenant_apiserver.proxy.merged.part import CollectionPart, namespace_part
from tenant_apiserver.proxy.merged.watch_rights import WatchRights


class NamespacedLists:
    """An OwnKind of the `kinds`. A caller with more than `max_namespaces` gets a 403 that says so: each namespace is a
    request, and a stream of each watch."""

    def __init__(
        self, answers: MergedAnswers, rights: WatchRights, kinds: Collection[GroupResource], *, max_namespaces: int
    ) -> None:
        self._answers = answers
        self._partitions = {kind: _Namespaces(rights, kind, max_namespaces) for kind in kinds}

    async def handler(self, context: RequestContext) -> Handler | None:
        """Raises Forbidden for a caller with too many namespaces."""
        info = context.info
        partition = self._partitions.get(GroupResource(info.group, info.resource))
        if partition is None:
            return None
        names = partition.names((await partition.visibility(context.user, info)).visible)
        if not names:
            return None
        if len(names) > partition.max_parts:
            why = f"you may {info.verb} them in {len(names)} namespaces, and at most {partition.max_parts} are merged"
            raise Forbidden(GroupResource(info.group, info.resource), "", why)
        return partial(self._answers.watch if info.is_watch else self._answers.list, partition=partition)


class _Namespaces:
    """A Partition: the namespaces in which the caller may list all objects of a kind, or list and watch them."""

    def __init__(self, rights: WatchRights, kind: GroupResource, max_parts: int) -> None:
        self.max_parts = max_parts
        self._by_verb = {"list": rights.to("list", kind), "watch": rights.to_follow(kind)}

    async def visibility(self, user: User, info: RequestInfo) -> Visibility:
        return await self._by_verb[info.verb].for_user(user)

    def names(self, visible: VisibleObjects) -> frozenset[str] | None:
        return visible.namespaces

    def part(self, info: RequestInfo, name: str) -> CollectionPart:
        return namespace_part(info, name)
