"""Match criteria of policies, bindings and webhooks (WIRE-H7 to WIRE-H11). Pure: request_match.py reads the
namespaces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apiserver.admission import Attributes
from apiserver.meta.resource import Object, Resource
from apiserver.meta.selectors import LabelSelector, Requirement

_OPERATORS = frozenset(("In", "NotIn", "Exists", "DoesNotExist"))


@dataclass(frozen=True, slots=True)
class Target:
    """A resource in one API version, with its kind. Match rules are compared with it."""

    group: str
    version: str
    resource: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


EquivalentResources = Callable[[Resource], Sequence[Target]]
"""Returns the resource, followed by the same resource in the other versions that are served."""


def target_of(resource: Resource) -> Target:
    return Target(resource.group, resource.version, resource.plural, resource.kind)


def single_version(resource: Resource) -> Sequence[Target]:
    """EquivalentResources for resources that are each served in a single version."""
    return (target_of(resource),)


@dataclass(frozen=True, slots=True)
class MatchRule:
    groups: frozenset[str]
    versions: frozenset[str]
    operations: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str
    names: frozenset[str]

    def matches(self, attributes: Attributes, target: Target) -> bool:
        return self.covers(attributes, target) and (not self.names or attributes.name in self.names)

    def covers(self, attributes: Attributes, target: Target) -> bool:
        """Reports whether the rule matches requests of this operation on this resource, if they have the right name."""
        return (
            _includes(self.operations, attributes.operation)
            and _includes(self.groups, target.group)
            and _includes(self.versions, target.version)
            and any(
                resource in ("*", target.resource) and subresource in ("*", attributes.subresource)
                for resource, subresource in self.resources
            )
            and self._in_scope(attributes)
        )

    def _in_scope(self, attributes: Attributes) -> bool:
        return self.scope in ("", "*") or (self.scope == "Namespaced") == attributes.resource.namespaced


@dataclass(frozen=True, slots=True)
class MatchCriteria:
    """matchConstraints or matchResources. Empty `rules` match every resource. `error` is set if they are invalid."""

    rules: tuple[MatchRule, ...] = ()
    excluded: tuple[MatchRule, ...] = ()
    namespaces: LabelSelector = field(default_factory=LabelSelector)
    objects: LabelSelector = field(default_factory=LabelSelector)
    equivalent: bool = True
    error: str = ""

    def matching_target(self, attributes: Attributes, equivalents: Sequence[Target]) -> Target | None:
        """Returns the first of `equivalents` that matches, ignoring the namespaceSelector, or None. `equivalents`
        begins with the request's own resource."""
        if not self.objects.empty and not _matches_either_object(self.objects, attributes):
            return None
        if self._first_match(self.excluded, attributes, equivalents) is not None:
            return None
        return self._first_match(self.rules, attributes, equivalents) if self.rules else equivalents[0]

    def may_match(self, attributes: Attributes, equivalents: Sequence[Target]) -> bool:
        """Reports whether some request of this operation on this resource matches, whatever its name, its object and
        its namespace are. Criteria with an `error` may: the error is reported for each request."""
        targets = equivalents if self.equivalent else equivalents[:1]
        return (
            bool(self.error)
            or not self.rules
            or any(rule.covers(attributes, each) for rule in self.rules for each in targets)
        )

    def may_concern(self, groups: Collection[str]) -> bool:
        """Reports whether some request for a resource of these API groups matches. Criteria with an `error` may."""
        return (
            bool(self.error)
            or not self.rules
            or any(_includes(rule.groups, each) for rule in self.rules for each in groups)
        )

    def _first_match(
        self, rules: Sequence[MatchRule], attributes: Attributes, equivalents: Sequence[Target]
    ) -> Target | None:
        own, *others = equivalents
        if any(rule.matches(attributes, own) for rule in rules):
            return own
        if not self.equivalent:
            return None
        return next((each for rule in rules for each in others if rule.matches(attributes, each)), None)


def parse_match_criteria(document: Mapping[str, Any] | None) -> MatchCriteria:
    """Parses matchConstraints or matchResources, with Kubernetes' defaults."""
    found = document or {}
    try:
        return MatchCriteria(
            rules=tuple(_parse_rule(each) for each in found.get("resourceRules") or ()),
            excluded=tuple(_parse_rule(each) for each in found.get("excludeResourceRules") or ()),
            namespaces=label_selector_of(found.get("namespaceSelector")),
            objects=label_selector_of(found.get("objectSelector")),
            equivalent=found.get("matchPolicy") != "Exact",
        )
    except ValueError as error:
        return MatchCriteria(error=str(error))


def label_selector_of(document: Mapping[str, Any] | None) -> LabelSelector:
    """Parses a LabelSelector of the API. Raises ValueError for an unknown operator."""
    found = document or {}
    requirements = [Requirement(key, "In", (value,)) for key, value in sorted((found.get("matchLabels") or {}).items())]
    for each in found.get("matchExpressions") or ():
        operator = each.get("operator")
        if operator not in _OPERATORS:
            raise ValueError(f'"{operator}" is not a valid label selector operator')
        requirements.append(Requirement(each["key"], operator, tuple(each.get("values") or ())))
    return LabelSelector(tuple(requirements))


def labels_of(obj: Object | None) -> Mapping[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def request_namespace(attributes: Attributes) -> str:
    """The namespace of the request. A request for a Namespace counts as a request in that namespace."""
    return attributes.name if is_namespace(attributes) else attributes.namespace


def is_namespace(attributes: Attributes) -> bool:
    return attributes.resource.group_resource == ("", "namespaces")


def own_namespace_labels(attributes: Attributes) -> Mapping[str, str] | None:
    """The labels for the namespaceSelector if the request itself writes a Namespace; otherwise None."""
    if is_namespace(attributes) and not attributes.subresource and attributes.operation != "DELETE":
        return labels_of(attributes.object)
    return None


def _matches_either_object(selector: LabelSelector, attributes: Attributes) -> bool:
    return any(
        each is not None and selector.matches(labels_of(each)) for each in (attributes.object, attributes.old_object)
    )


def _parse_rule(document: Mapping[str, Any]) -> MatchRule:
    pairs = [str(each).partition("/") for each in document.get("resources") or ()]
    return MatchRule(
        groups=frozenset(document.get("apiGroups") or ()),
        versions=frozenset(document.get("apiVersions") or ()),
        operations=frozenset(document.get("operations") or ()),
        resources=tuple((resource, subresource) for resource, _, subresource in pairs),
        scope=document.get("scope") or "",
        names=frozenset(document.get("resourceNames") or ()),
    )


def _includes(patterns: frozenset[str], value: str) -> bool:
    return value in patterns or "*" in patterns
