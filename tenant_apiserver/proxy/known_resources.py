"""The resources by whose names the proxy counts requests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from apiserver.request.request_info import RequestInfo

_Names = tuple[str, str, str, str]
_MOST: Final = 300
_SWITCHED: Final = 101
_NAME: Final = re.compile(r"[a-z0-9.-]{0,253}", re.ASCII)
_OWN: Final = frozenset({("", "v1", "namespaces", ""), ("", "v1", "persistentvolumes", "")})


class KnownResources:
    """Those of which a request has succeeded, so that the cluster has them: clients can invent any number of others. At
    most 300, as some aggregated servers serve any name."""

    def __init__(self, is_served: Callable[[str, str, str], bool] = lambda group, version, resource: False) -> None:
        """`is_served` says if discovery has a group, version and resource."""
        self._known: set[_Names] = set(_OWN)
        self._is_served = is_served

    def learn(self, info: RequestInfo, status: int) -> None:
        """`status` is that of the cluster's response. A redirect says nothing: any path may get one."""
        if not (200 <= status < 300 or status == _SWITCHED) or not info.is_resource or len(self._known) >= _MOST:
            return
        names = _names(info)
        if all(map(_NAME.fullmatch, names)):
            self._known.add(names)

    def learn_own(self, info: RequestInfo, status: int) -> None:
        """`status` is that of an answer of the proxy, which says nothing about the cluster: a watch that fails begins
        with 200."""
        if self._is_served(info.group, info.version, info.resource):
            self.learn(info, status)

    def has(self, info: RequestInfo) -> bool:
        return _names(info) in self._known


def _names(info: RequestInfo) -> _Names:
    return info.group, info.version, info.resource, info.subresource
