"""Decides which form of each definition is served: the latest that can be read and takes no names of others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from registry.application.definition import ApplicationDefinition
from registry.names import KIND, RELEASE_PREFIX

TENANTS_PLURAL = "tenants"

State: TypeAlias = Literal["served", "kept", "refused"]
"""`kept`: an earlier form is served, because the latest is refused."""
STATES: Sequence[State] = ("served", "kept", "refused")


@dataclass(frozen=True, slots=True)
class UnreadableForm:
    """The latest form of a definition, if it cannot be read."""

    generation: int
    why: str


@dataclass(frozen=True, slots=True)
class DefinitionState:
    """`generation` is that of the latest form, `served_generation` that of the form in force, None if there is none.
    `why` is the reason why the latest form is refused; empty if it is served."""

    name: str
    generation: int
    served_generation: int | None
    why: str = ""

    @property
    def state(self) -> State:
        if not self.why:
            return "served"
        return "refused" if self.served_generation is None else "kept"

    def __str__(self) -> str:
        if not self.why:
            return f"serves the form of generation {self.generation}"
        refusal = f"generation {self.generation} is refused because {self.why}"
        if self.served_generation is None:
            return f"serves nothing; {refusal}"
        if self.served_generation == self.generation:
            # annotations have no generation
            return f"serves an earlier form of generation {self.generation}; the latest is refused because {self.why}"
        return f"serves the form of generation {self.served_generation}; {refusal}"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`served` are the forms in force by the names of definitions. The definition of Tenants is none of them, and has
    no state: Tenants have a storage of their own."""

    served: Mapping[str, ApplicationDefinition] = field(default_factory=dict)
    states: Sequence[DefinitionState] = ()


def resolve(
    latest: Mapping[str, ApplicationDefinition | UnreadableForm],
    in_force: Mapping[str, ApplicationDefinition] | None = None,
) -> Catalogue:
    """A form in force stays until its definition has a later one that can be served, or is gone: no other definition
    takes its names or prefix. Of two forms that claim one, neither of them in force, that of the older definition is
    served, then of the one with the smaller name. An empty prefix can be shared: a release belongs to the kind that its
    labels name. Of forms in force that clash, which only foreign ones do, the first stays."""
    readable = [each for each in latest.values() if isinstance(each, ApplicationDefinition)]
    kept = [each for name, each in (in_force or {}).items() if name in latest]
    taken = _Claims()
    for each in kept:
        if not taken.conflict(each):
            taken.take(each)
    wanted = [each for each in _by_age(readable) if not _is_of_tenants(each) or each.name in taken.served]
    # what one form gives up, another may take: each round serves one more latest form, or is the last
    while _advance(wanted, taken):
        pass
    refusals = {name: each.why for name, each in latest.items() if isinstance(each, UnreadableForm)}
    refusals |= {each.name: taken.conflict(each) for each in wanted}
    states = [_state(name, latest[name].generation, taken.served.get(name), why) for name, why in refusals.items()]
    return Catalogue(dict(taken.served), sorted(states, key=lambda each: each.name))


def _advance(wanted: Sequence[ApplicationDefinition], taken: _Claims) -> bool:
    """Serves the latest forms that can be. False if there was none that was not served already."""
    served = [each for each in wanted if taken.served.get(each.name) is not each and not taken.conflict(each)]
    for each in served:
        # one of the same round may have taken a name meanwhile
        if not taken.conflict(each):
            taken.take(each)
    return bool(served)


def _state(name: str, generation: int, served: ApplicationDefinition | None, why: str) -> DefinitionState:
    return DefinitionState(name, generation, served.generation if served is not None else None, why)


class _Claims:
    """The forms that are served, by the names of their definitions, and what they claim."""

    def __init__(self) -> None:
        self.served: dict[str, ApplicationDefinition] = {}
        self._owners: dict[tuple[str, str], str] = {}

    def take(self, definition: ApplicationDefinition) -> None:
        """Serves the form instead of another one of the same definition."""
        if (before := self.served.get(definition.name)) is not None:
            for claim in _claims(before):
                self._owners.pop(claim, None)
        self.served[definition.name] = definition
        self._owners.update(dict.fromkeys(_claims(definition), definition.name))

    def conflict(self, definition: ApplicationDefinition) -> str:
        """The reason why the form cannot be served beside the others; empty if it can."""
        for what, name in _claims(definition):
            owner = self._owners.get((what, name), definition.name)
            if owner != definition.name:
                return f'the {what} {name} is that of ApplicationDefinition "{owner}"'
        return _reserved(definition)


def _by_age(definitions: Iterable[ApplicationDefinition]) -> Sequence[ApplicationDefinition]:
    return sorted(definitions, key=lambda each: (each.created, each.name))


def _claims(definition: ApplicationDefinition) -> Iterable[tuple[str, str]]:
    yield "kind", definition.kind
    yield "kind", f"{definition.kind}List"
    yield "resource", definition.plural
    if definition.singular != definition.plural:
        yield "resource", definition.singular
    if definition.prefix:
        yield "prefix", definition.prefix


def _is_of_tenants(definition: ApplicationDefinition) -> bool:
    return (definition.kind, definition.plural) == (KIND, TENANTS_PLURAL)


def _reserved(definition: ApplicationDefinition) -> str:
    """The reason why a definition collides with Tenants, which are always served."""
    if definition.kind in (KIND, f"{KIND}List"):
        return f"the kind {definition.kind} is that of Tenants"
    if {definition.plural, definition.singular} & {TENANTS_PLURAL, KIND.lower()}:
        return "its resource name is that of Tenants"
    if definition.prefix == RELEASE_PREFIX:
        return f"the prefix {RELEASE_PREFIX} is that of Tenants"
    return ""
