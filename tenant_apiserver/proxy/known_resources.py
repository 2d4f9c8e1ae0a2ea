"""The resources by whose names the proxy counts requests."""

from __future__ import annotations

import re
from typing import Final

from apiserver.request.request_info import RequestInfo

_Names = tuple[str, str, str, str]
_MOST: Final = 300
_NAME: Final = re.compile(r"[a-z0-9.-]{0,253}", re.ASCII)
_OWN: Final = frozenset({("", "v1", "namespaces", ""), ("", "v1", "persistentvolumes", "")})


class KnownResources:
    """Those of which a request has succeeded, so that the cluster has them: clients can invent any number of others. At
    most 300, as some aggregated servers serve any name."""

    def __init__(self) -> None:
        self._known: set[_Names] = set(_OWN)

    def learn(self, info: RequestInfo, status: int) -> None:
        """`status` is that of the response."""
        if status >= 400 or not info.is_resource or len(self._known) >= _MOST:
            return
        names = _names(info)
        if all(map(_NAME.fullmatch, names)):
            self._known.add(names)

    def has(self, info: RequestInfo) -> bool:
        return _names(info) in self._known


def _names(info: RequestInfo) -> _Names:
    return info.group, info.version, info.resource, info.subresource
