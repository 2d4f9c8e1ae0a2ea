"""The policies and bindings in force: compiled as informers deliver them, read by every write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from admission.matching.compiled_configurations import CompiledConfigurations
from admission.matching.match_rules import Target
from admission.policy.compiled_policy import (
    CompiledPolicy,
    ParamKind,
    PolicyBinding,
    compile_policy,
    parse_policy_binding,
)
from apiserver.admission import Attributes
from apiserver.meta.resource import Object

# kinds come and go with CustomResourceDefinitions
_MOST_RESOURCES = 4096


@dataclass(frozen=True, slots=True)
class BoundPolicy:
    """A policy with its bindings; a policy without any is not in force."""

    policy: CompiledPolicy
    bindings: tuple[PolicyBinding, ...]


class PolicySource:
    """`policies` and `bindings` are event handlers for two informers.

    Policies about other API groups than `groups` are compiled when a request needs them, if ever: of a cluster's
    policies, few are about the kinds of an aggregated server. None compiles all of them at once.
    """

    def __init__(self, groups: Collection[str] | None = None) -> None:
        self._groups = groups
        self._bound_policies: tuple[BoundPolicy, ...] | None = None
        self._applicable: dict[tuple[object, ...], Sequence[BoundPolicy]] = {}
        self._listeners: list[Callable[[], None]] = []
        self.policies = CompiledConfigurations(self._compile, self._on_change)
        self.bindings = CompiledConfigurations(parse_policy_binding, self._on_change)

    @property
    def bound_policies(self) -> Sequence[BoundPolicy]:
        """Sorted by name, so that the same one of several denials is always reported (WIRE-H22)."""
        if self._bound_policies is None:
            bound: dict[str, list[PolicyBinding]] = {}
            for name in sorted(self.bindings.compiled):
                binding = self.bindings.compiled[name]
                bound.setdefault(binding.policy, []).append(binding)
            self._bound_policies = tuple(
                BoundPolicy(self.policies.compiled[name], tuple(bound[name]))
                for name in sorted(self.policies.compiled)
                if name in bound
            )
        return self._bound_policies

    def applicable(self, attributes: Attributes, equivalents: Sequence[Target]) -> Sequence[BoundPolicy]:
        """The `bound_policies` that may match requests of this operation on this resource: of all policies of a
        cluster, most are about other kinds."""
        key = (attributes.operation, attributes.subresource, attributes.resource.namespaced, *equivalents)
        if (found := self._applicable.get(key)) is None:
            if len(self._applicable) >= _MOST_RESOURCES:
                self._applicable.clear()
            found = tuple(each for each in self.bound_policies if each.policy.match.may_match(attributes, equivalents))
            self._applicable[key] = found
        return found

    @property
    def param_kinds(self) -> frozenset[ParamKind]:
        return frozenset(kind for each in self.policies.compiled.values() if (kind := each.param_kind) is not None)

    @property
    def problems(self) -> Mapping[str, Sequence[str]]:
        """Configuration and compile errors of the policies that were compiled, by name."""
        compiled = self.policies.compiled
        found = {name: compiled[name].problems for name in sorted(compiled) if compiled[name].is_compiled}
        return {name: problems for name, problems in found.items() if problems}

    def subscribe(self, listener: Callable[[], None]) -> None:
        """`listener` is called after each change of a policy or binding."""
        self._listeners.append(listener)

    def _compile(self, obj: Object) -> CompiledPolicy:
        policy = compile_policy(obj)
        if self._groups is None or policy.match.may_concern(self._groups):
            policy.compile()
        return policy

    def _on_change(self) -> None:
        self._bound_policies = None
        self._applicable.clear()
        for listener in self._listeners:
            listener()
