"""The parts of which a list or watch is merged. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from apiserver.request.request_info import Query, RequestInfo

# they narrow what a list returns, or its form
_PASSED: Final = ("labelSelector", "fieldSelector", "includeObject")


class CollectionPart(NamedTuple):
    """A collection that the cluster may allow the caller, though it refuses the whole: that of one namespace, or of one
    name with a `field_selector`. `name` is that of the namespace or the object, by which parts are ordered."""

    name: str
    path: str
    field_selector: str = ""

    def target(self, selection: Mapping[str, str], **query: str) -> str:
        """The path and query of a request."""
        terms = [each for each in (self.field_selector, selection.get("fieldSelector", "")) if each]
        pairs = {**selection, "fieldSelector": ",".join(terms), **query}
        return f"{self.path}?{urlencode({name: value for name, value in pairs.items() if value}, quote_via=quote)}"


def namespace_part(info: RequestInfo, namespace: str) -> CollectionPart:
    """The objects of a namespace. `info` is of a request for those of all namespaces."""
    return CollectionPart(namespace, f"{_group_path(info)}/namespaces/{quote(namespace, safe='')}/{info.resource}")


def name_part(info: RequestInfo, name: str) -> CollectionPart:
    """The cluster-scoped object with a name, as a collection."""
    return CollectionPart(name, f"{_group_path(info)}/{info.resource}", f"metadata.name={name}")


def object_path(info: RequestInfo, name: str) -> str:
    """The path of a cluster-scoped object. `info` is of a request for all."""
    return f"{_group_path(info)}/{info.resource}/{quote(name, safe='')}"


def selection_of(query: Query) -> Mapping[str, str]:
    """The parameters of a list or watch that pass to each part."""
    return {name: query.get(name) for name in _PASSED if name in query}


def _group_path(info: RequestInfo) -> str:
    return f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
