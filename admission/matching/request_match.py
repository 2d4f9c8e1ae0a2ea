"""What one request needs of its namespace and in which forms it is asked for, looked up once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from admission.cel.environment import flattened
from admission.cel.library.authz import authorizer_variable
from admission.matching.match_rules import Match, Target, is_namespace, own_namespace_labels, request_namespace
from admission.matching.request_variables import namespace_variable, object_as, request_variable
from admission.namespace_source import NamespaceSource
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Object

_NAMESPACES = GroupResource("", "namespaces")


@dataclass
class Lookup:
    """A request that is matched against policies or webhooks. The first of `equivalents` is the request's own."""

    attributes: Attributes
    namespaces: NamespaceSource
    equivalents: Sequence[Target]
    _namespace: Object | StatusError | None = None
    _values: dict[Target, Mapping[str, Any]] = field(default_factory=dict)

    def with_object(self, obj: Object) -> Lookup:
        """The same request after a mutation."""
        return dataclasses.replace(self, attributes=dataclasses.replace(self.attributes, object=obj), _values={})

    async def namespace(self) -> Object | None:
        """None for what is in none. Raises NotFound, and what the host raises."""
        name = request_namespace(self.attributes)
        if not name:
            return None
        if self._namespace is None:
            found = self.namespaces.get(name)
            self._namespace = found if found is not None else await self._live(name)
        if isinstance(self._namespace, StatusError):
            raise self._namespace
        return self._namespace

    async def _live(self, name: str) -> Object | StatusError:
        try:
            return await self.namespaces.live(name) or errors.NotFound(_NAMESPACES, name)
        except StatusError as error:
            return error

    async def target(self, match: Match) -> Target | None:
        """The resource as which the request is matched. Raises what `namespace` raises, where all else matches."""
        target = match.target(self.attributes, self.equivalents)
        if target is None or match.namespaces.empty:
            return target
        if not request_namespace(self.attributes) and not is_namespace(self.attributes):
            return target
        labels = own_namespace_labels(self.attributes)
        if labels is None:
            namespace = await self.namespace()
            labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
        return target if match.namespaces.matches(labels) else None

    async def values(self, target: Target) -> Mapping[str, Any]:
        """The variables of expressions that the request is judged by, as this resource."""
        if target not in self._values:
            namespace = None if is_namespace(self.attributes) else await self.namespace()
            self._values[target] = self._variables(target, namespace)
        return self._values[target]

    def values_without_namespace(self, target: Target) -> Mapping[str, Any]:
        """The same for conditions, which are judged before anybody looks at the namespace (WIRE-H12)."""
        return self._variables(target, None)

    def _variables(self, target: Target, namespace: Object | None) -> Mapping[str, Any]:
        attributes = self.attributes
        return flattened(
            {
                "object": object_as(attributes.object, target),
                "oldObject": object_as(attributes.old_object, target),
                "request": request_variable(attributes, self.equivalents[0], target),
                "namespaceObject": namespace_variable(namespace),
                "authorizer": authorizer_variable(attributes),
            }
        )
