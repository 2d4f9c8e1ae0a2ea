"""What a ValidatingAdmissionPolicy and its bindings say, with every expression compiled. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from admission.cel.environment import BOOL, NULL, STRING, Environment
from admission.cel.evaluation import Expression, compiled, problems_of, reads_of
from admission.cel.library.opaque_types import Type
from admission.matching.match_rules import Match, match_of
from apiserver.meta.resource import Object


@dataclass(frozen=True, slots=True)
class Validation:
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(frozen=True, slots=True)
class ParamKind:
    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"&ParamKind{{APIVersion:{self.api_version},Kind:{self.kind},}}"


@dataclass(frozen=True, slots=True)
class ParamRef:
    """By `name` or by `selector`; `denies` is for the case that nothing is found."""

    name: str
    namespace: str
    selector: Mapping[str, Any] | None
    denies: bool


@dataclass(frozen=True, kw_only=True)
class Policy:
    name: str
    spec: Mapping[str, Any]
    ignores_errors: bool
    match: Match
    param_kind: ParamKind | None
    environment: Environment
    variables: Mapping[str, Expression]
    conditions: tuple[Expression, ...]
    validations: tuple[Validation, ...]
    audits: tuple[tuple[str, Expression], ...]

    @cached_property
    def reads(self) -> frozenset[str]:
        """Which values its expressions read."""
        return reads_of(self._expressions())

    @property
    def problems(self) -> list[str]:
        """What keeps the policy from working as it is written."""
        found = problems_of(self._expressions())
        return [self.match.error, *found] if self.match.error else found

    @property
    def authorizes(self) -> bool:
        """Whether an expression asks what somebody may do."""
        return "authorizer" in self.reads

    def _expressions(self) -> Iterator[Expression]:
        yield from self.variables.values()
        yield from self.conditions
        for validation in self.validations:
            yield validation.expression
            if validation.message_expression is not None:
                yield validation.message_expression
        for _, expression in self.audits:
            yield expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    name: str
    policy: str
    match: Match
    param_ref: ParamRef | None
    actions: tuple[str, ...]


def policy_of(obj: Object) -> Policy:
    """Everything in it is compiled, and what does not compile is kept with the reason."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    params = spec.get("paramKind")
    declared = bool(params)
    variables, types = _variables(spec.get("variables") or (), params=declared)
    environment = Environment(params=declared, authorizer=True, variables=types)
    messages = Environment(params=declared, variables=types)
    conditions = Environment(params=declared, authorizer=True)
    return Policy(
        name=obj["metadata"]["name"],
        spec=spec,
        ignores_errors=spec.get("failurePolicy") == "Ignore",
        match=match_of(spec.get("matchConstraints")),
        param_kind=ParamKind(params.get("apiVersion") or "", params.get("kind") or "") if params else None,
        environment=environment,
        variables=variables,
        conditions=tuple(compiled(conditions, _text(each), (BOOL,)) for each in spec.get("matchConditions") or ()),
        validations=tuple(_validation(environment, messages, each) for each in spec.get("validations") or ()),
        audits=tuple(
            (each["key"], compiled(environment, each.get("valueExpression") or "", (STRING, NULL)))
            for each in spec.get("auditAnnotations") or ()
        ),
    )


def binding_of(obj: Object) -> Binding:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    ref = spec.get("paramRef")
    return Binding(
        name=obj["metadata"]["name"],
        policy=spec.get("policyName") or "",
        match=match_of(spec.get("matchResources")),
        param_ref=_param_ref(ref) if ref else None,
        actions=tuple(spec.get("validationActions") or ()),
    )


def _param_ref(document: Mapping[str, Any]) -> ParamRef:
    return ParamRef(
        name=document.get("name") or "",
        namespace=document.get("namespace") or "",
        selector=document.get("selector"),
        denies=document.get("parameterNotFoundAction") == "Deny",
    )


def _variables(
    documents: Sequence[Mapping[str, Any]], *, params: bool
) -> tuple[dict[str, Expression], dict[str, Type]]:
    """The variables and their types; each may use those before it."""
    variables: dict[str, Expression] = {}
    types: dict[str, Type] = {}
    for document in documents:
        found = compiled(Environment(params=params, authorizer=True, variables=types), _text(document), ())
        if found.program is not None and not _can_be_kept(found.program.returns):
            found = Expression(found.text, None, f"a variable of type {found.program.returns.name()} cannot be kept")
        variables[document["name"]] = found
        types = {**types, document["name"]: found.program.returns if found.program is not None else Type.DYN}
    return variables, types


def _can_be_kept(found: Type) -> bool:
    """Optionals and types are values that the library keeps to itself."""
    return not str(found.name()).startswith(("optional_type", "TYPE"))


def _validation(environment: Environment, messages: Environment, document: Mapping[str, Any]) -> Validation:
    message = document.get("messageExpression")
    return Validation(
        expression=compiled(environment, _text(document), (BOOL,)),
        message=(document.get("message") or "").strip(),
        message_expression=compiled(messages, message, (STRING,)) if message else None,
        reason=document.get("reason") or "Invalid",
    )


def _text(document: Mapping[str, Any]) -> str:
    return document.get("expression") or ""
