"""The ratios of limits to requests: those of the settings, or else of Cozystack's ConfigMap, or else the defaults.

Wrong values of the ConfigMap are refused as a whole: the ratios of before stay in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from apiserver.meta.resource import Object
from controller.platform.settings import SettingsSource
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.informer import Informer
from registry.cluster.interface import CONFIGMAPS, ClusterClient
from registry.cluster.object_store import key_of
from registry.tenant.tree import TenantTree

CONFIGMAP, CONFIGMAP_NAMESPACE = "cozystack", "cozy-system"
ProblemListener = Callable[[str, bool], None]
"""Called with what is wrong, empty if nothing is, and whether no ratios of before are known."""


class PlatformRatios(NoOpEventHandler):
    """A handler of the informer of the ConfigMap. It keeps the ratios of the tree up to date, and calls its subscribers
    when they have changed.

    `known` is set once the ConfigMap has been read and is valid, or does not exist: until then, nothing should be
    written that depends on the ratios.
    """

    def __init__(self, *, settings: SettingsSource, tree: TenantTree) -> None:
        self._settings = settings
        self._tree = tree
        self._data: Mapping[str, str] = {}
        self._accepted: Mapping[str, str] = {}
        self._is_read = False
        self._problem = ""
        self._callbacks: list[Callable[[], None]] = []
        self._problem_listeners: list[ProblemListener] = []
        self.known = asyncio.Event()
        self._update()
        settings.subscribe(self._update)

    def subscribe(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def subscribe_to_problems(self, listener: ProblemListener) -> None:
        self._problem_listeners.append(listener)

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        found = [each for each in items if _is_cozystacks(each)]
        self._set(found[0] if found else None)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if _is_cozystacks(obj):
            self._set(None if type == "DELETED" else obj)

    def _set(self, configmap: Object | None) -> None:
        self._data = (configmap or {}).get("data") or {}
        self._is_read = True
        self._update()

    def _update(self) -> None:
        resources = self._settings.current.resources
        ratios, problems = resources.to_ratios(self._data)
        if problems:
            ratios, _ = resources.to_ratios(self._accepted)
        else:
            self._accepted = self._data
            if self._is_read:
                self.known.set()
        self._report("; ".join(problems))
        if ratios.values == self._tree.ratios.values:
            return
        self._tree.change_ratios(ratios)
        for callback in self._callbacks:
            callback()

    def _report(self, problem: str) -> None:
        if problem == self._problem:
            return
        self._problem = problem
        for listener in self._problem_listeners:
            listener(problem, not self.known.is_set())


def platform_ratios(
    cluster: ClusterClient, settings: SettingsSource, tree: TenantTree
) -> tuple[Informer, PlatformRatios]:
    handler = PlatformRatios(settings=settings, tree=tree)
    informer = Informer(
        cluster,
        CONFIGMAPS,
        namespace=CONFIGMAP_NAMESPACE,
        field_selector=f"metadata.name={CONFIGMAP}",
        store_objects=False,
    )
    informer.add_handler(handler)
    return informer, handler


def _is_cozystacks(obj: Object) -> bool:
    key = key_of(obj)
    return (key.namespace, key.name) == (CONFIGMAP_NAMESPACE, CONFIGMAP)
