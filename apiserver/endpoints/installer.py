"""Installs storages as endpoints: finds the verbs of each storage, and binds their handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from aiohttp import web

from apiserver import rest
from apiserver.admission import Admission
from apiserver.authorization.authorizer import Authorizer
from apiserver.endpoints.discovery import ServedGroup, ServedResource, ServedSubresource
from apiserver.endpoints.handlers.create import create
from apiserver.endpoints.handlers.delete import delete, delete_collection
from apiserver.endpoints.handlers.get import get
from apiserver.endpoints.handlers.list import list_objects
from apiserver.endpoints.handlers.patch import patch
from apiserver.endpoints.handlers.request_scope import RequestScope
from apiserver.endpoints.handlers.update import update
from apiserver.endpoints.handlers.watch import watch
from apiserver.fieldmanager.field_manager import FieldManager
from apiserver.metrics import Metrics
from apiserver.request.context import Handler, RequestContext
from apiserver.request.request_info import RequestInfo

_VerbHandler = Callable[[RequestContext, RequestScope], Awaitable[web.StreamResponse]]


async def _get(context: RequestContext, scope: RequestScope) -> web.StreamResponse:
    return await get(context, cast(rest.Getter, scope.storage))


async def _list(context: RequestContext, scope: RequestScope) -> web.StreamResponse:
    return await list_objects(context, cast(rest.Lister, scope.storage))


async def _watch(context: RequestContext, scope: RequestScope) -> web.StreamResponse:
    return await watch(context, cast(rest.Watcher, scope.storage), scope.shutdown, scope.events_sent)


_VERBS: Mapping[str, tuple[type, _VerbHandler]] = {
    "get": (rest.Getter, _get),
    "list": (rest.Lister, _list),
    "watch": (rest.Watcher, _watch),
    "create": (rest.Creater, create),
    "update": (rest.Updater, update),
    "patch": (rest.Updater, patch),
    "delete": (rest.GracefulDeleter, delete),
    "deletecollection": (rest.CollectionDeleter, delete_collection),
}
_ON_COLLECTIONS = {"list", "watch", "create", "deletecollection"}
# A named object is watched below the prefix `watch` (WIRE-F28).
_ON_OBJECTS = {"get", "watch", "update", "patch", "delete"}
_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A resource or subresource: its scope, and the handlers of the verbs that its storage supports."""

    scope: RequestScope
    handlers: Mapping[str, Handler]

    @property
    def verbs(self) -> tuple[str, ...]:
        return tuple(sorted(self.handlers))

    def matches_scope(self, info: RequestInfo) -> bool:
        """True if the path fits the resource's scope, namespaced or cluster-scoped."""
        resource = self.scope.resource
        if resource.namespaced:
            return bool(info.namespace) or info.collection_path
        # in the path of a Namespace, its name is parsed as the namespace, too
        return not info.namespace or (resource.plural == "namespaces" and info.namespace == info.name)

    def handler(self, info: RequestInfo) -> Handler | None:
        """The handler of the request's verb, None if the path does not support it (WIRE-C32)."""
        if info.method not in _METHODS:
            return None
        verb = info.verb
        subresource = bool(self.scope.subresource)
        allowed = _ON_COLLECTIONS if info.collection_path else _ON_OBJECTS | ({"create"} if subresource else set())
        if verb not in allowed or (verb == "watch" and info.method != "GET"):
            return None
        all_namespaces = self.scope.resource.namespaced and not info.namespace
        if all_namespaces and verb in ("create", "deletecollection"):
            return None
        return self.handlers.get(verb)


@dataclass(frozen=True, kw_only=True)
class ApiGroupVersion:
    """A group version and its endpoints, keyed 'resource' or 'resource/subresource'."""

    group: str
    version: str
    endpoints: Mapping[str, Endpoint]

    def extended_with(self, other: ApiGroupVersion) -> ApiGroupVersion:
        """This group version with the resources of the other that it does not have itself."""
        others = {path: each for path, each in other.endpoints.items() if path.partition("/")[0] not in self.endpoints}
        return replace(self, endpoints={**others, **self.endpoints})

    def served(self) -> ServedGroup:
        """The group version as discovery and OpenAPI describe it."""
        names: dict[str, list[str]] = {}
        for path in sorted(self.endpoints):
            plural, _, subresource = path.partition("/")
            names.setdefault(plural, []).extend((subresource,) if subresource else ())
        resources = [self._resource(plural, names[plural]) for plural in sorted(names) if plural in self.endpoints]
        return ServedGroup(group=self.group, version=self.version, resources=resources)

    def _resource(self, plural: str, subresources: Sequence[str]) -> ServedResource:
        endpoint = self.endpoints[plural]
        resource, found = endpoint.scope.resource, []
        for name in subresources:
            below = self.endpoints[f"{plural}/{name}"]
            own = below.scope.resource if below.scope.resource.kind != resource.kind else None
            found.append(ServedSubresource(name=name, verbs=below.verbs, resource=own))
        return ServedResource(resource=resource, verbs=endpoint.verbs, subresources=tuple(found))


def install_group_version(
    *,
    group: str,
    version: str,
    storages: Mapping[str, rest.Storage],
    admission: Admission,
    authorizer: Authorizer,
    metrics: Metrics,
    shutdown: asyncio.Event,
) -> ApiGroupVersion:
    """Create the endpoints of a group version from its storages, keyed 'resource' or 'resource/subresource'."""
    endpoints = {}
    for path, storage in storages.items():
        parent, _, subresource = path.partition("/")
        scope = RequestScope(
            resource=storage.resource,
            subresource=subresource,
            storage=storage,
            admission=admission,
            authorizer=authorizer,
            field_manager=FieldManager(storage.resource, reset_fields=_reset_fields(parent, subresource, storages)),
            shutdown=shutdown,
            events_sent=metrics.watch_events(group, version, parent).inc,
        )
        handlers = {
            verb: _bind(handler, scope)
            for verb, (interface, handler) in _VERBS.items()
            # unlike the result of isinstance(), that of issubclass() with a Protocol is cached
            if issubclass(type(storage), interface)
        }
        endpoints[path] = Endpoint(scope=scope, handlers=handlers)
    return ApiGroupVersion(group=group, version=version, endpoints=endpoints)


def _bind(handler: _VerbHandler, scope: RequestScope) -> Handler:
    async def handle(context: RequestContext) -> web.StreamResponse:
        return await handler(context, scope)

    return handle


def _reset_fields(plural: str, subresource: str, storages: Mapping[str, rest.Storage]) -> tuple[str, ...]:
    """The fields that writes through this endpoint cannot change, so that no field manager owns them (WIRE-G14)."""
    if subresource == "status":
        return ("metadata", "spec")
    return ("status",) if f"{plural}/status" in storages else ()
