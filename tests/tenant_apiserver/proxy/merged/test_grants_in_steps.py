"""A namespace that is granted in two steps, at any distance of time, appears in an open watch with the second."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest

from apiserver.meta.errors import Forbidden
from apiserver.meta.resource import GroupResource
from apiserver.request.context import User
from registry.rbac import role_index as rbac
from registry.rbac.role_index import RbacBinding, RbacRule, make_subject
from registry.visibility.rbac_history import RbacHistory
from tenant_apiserver.proxy.merged.answers import MergedAnswers
from tenant_apiserver.proxy.merged.caller_requests import CallerRequests
from tenant_apiserver.proxy.merged.packed_list import PackedList, pack
from tenant_apiserver.proxy.merged.part import CollectionPart
from tenant_apiserver.proxy.merged.sent_objects import SentObjects
from tenant_apiserver.proxy.merged.stream_slots import StreamSlots, WatchSlots
from tenant_apiserver.proxy.merged.watch_of_parts import Start, WatchOfParts, WatchQuery
from tenant_apiserver.proxy.merged.watch_rights import WatchRights
from tenant_apiserver.proxy.namespaced_lists import NamespacedLists
from tenant_apiserver.wiring.visibility import RbacSources
from tests.apiserver.endpoints.request_contexts import make_context
from tests.virtual_time import virtual

EVE = User(name="eve")
PODS = GroupResource("", "pods")


class _Cluster:
    """Each namespace has a Pod. RBAC is known to it at once."""

    def __init__(self) -> None:
        self.history = RbacHistory()
        self.history.start_recording(1)
        self._rv = 1
        self._granted: set[tuple[str, str]] = set()
        self.lists = 0

    def grant(self, namespace: str, *verbs: str) -> None:
        for verb in verbs:
            self._rv += 1
            role = rbac.make_role_key(namespace, verb)
            self.history.put_role(role, (RbacRule((verb,), ("",), ("pods",)),), self._rv)
            key = rbac.make_binding_key(namespace, verb)
            self.history.put_binding(RbacBinding(key, role, (make_subject("User", "eve"),)), self._rv)
            self._granted.add((namespace, verb))

    def revoke(self, namespace: str, verb: str) -> None:
        self._rv += 1
        self.history.drop_binding(rbac.make_binding_key(namespace, verb), self._rv)
        self._granted.discard((namespace, verb))

    def _check(self, target: str, verb: str) -> str:
        namespace = target.partition("?")[0].split("/")[4]
        if (namespace, verb) not in self._granted:
            raise Forbidden(PODS, "", f"eve cannot {verb}")
        return namespace

    @asynccontextmanager
    async def held(self, target: str) -> AsyncIterator[PackedList]:
        self.lists += 1
        namespace = self._check(target, "list")
        pod = {"metadata": {"name": "web", "namespace": namespace, "uid": namespace, "resourceVersion": "5"}}
        yield pack({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [pod]})

    @asynccontextmanager
    async def events(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        self._check(target, "watch")

        async def lines() -> AsyncIterator[bytes]:
            await asyncio.sleep(3600)
            yield b""

        yield lines()


class _Answers:
    """Takes the partition of a watch."""

    async def watch(self, context: object, partition: Any) -> None:
        raise AssertionError("it is called by nobody")

    list = list_names = watch


async def _open_watch(cluster: _Cluster) -> WatchOfParts:
    synced = asyncio.Event()
    synced.set()
    sources = RbacSources(history=cluster.history, synced=synced, informers=())
    lists = NamespacedLists(cast(MergedAnswers, _Answers()), WatchRights(sources), [PODS], max_namespaces=10)
    context = make_context(target="/api/v1/pods?watch=true&resourceVersion=4", user=EVE)
    partition = cast("partial[Any]", await lists.handler(context)).keywords["partition"]
    visibility = await partition.visibility(EVE, context.info)
    watch = WatchOfParts(
        cast(CallerRequests, cluster),
        WatchQuery({}, {"resourceVersion": "4"}, bookmarks=False, wants_initial=False),
        names=lambda: partition.names(visibility.visible),
        max_parts=10,
        part=lambda name: CollectionPart(name, f"/api/v1/namespaces/{name}/pods"),
        slots=WatchSlots(StreamSlots(), "eve"),
        remember=lambda version, position: None,
    )
    visibility.subscribe(lambda change: watch.changed())
    assert await watch.begin(Start(frozenset({"one"}), frozenset({"one"}), 4, SentObjects()))
    return watch


async def _events(watch: WatchOfParts) -> list[tuple[str, str]]:
    found = [json.loads(line) for line in (await watch.frames()).splitlines()]
    return [(each["type"], each["object"]["metadata"]["namespace"]) for each in found]


@pytest.mark.parametrize(("first", "second"), [("watch", "list"), ("list", "watch")])
@virtual
async def test_a_namespace_that_is_granted_in_two_steps_appears_with_the_second(first: str, second: str) -> None:
    cluster = _Cluster()
    cluster.grant("one", "list", "watch")
    watch = await _open_watch(cluster)
    events = asyncio.create_task(_events(watch))
    cluster.grant("two", first)
    await asyncio.sleep(60)
    cluster.grant("two", second)
    await asyncio.sleep(60)
    assert events.done()
    assert await events == [("ADDED", "two")]
    await watch.close()


@virtual
async def test_a_namespace_that_may_be_watched_only_appears_with_the_right_to_list() -> None:
    """Also if the watch began later than the first of both rights."""
    cluster = _Cluster()
    cluster.grant("one", "list", "watch")
    cluster.grant("two", "watch")
    watch = await _open_watch(cluster)
    events = asyncio.create_task(_events(watch))
    await asyncio.sleep(60)
    assert cluster.lists == 0
    cluster.grant("two", "list")
    await asyncio.sleep(60)
    assert events.done()
    assert await events == [("ADDED", "two")]
    cluster.revoke("two", "list")
    assert await _events(watch) == [("DELETED", "two")]
    await watch.close()
