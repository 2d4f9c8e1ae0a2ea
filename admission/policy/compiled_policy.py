"""ValidatingAdmissionPolicies with compiled expressions, and their bindings. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from admission.cel.environment import BOOL, NULL, STRING, Environment
from admission.cel.evaluation import Expression, compile_expression, compile_problems, shape_of, values_read_by
from admission.cel.library.opaque_types import Type
from admission.cel.loops import LoopShape
from admission.matching.match_rules import MatchCriteria, parse_match_criteria
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
    """Refers to params by `name` or by `selector`; `denies` is parameterNotFoundAction."""

    name: str
    namespace: str
    selector: Mapping[str, Any] | None
    denies: bool


@dataclass(frozen=True, kw_only=True)
class PolicyExpressions:
    environment: Environment
    variables: Mapping[str, Expression]
    conditions: tuple[Expression, ...]
    validations: tuple[Validation, ...]
    audits: tuple[tuple[str, Expression], ...]

    @cached_property
    def reads(self) -> frozenset[str]:
        """The values that they read."""
        return values_read_by(self.all())

    @cached_property
    def shape(self) -> LoopShape:
        return shape_of(self.all())

    def all(self) -> Iterator[Expression]:
        yield from self.variables.values()
        yield from self.conditions
        for validation in self.validations:
            yield validation.expression
            if validation.message_expression is not None:
                yield validation.message_expression
        for _, expression in self.audits:
            yield expression


@dataclass(frozen=True, kw_only=True)
class CompiledPolicy:
    """Its expressions are compiled on first use. One that does not compile is stored with its error, and fails when it
    is evaluated."""

    name: str
    spec: Mapping[str, Any]
    ignores_errors: bool
    match: MatchCriteria
    param_kind: ParamKind | None

    @cached_property
    def expressions(self) -> PolicyExpressions:
        return _compile_expressions(self.spec)

    def compile(self) -> None:
        """Compiles the expressions now."""
        _ = self.expressions

    @property
    def is_compiled(self) -> bool:
        """True once the expressions were used."""
        return "expressions" in self.__dict__

    @property
    def may_deny_without_action(self) -> bool:
        """An error in an audit annotation denies the request, with any actions of the binding."""
        return bool(self.expressions.audits) and not self.ignores_errors

    @property
    def problems(self) -> list[str]:
        """Errors in the match criteria and in expressions."""
        found = compile_problems(self.expressions.all())
        return [self.match.error, *found] if self.match.error else found

    @property
    def reads_authorizer(self) -> bool:
        """Reports whether an expression uses `authorizer`, so that evaluation may block on it."""
        return "authorizer" in self.expressions.reads


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBinding:
    name: str
    policy: str
    match: MatchCriteria
    param_ref: ParamRef | None
    actions: tuple[str, ...]


def compile_policy(obj: Object) -> CompiledPolicy:
    """Parses all but the expressions, which are compiled on first use."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    params = spec.get("paramKind")
    return CompiledPolicy(
        name=obj["metadata"].get("name") or "",
        spec=spec,
        ignores_errors=spec.get("failurePolicy") == "Ignore",
        match=parse_match_criteria(spec.get("matchConstraints")),
        param_kind=ParamKind(params.get("apiVersion") or "", params.get("kind") or "") if params else None,
    )


def _compile_expressions(spec: Mapping[str, Any]) -> PolicyExpressions:
    declared = bool(spec.get("paramKind"))
    variables, types = _variables(spec.get("variables") or (), params=declared)
    environment = Environment(params=declared, authorizer=True, variables=types)
    messages = Environment(params=declared, variables=types)
    conditions = Environment(params=declared, authorizer=True)
    return PolicyExpressions(
        environment=environment,
        variables=variables,
        conditions=tuple(
            compile_expression(conditions, _expression_text(each), (BOOL,))
            for each in spec.get("matchConditions") or ()
        ),
        validations=tuple(_validation(environment, messages, each) for each in spec.get("validations") or ()),
        audits=tuple(
            (each.get("key") or "", compile_expression(environment, each.get("valueExpression") or "", (STRING, NULL)))
            for each in spec.get("auditAnnotations") or ()
        ),
    )


def parse_policy_binding(obj: Object) -> PolicyBinding:
    spec: Mapping[str, Any] = obj.get("spec") or {}
    ref = spec.get("paramRef")
    return PolicyBinding(
        name=obj["metadata"].get("name") or "",
        policy=spec.get("policyName") or "",
        match=parse_match_criteria(spec.get("matchResources")),
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
    """Compiles the variables and returns them with their types; each may read those before it."""
    variables: dict[str, Expression] = {}
    types: dict[str, Type] = {}
    for document in documents:
        found = compile_expression(
            Environment(params=params, authorizer=True, variables=types), _expression_text(document), ()
        )
        if found.program is not None and not _is_plain_value(found.program.returns):
            found = Expression(found.text, None, f"variables of type {found.program.returns.name()} are not supported")
        variables[document["name"]] = found
        types = {**types, document["name"]: found.program.returns if found.program is not None else Type.DYN}
    return variables, types


def _is_plain_value(found: Type) -> bool:
    """Reports whether values of the type can be passed to a later expression: all but optionals and types can."""
    return not str(found.name()).startswith(("optional_type", "TYPE"))


def _validation(environment: Environment, messages: Environment, document: Mapping[str, Any]) -> Validation:
    message = document.get("messageExpression")
    return Validation(
        expression=compile_expression(environment, _expression_text(document), (BOOL,)),
        message=(document.get("message") or "").strip(),
        message_expression=compile_expression(messages, message, (STRING,)) if message else None,
        reason=document.get("reason") or "Invalid",
    )


def _expression_text(document: Mapping[str, Any]) -> str:
    return document.get("expression") or ""
