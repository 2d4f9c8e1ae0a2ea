"""Lists and watches of cluster-scoped kinds by a label selector that the settings give to some users.

These are the only ones that the proxy requests with its own rights, which an overlay of their own gives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final
from urllib.parse import quote, urlencode

from aiohttp import web
from multidict import CIMultiDict

from apiserver.meta.errors import ServiceUnavailable
from apiserver.meta.resource import GroupResource
from apiserver.request.context import Handler, RequestContext, User
from apiserver.request.options import label_selector
from registry.cluster.interface import ClusterUnreachable
from registry.cluster.upstream import UpstreamClient
from registry.rbac.role_index import subjects_of
from tenant_apiserver.options.proxy_settings import SelectedKind
from tenant_apiserver.proxy.relay import relay

_HEADERS: Final = ("Accept", "Accept-Encoding", "User-Agent")
_PARAMETERS: Final = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "includeObject",
    "limit",
    "pretty",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
)
_REJECTED: Final = frozenset({401, 403})


class SelectedLists:
    """An OwnKind of the kinds with a selector. Of several selectors for a user the first one holds."""

    def __init__(self, upstream: UpstreamClient, kinds: Sequence[SelectedKind], *, shutdown: asyncio.Event) -> None:
        self._upstream = upstream
        self._shutdown = shutdown
        self._kinds = tuple(kinds)

    async def handler(self, context: RequestContext) -> Handler | None:
        kind = GroupResource(context.info.group, context.info.resource)
        selector = next((each.selector for each in self._kinds if each.kind == kind and _has(each, context.user)), None)
        return partial(self._answer, selector=selector) if selector is not None else None

    async def _answer(self, context: RequestContext, *, selector: str) -> web.StreamResponse:
        """Raises BadRequest for an invalid selector of the client, and ServiceUnavailable also if the proxy has no
        right to the list: that is no matter of its client's rights."""
        headers = CIMultiDict({name: text for name in _HEADERS if (text := context.http.headers.get(name))})
        headers["Audit-ID"] = context.audit_id
        target = _target(context, selector)
        try:
            async with self._upstream.forward("GET", target, headers, None) as response:
                if response.status not in _REJECTED:
                    return await relay(context, response, shutdown=self._shutdown)
                await self._upstream.renew_credentials()
        except ClusterUnreachable as error:
            raise ServiceUnavailable("the cluster is unavailable: it does not answer", retry_after=1) from error
        raise ServiceUnavailable(f"the cluster does not let the proxy {context.info.verb} {context.info.resource}")


def _has(kind: SelectedKind, user: User) -> bool:
    return not kind.subjects.isdisjoint(subjects_of(user))


def _target(context: RequestContext, selector: str) -> str:
    """The list with both selectors, in every path that Kubernetes has for it. Requirements are joined by commas, and
    that of the client is parsed first, so that it can only narrow the list."""
    info, query = context.info, context.query
    label_selector(query)
    narrowed = ",".join(each for each in (selector, query.get("labelSelector")) if each)
    pairs = {name: query.get(name) for name in _PARAMETERS if name in query} | {"labelSelector": narrowed}
    if info.is_watch:
        pairs["watch"] = "true"
    group = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    return f"{group}/{info.resource}?{urlencode(pairs, quote_via=quote)}"
