"""From the informers of Roles, ClusterRoles and their bindings into the record of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.resource import Key, Object
from registry.cluster.event_handlers import NoOpEventHandler
from registry.rbac import role_index as rbac
from registry.rbac.role_index import BindingKey, RoleKey, parse_binding, parse_rules, split_key
from registry.visibility.rbac_history import RbacHistory

_KINDS = 4


class RbacKindFeed(NoOpEventHandler):
    """An event handler of the informer of one kind. `held` tells what is held of it; `seen` is told the version of
    every list."""

    def __init__(
        self,
        *,
        held: Callable[[], Iterable[Key]],
        put: Callable[[Key, Object, int], None],
        drop: Callable[[Key, int], None],
        seen: Callable[[RbacKindFeed, int], None],
    ) -> None:
        self._held = held
        self._put = put
        self._drop = drop
        self._seen = seen

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        gone = set(self._held())
        async for item in iterate_cooperatively(items):
            key = _key(item)
            gone.discard(key)
            self._put(key, item, rv)
        for key in gone:
            self._drop(key, rv)
        self._seen(self, rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type == "DELETED":
            self._drop(_key(obj), rv)
        else:
            self._put(_key(obj), obj, rv)


class RbacFeed:
    """Handlers for the four kinds. `synced` is set once all of them have been seen."""

    def __init__(self, record: RbacHistory) -> None:
        self._record = record
        self._first: dict[RbacKindFeed, int] = {}
        self.synced = asyncio.Event()
        self.roles, self.cluster_roles = self._roles(namespaced=True), self._roles(namespaced=False)
        self.bindings, self.cluster_bindings = self._bindings(namespaced=True), self._bindings(namespaced=False)

    def _roles(self, *, namespaced: bool) -> RbacKindFeed:
        def held() -> Iterable[Key]:
            return _keys(self._record.index.roles, namespaced)

        return RbacKindFeed(held=held, put=self._put_role, drop=self._drop_role, seen=self._list_seen)

    def _bindings(self, *, namespaced: bool) -> RbacKindFeed:
        def held() -> Iterable[Key]:
            return _keys(self._record.index.bindings, namespaced)

        return RbacKindFeed(held=held, put=self._put_binding, drop=self._drop_binding, seen=self._list_seen)

    def _put_role(self, key: Key, obj: Object, rv: int) -> None:
        self._record.put_role(rbac.make_role_key(*key), parse_rules(obj.get("rules")), rv)

    def _drop_role(self, key: Key, rv: int) -> None:
        self._record.drop_role(rbac.make_role_key(*key), rv)

    def _put_binding(self, key: Key, obj: Object, rv: int) -> None:
        binding = parse_binding(obj)
        if binding is None:
            self._drop_binding(key, rv)
        else:
            self._record.put_binding(binding, rv)

    def _drop_binding(self, key: Key, rv: int) -> None:
        self._record.drop_binding(rbac.make_binding_key(*key), rv)

    def _list_seen(self, kind: RbacKindFeed, rv: int) -> None:
        self._first.setdefault(kind, rv)
        if len(self._first) == _KINDS and not self.synced.is_set():
            self._record.begin(max(self._first.values()))
            self.synced.set()


def _keys(keys: Iterable[RoleKey | BindingKey], namespaced: bool) -> Iterable[Key]:
    places = (split_key(key) for key in keys)
    return (each for each in places if bool(each.namespace) == namespaced)


def _key(obj: Object) -> Key:
    metadata = obj["metadata"]
    return Key(metadata.get("namespace") or "", metadata["name"])
