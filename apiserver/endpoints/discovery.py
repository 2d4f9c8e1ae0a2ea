"""Serves discovery: /api, /apis, and each group and group version, legacy and aggregated (WIRE-C16 to WIRE-C29).

kubectl, informers and the garbage collector find resources only through these documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from apiserver.encoding.accept_header import accept_clauses
from apiserver.encoding.negotiation import JSON, YAML
from apiserver.endpoints.responsewriters import json_response
from apiserver.endpoints.static_document import StaticDocument, dump_yaml, require_get
from apiserver.meta import errors
from apiserver.meta.resource import Resource
from apiserver.request.context import RequestContext

_AGGREGATED_PARAMETERS = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGGREGATED = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}


@dataclass(frozen=True, slots=True)
class ServedSubresource:
    """`resource` is set if the subresource's kind differs from its parent's, as with serviceaccounts/token."""

    name: str
    verbs: tuple[str, ...]
    resource: Resource | None = None


@dataclass(frozen=True, slots=True)
class ServedResource:
    resource: Resource
    verbs: tuple[str, ...]
    """Sorted. Controllers read from the verbs whether they can collect, count and delete objects (WIRE-C20)."""
    subresources: tuple[ServedSubresource, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedGroup:
    """One version of one group. The name of the core group is ''; its paths start with /api."""

    group: str
    version: str
    resources: Sequence[ServedResource]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"


@dataclass(frozen=True, slots=True)
class _DiscoveryEndpoint:
    """A path's legacy document, and its aggregated documents by media type; {} if the path has none."""

    legacy: Mapping[str, Any]
    aggregated: Mapping[str, StaticDocument]

    def choose(self, accept: str) -> str | StaticDocument:
        """The aggregated document, or the media type of the legacy document. Raises NotAcceptable."""
        for clause in accept_clauses(accept):
            # the parameter `profile` excludes content that only an aggregator adds, so it is ignored (WIRE-C25)
            requested = {key: clause.parameters[key] for key in _AGGREGATED if key in clause.parameters}
            for media_type in (JSON, YAML):
                if not clause.matches(media_type):
                    continue
                if requested == _AGGREGATED and self.aggregated:
                    return self.aggregated[media_type]
                if "as" not in requested:
                    return media_type
        raise errors.NotAcceptable(f"only the following media types are accepted: {JSON}, {YAML}")


class Discovery:
    """Answers the discovery paths. Groups and versions keep their order: the first version of a group is preferred."""

    def __init__(self, groups: Sequence[ServedGroup]) -> None:
        self.replace(groups)

    def replace(self, groups: Sequence[ServedGroup]) -> None:
        """Describes these groups from now on. The documents are made when they are first requested."""
        self._groups = groups
        self._made: Mapping[str, _DiscoveryEndpoint] | None = None

    @property
    def _endpoints(self) -> Mapping[str, _DiscoveryEndpoint]:
        if self._made is None:
            self._made = dict(_endpoints(self._groups))
        return self._made

    async def respond(self, context: RequestContext) -> web.Response | None:
        """The response, or None if the path does not belong to discovery. Raises NotAcceptable, MethodNotAllowed."""
        path = context.info.path
        endpoint = self._endpoints.get(path) or self._endpoints.get(path.removesuffix("/"))
        if endpoint is None:
            return None
        require_get(context)
        chosen = endpoint.choose(context.http.headers.get("Accept", ""))
        if isinstance(chosen, StaticDocument):
            # all authorized callers get the same document, so shared caches may store it
            return chosen.respond(context, {"Cache-Control": "public"})
        if chosen == YAML:
            return web.Response(body=dump_yaml(endpoint.legacy), headers={"Content-Type": YAML})
        return json_response(context, endpoint.legacy)

    def paths(self) -> list[str]:
        """The paths of discovery, for the list of all paths (WIRE-C30)."""
        return sorted(self._endpoints)


