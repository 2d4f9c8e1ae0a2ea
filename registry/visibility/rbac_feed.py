"""Feeds Roles, ClusterRoles and their bindings from informers into the RbacHistory."""

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
    """The event handler for one kind. `known_keys` returns the keys in the history, and `on_list` is called with the
    version of each complete list."""

    def __init__(
        self,
        *,
        known_keys: Callable[[], Iterable[Key]],
        put: Callable[[Key, Object, int], None],
        drop: Callable[[Key, int], None],
        on_list: Callable[[RbacKindFeed, int], None],
    ) -> None:
        self._known_keys = known_keys
        self._put = put
        self._drop = drop
        self._on_list = on_list

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        missing = set(self._known_keys())
        async for item in iterate_cooperatively(items):
            key = _key(item)
            missing.discard(key)
            self._put(key, item, rv)
        for key in missing:
            self._drop(key, rv)
        self._on_list(self, rv)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type == "DELETED":
            self._drop(_key(obj), rv)
        else:
            self._put(_key(obj), obj, rv)


class RbacFeed:
    """The handlers for the four kinds. `synced` is set once all of them have been listed."""

    def __init__(self, history: RbacHistory) -> None:
        self._history = history
        self._first_versions: dict[RbacKindFeed, int] = {}
        self.synced = asyncio.Event()
        self.roles, self.cluster_roles = self._roles(namespaced=True), self._roles(namespaced=False)
        self.bindings, self.cluster_bindings = self._bindings(namespaced=True), self._bindings(namespaced=False)

    def _roles(self, *, namespaced: bool) -> RbacKindFeed:
        def known_keys() -> Iterable[Key]:
            return _keys(self._history.index.roles, namespaced)

        return RbacKindFeed(known_keys=known_keys, put=self._put_role, drop=self._drop_role, on_list=self._on_list)

    def _bindings(self, *, namespaced: bool) -> RbacKindFeed:
        def known_keys() -> Iterable[Key]:
            return _keys(self._history.index.bindings, namespaced)

        return RbacKindFeed(
            known_keys=known_keys, put=self._put_binding, drop=self._drop_binding, on_list=self._on_list
        )

    def _put_role(self, key: Key, obj: Object, rv: int) -> None:
        self._history.put_role(rbac.make_role_key(*key), parse_rules(obj.get("rules")), rv)

    def _drop_role(self, key: Key, rv: int) -> None:
        self._history.drop_role(rbac.make_role_key(*key), rv)

    def _put_binding(self, key: Key, obj: Object, rv: int) -> None:
        binding = parse_binding(obj)
        if binding is None:
            self._drop_binding(key, rv)
        else:
            self._history.put_binding(binding, rv)

    def _drop_binding(self, key: Key, rv: int) -> None:
        self._history.drop_binding(rbac.make_binding_key(*key), rv)

    def _on_list(self, kind: RbacKindFeed, rv: int) -> None:
        self._first_versions.setdefault(kind, rv)
        if len(self._first_versions) == _KINDS and not self.synced.is_set():
            self._history.start_recording(max(self._first_versions.values()))
            self.synced.set()


def _keys(keys: Iterable[RoleKey | BindingKey], namespaced: bool) -> Iterable[Key]:
    split_keys = (split_key(key) for key in keys)
    return (each for each in split_keys if bool(each.namespace) == namespaced)


def _key(obj: Object) -> Key:
    metadata = obj["metadata"]
    return Key(metadata.get("namespace") or "", metadata["name"])
