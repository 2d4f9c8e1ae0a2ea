"""NamespaceLifecycle rejects creates in a namespace that is missing or being deleted (WIRE-H5, WIRE-H6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from admission.namespace_source import NamespaceSource
from admission.plugin_rule import name_for_errors
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Object
from registry.cluster.interface import is_terminating

_NAMESPACES = GroupResource("", "namespaces")
# A review may be about a namespace that does not exist yet.
_REVIEWS = GroupResource("authorization.k8s.io", "localsubjectaccessreviews")
# The informer may not have received a new namespace yet, and waiting is cheaper than a request to the cluster.
_RECHECK_SECONDS = 0.05


class NamespaceLifecycle:
    """A mutating plugin, although it changes nothing, so that it runs before every plugin that needs the namespace."""

    name = "NamespaceLifecycle"

    def __init__(
        self, *, namespaces: NamespaceSource, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    ) -> None:
        self._namespaces = namespaces
        self._sleep = sleep

    def handles(self, attributes: Attributes) -> bool:
        resource = attributes.resource
        creates = attributes.operation == "CREATE" and resource.namespaced and not attributes.subresource
        return creates and resource.group_resource != _REVIEWS

    async def admit(self, attributes: Attributes) -> Object:
        assert attributes.object is not None
        name = attributes.namespace
        namespace = await self._find(name)
        if namespace is None:
            raise errors.NotFound(_NAMESPACES, name)
        if is_terminating(namespace):
            raise errors.Forbidden(
                attributes.resource.group_resource,
                name_for_errors(attributes),
                f"unable to create new content in namespace {name} because it is being terminated",
                causes=[
                    {
                        "reason": "NamespaceTerminating",
                        "message": f"namespace {name} is being terminated",
                        "field": "metadata.namespace",
                    }
                ],
            )
        return attributes.object

    async def _find(self, name: str) -> Object | None:
        found = self._namespaces.get(name)
        if found is None:
            await self._sleep(_RECHECK_SECONDS)
            found = self._namespaces.get(name)
        return found if found is not None else await self._namespaces.get_live(name)