def _endpoints(groups: Sequence[ServedGroup]) -> Iterable[tuple[str, _DiscoveryEndpoint]]:
    core = [group for group in groups if not group.group]
    named = _by_name(group for group in groups if group.group)
    # without a core group /api is an unknown path, because an empty APIVersions would announce one (WIRE-C28)
    if core:
        versions = {"kind": "APIVersions", "versions": [group.version for group in core]}
        yield "/api", _DiscoveryEndpoint({**versions, **_server_addresses()}, _aggregated({"": core}))
    listed = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(*entry) for entry in named.items()]}
    yield "/apis", _DiscoveryEndpoint(listed, _aggregated(named))
    for name, versions_of in named.items():
        document = {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions_of)}
        yield f"/apis/{name}", _DiscoveryEndpoint(document, {})
    for group in groups:
        yield group.path, _DiscoveryEndpoint(_resource_list(group), {})


def _by_name(groups: Iterable[ServedGroup]) -> dict[str, list[ServedGroup]]:
    named: dict[str, list[ServedGroup]] = {}
    for group in groups:
        named.setdefault(group.group, []).append(group)
    return named


def _server_addresses() -> dict[str, Any]:
    """Empty, so that clients continue to use the address by which they reached this server."""
    return {"serverAddressByClientCIDRs": []}


def _group(name: str, versions: Sequence[ServedGroup]) -> dict[str, Any]:
    entries = [{"groupVersion": group.api_version, "version": group.version} for group in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _resource_list(group: ServedGroup) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    for served in _sorted_resources(group):
        entries.append(_api_resource(served.resource, served.resource.plural, served.resource.singular, served.verbs))
        for subresource in sorted(served.subresources, key=lambda each: each.name):
            entries.append(_api_subresource(served.resource, subresource))
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group.api_version, "resources": entries}


def _sorted_resources(group: ServedGroup) -> list[ServedResource]:
    return sorted(group.resources, key=lambda served: served.resource.plural)


def _api_resource(resource: Resource, name: str, singular: str, verbs: Sequence[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": name,
        "singularName": singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": sorted(verbs),
    }
    return {**entry, **_aliases(resource)}


def _api_subresource(parent: Resource, subresource: ServedSubresource) -> dict[str, Any]:
    kind = subresource.resource or parent
    entry: dict[str, Any] = {
        "name": f"{parent.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": parent.namespaced,
    }
    if kind.api_version != parent.api_version:
        entry |= {"group": kind.group, "version": kind.version}
    return {**entry, "kind": kind.kind, "verbs": sorted(subresource.verbs)}


def _aliases(resource: Resource) -> dict[str, Any]:
    aliases: dict[str, Any] = {}
    if resource.short_names:
        aliases["shortNames"] = list(resource.short_names)
    if resource.categories:
        aliases["categories"] = list(resource.categories)
    return aliases


def _aggregated(named: Mapping[str, Sequence[ServedGroup]]) -> dict[str, StaticDocument]:
    items = [
        {"metadata": {"name": name} if name else {}, "versions": [_version(group) for group in versions]}
        for name, versions in named.items()
    ]
    document = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }
    # client-go expects exactly this content type, and parses any other as the legacy document (WIRE-C24)
    return {
        JSON: StaticDocument(orjson.dumps(document) + b"\n", f"{JSON};{_AGGREGATED_PARAMETERS}"),
        YAML: StaticDocument(dump_yaml(document), f"{YAML};{_AGGREGATED_PARAMETERS}"),
    }


def _version(group: ServedGroup) -> dict[str, Any]:
    resources = [_aggregated_resource(served) for served in _sorted_resources(group)]
    return {"version": group.version, "resources": resources, "freshness": "Current"}


def _aggregated_resource(served: ServedResource) -> dict[str, Any]:
    resource = served.resource
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": sorted(served.verbs),
        **_aliases(resource),
    }
    if served.subresources:
        entry["subresources"] = [
            {
                "subresource": subresource.name,
                "responseKind": _response_kind(subresource.resource or resource),
                "verbs": sorted(subresource.verbs),
            }
            for subresource in sorted(served.subresources, key=lambda each: each.name)
        ]
    return entry


def _response_kind(resource: Resource) -> dict[str, str]:
    """All three fields are set, because clients drop a resource whose responseKind is empty (WIRE-C26)."""
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}
