"""Lists and watches of cluster-scoped kinds for those who may get some of their objects by name, by RBAC's
resourceNames: `kubectl get storageclasses`."""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import partial

from apiserver.meta.name_validation import path_segment_errors
from apiserver.meta.resource import GroupResource
from apiserver.request.context import Handler, RequestContext, User
from apiserver.request.request_info import RequestInfo
from apiserver.storage.visibility import Visibility, VisibleObjects
from tenant_apiserver.proxy.merged.answers import MergedAnswers
from tenant_apiserver.proxy.merged.part import CollectionPart, name_part
from tenant_apiserver.proxy.merged.watch_rights import WatchRights


class NamedLists:
    """An OwnKind of the `kinds`. A list has the objects that the caller may `get`, a watch those that he may
    `list` and `watch`."""

    def __init__(self, answers: MergedAnswers, rights: WatchRights, kinds: Collection[GroupResource]) -> None:
        """`rights` are those by names."""
        self._answers = answers
        self._partitions = {kind: _Names(rights, kind) for kind in kinds}

    async def handler(self, context: RequestContext) -> Handler | None:
        """None also for a caller without names. One who may get all objects and list none gets the cluster's 403: their
        names are not his to know."""
        info = context.info
        partition = self._partitions.get(GroupResource(info.group, info.resource))
        if partition is None or not partition.names((await partition.visibility(context.user, info)).visible):
            return None
        return partial(self._answers.watch if info.is_watch else self._answers.list_names, partition=partition)


class _Names:
    """A Partition: the names of a kind's objects that the caller may get, or list and watch."""

    max_parts = sys.maxsize

    def __init__(self, rights: WatchRights, kind: GroupResource) -> None:
        self._by_verb = {"list": rights.to("get", kind), "watch": rights.to_follow(kind)}

    async def visibility(self, user: User, info: RequestInfo) -> Visibility:
        return await self._by_verb[info.verb].for_user(user)

    def names(self, visible: VisibleObjects) -> frozenset[str] | None:
        """Bindings in namespaces give no right to cluster-scoped objects. Names that no object can have stay out of the
        paths of requests."""
        if visible.namespaces is None:
            return None
        return frozenset(name for name in visible.names if not path_segment_errors(name))

    def part(self, info: RequestInfo, name: str) -> CollectionPart:
        return name_part(info, name)
