"""Policies and bindings as informers of the host tell them: compiled when they come, looked up by every write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from admission.matching.compiled_configurations import Kept
from admission.policy.compiled_policy import Binding, ParamKind, Policy, binding_of, policy_of


@dataclass(frozen=True, slots=True)
class Hook:
    """A policy that is in effect somewhere, with its bindings."""

    policy: Policy
    bindings: tuple[Binding, ...]


class HeldPolicies:
    """`policies` and `bindings` are handlers for the informers whose `synced` events are given."""

    def __init__(self, *, synced: Sequence[asyncio.Event]) -> None:
        self._synced = tuple(synced)
        self._hooks: tuple[Hook, ...] | None = None
        self._listeners: list[Callable[[], None]] = []
        self.policies = Kept(policy_of, self._changed)
        self.bindings = Kept(binding_of, self._changed)

    @property
    def synced(self) -> bool:
        return all(event.is_set() for event in self._synced)

    @property
    def hooks(self) -> Sequence[Hook]:
        """By name, so that of several refusals it is always the same that is told (WIRE-H22)."""
        if self._hooks is None:
            bound: dict[str, list[Binding]] = {}
            for name in sorted(self.bindings.facts):
                binding = self.bindings.facts[name]
                bound.setdefault(binding.policy, []).append(binding)
            self._hooks = tuple(
                Hook(self.policies.facts[name], tuple(bound[name]))
                for name in sorted(self.policies.facts)
                if name in bound
            )
        return self._hooks

    @property
    def param_kinds(self) -> frozenset[ParamKind]:
        return frozenset(kind for each in self.policies.facts.values() if (kind := each.param_kind) is not None)

    @property
    def problems(self) -> Mapping[str, Sequence[str]]:
        """What keeps policies from working as they are written, by their names."""
        found = {name: self.policies.facts[name].problems for name in sorted(self.policies.facts)}
        return {name: problems for name, problems in found.items() if problems}

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Called after each change."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        self._hooks = None
        for listener in self._listeners:
            listener()
