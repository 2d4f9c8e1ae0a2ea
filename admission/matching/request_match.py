"""Matches one request against policies and webhooks, and prepares the values that their expressions read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from admission.cel.environment import flatten_typed_fields
from admission.cel.input_size import EvaluationInput
from admission.cel.library.authz import authorizer_variable
from admission.matching.match_rules import MatchCriteria, Target, is_namespace, own_namespace_labels, request_namespace
from admission.matching.request_variables import namespace_variable, object_as, request_variable
from admission.namespace_source import NamespaceSource
from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Object

_NAMESPACES = GroupResource("", "namespaces")


@dataclass
class RequestMatcher:
    """One request; its namespace is read once. `equivalents` begins with the request's own resource."""

    attributes: Attributes
    namespaces: NamespaceSource
    equivalents: Sequence[Target]
    _namespace: Object | StatusError | None = None
    _variables_by_target: dict[Target, Mapping[str, Any]] = field(default_factory=dict)

    def with_object(self, obj: Object) -> RequestMatcher:
        """A matcher for the same request after a mutation."""
        return dataclasses.replace(
            self, attributes=dataclasses.replace(self.attributes, object=obj), _variables_by_target={}
        )

    async def namespace(self) -> Object | None:
        """The request's Namespace; None for a cluster-scoped object. Raises NotFound, and the cluster's StatusError."""
        name = request_namespace(self.attributes)
        if not name:
            return None
        if self._namespace is None:
            found = self.namespaces.get(name)
            self._namespace = found if found is not None else await self._read_live(name)
        if isinstance(self._namespace, StatusError):
            raise self._namespace
        return self._namespace

    async def _read_live(self, name: str) -> Object | StatusError:
        try:
            return await self.namespaces.get_live(name) or errors.NotFound(_NAMESPACES, name)
        except StatusError as error:
            return error

    async def target(self, match: MatchCriteria) -> Target | None:
        """Returns the equivalent resource that the criteria match, or None. The Namespace is read last, and only if
        the criteria have a namespaceSelector; the errors are those of `namespace`."""
        target = match.matching_target(self.attributes, self.equivalents)
        if target is None or match.namespaces.empty:
            return target
        if not request_namespace(self.attributes) and not is_namespace(self.attributes):
            return target
        labels = own_namespace_labels(self.attributes)
        if labels is None:
            namespace = await self.namespace()
            labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
        return target if match.namespaces.matches(labels) else None

    async def variables(self, target: Target) -> Mapping[str, Any]:
        """The CEL variables of the request, with its objects in the version of `target`."""
        if target not in self._variables_by_target:
            namespace = None if is_namespace(self.attributes) else await self.namespace()
            self._variables_by_target[target] = self._variables(target, namespace)
        return self._variables_by_target[target]

    @cached_property
    def input(self) -> EvaluationInput:
        """The parts of the request, and of its Namespace if it has been read, that expressions can read."""
        attributes = self.attributes
        named = [attributes.name, attributes.user.name, list(attributes.user.groups)]
        namespace = self._namespace if isinstance(self._namespace, dict) else None
        return EvaluationInput(attributes.object, attributes.old_object, attributes.options, named, namespace)

    def variables_without_namespace(self, target: Target) -> Mapping[str, Any]:
        """The variables for match conditions, which are evaluated before the namespace is read (WIRE-H12)."""
        return self._variables(target, None)

    def _variables(self, target: Target, namespace: Object | None) -> Mapping[str, Any]:
        attributes = self.attributes
        return flatten_typed_fields(
            {
                "object": object_as(attributes.object, target),
                "oldObject": object_as(attributes.old_object, target),
                "request": request_variable(attributes, self.equivalents[0], target),
                "namespaceObject": namespace_variable(namespace),
                "authorizer": authorizer_variable(attributes),
            }
        )
