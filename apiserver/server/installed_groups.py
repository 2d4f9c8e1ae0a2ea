"""The API groups that are served now, with their endpoints, discovery and OpenAPI documents.

Groups may change while requests are served: each request sees those from before or after a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from apiserver.endpoints.discovery import Discovery, ServedGroup
from apiserver.endpoints.installer import ApiGroupVersion, Endpoint
from apiserver.endpoints.openapi.routes import OpenAPI
from apiserver.request.request_info import RequestInfo

GroupVersion = tuple[str, str]


class InstalledGroups:
    """`title` and `version` describe the server in its OpenAPI documents."""

    def __init__(self, groups: Iterable[ApiGroupVersion], *, title: str, version: str) -> None:
        self._groups: dict[GroupVersion, ApiGroupVersion] = {}
        self._described: dict[GroupVersion, ServedGroup] = {}
        self._endpoints: dict[GroupVersion, Mapping[str, Endpoint]] = {}
        self.discovery = Discovery(())
        self.openapi = OpenAPI((), title=title, version=version)
        self.replace(groups)

    @property
    def endpoints(self) -> Mapping[GroupVersion, Mapping[str, Endpoint]]:
        """The endpoints by (group, version) and 'resource[/subresource]', always those that are served now."""
        return self._endpoints

    def is_served(self, info: RequestInfo) -> bool:
        name = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        return name in self._endpoints.get((info.group, info.version), {})

    def replace(self, groups: Iterable[ApiGroupVersion]) -> None:
        """Serves these groups and no others. Documents about a group that is the same object as before are kept."""
        found = {(group.group, group.version): group for group in groups}
        described = {
            key: self._described[key] if self._groups.get(key) is group else group.served()
            for key, group in found.items()
        }
        self._groups, self._described = found, described
        # changed in place, because dispatcher and filters hold it
        for key in [key for key in self._endpoints if key not in found]:
            del self._endpoints[key]
        self._endpoints.update({key: group.endpoints for key, group in found.items()})
        self.discovery.replace(list(described.values()))
        self.openapi.replace(list(described.values()))
