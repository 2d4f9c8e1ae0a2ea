"""CEL environments as Kubernetes declares them: expressions are compiled once and evaluated for each request.

A function that the CEL library lacks does not compile; docs/admission.md lists the functions that are supported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from cel_expr_python import cel

from admission.cel.error_messages import (
    COST_EXCEEDED,
    is_field_selection_error,
    missing_field_message,
    text_of_status,
    to_kubernetes_message,
)
from admission.cel.library import authz as authorization
from admission.cel.library import formats, lists, pieces, texts, urls
from admission.cel.library import ip_and_cidr as addresses
from admission.cel.library import quantity_and_semver as comparables
from admission.cel.library import regex as regexes
from admission.cel.library.opaque_types import STRINGS, Type
from admission.cel.library.python_function import INCOMPLETE, release_result
from admission.cel.loops import LoopShape, SplitExpression, loop_shape, split_loops
from admission.cel.tokenizer import calls, fields_of, names_in, rewrite_unsupported_calls, select_chains

BOOL, STRING, NULL = Type.BOOL, Type.STRING, Type.NULL

_CONFIG = """
extensions:
- name: "lists"
- name: "optional"
- name: "sets"
- name: "strings"
  version: 2
- name: "two-var-comprehensions"
"""
_OBJECT = Type.Map(Type.STRING, Type.DYN)
_STRING_MAP = Type.Map(Type.STRING, Type.STRING)
_TYPED: Mapping[str, Mapping[str, Type]] = {
    "request": {
        **{f"{kind}.{part}": STRING for kind in ("kind", "requestKind") for part in ("group", "version", "kind")},
        **{
            f"{kind}.{part}": STRING
            for kind in ("resource", "requestResource")
            for part in ("group", "version", "resource")
        },
        **dict.fromkeys(("subResource", "requestSubResource", "name", "namespace", "operation"), STRING),
        "userInfo.username": STRING,
        "userInfo.uid": STRING,
        "userInfo.groups": STRINGS,
        "userInfo.extra": Type.Map(Type.STRING, STRINGS),
        "dryRun": BOOL,
    },
    "namespaceObject": {
        **{f"metadata.{name}": STRING for name in ("name", "generateName", "namespace", "resourceVersion")},
        "metadata.labels": _STRING_MAP,
        "metadata.annotations": _STRING_MAP,
        "metadata.finalizers": STRINGS,
        "spec.finalizers": STRINGS,
        "status.phase": STRING,
    },
}
_ROOTS = ("object", "oldObject", "request", "namespaceObject", "params", "authorizer", "self", "oldSelf")
_ABSENT = 'No value with name "'
_ITERATION_LIMIT = "Iteration budget exceeded"
_UNSUPPORTED = (
    INCOMPLETE,
    "returned a result with an exception set",
    "Unimplemented type: ",
    "Non-CEL value type for ",
    "could not convert argument optional_type",
)
# these macros compile but fail when evaluated: the library does not bind the functions behind them
_UNBOUND = ("transformMap", "transformMapEntry")


class CompileError(Exception):
    """The expression is invalid, or uses a function that the library lacks."""


class EvaluationError(Exception):
    """Has the error text of Kubernetes, and as `status` that of the library. `unset_variable` is the field of
    `variables` that was read but has no value."""

    def __init__(self, text: str, *, status: str = "", unset_variable: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.unset_variable = unset_variable


class IterationLimit(EvaluationError):
    """The library ended the evaluation after 9,999 iterations. The expression itself is valid."""

    def __init__(self) -> None:
        super().__init__(COST_EXCEEDED)


class UnsupportedValue(EvaluationError):
    """The library cannot convert a value to Python or from it. The expression itself is valid."""

    def __init__(self, status: str) -> None:
        super().__init__("a function or loop has values that are not supported there, such as optionals", status=status)


@dataclass(frozen=True)
class Program:
    """A compiled expression: `variables` lists the fields of `variables` that it reads, `reads` the other keys of the
    activation (see `flatten_typed_fields`)."""

    environment: Environment = field(repr=False)
    expression: str
    compiled: cel.Expression
    returns: Type
    variables: tuple[str, ...]
    reads: frozenset[str]
    is_bool: bool
    """The static type is bool, so the type of the result is not checked again."""
    _pieces: dict[str, Program] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def shape(self) -> LoopShape:
        return loop_shape(self.expression)

    @cached_property
    def loops(self) -> SplitExpression:
        return split_loops(self.expression)

    def piece(self, text: str) -> Program:
        """The program for a text of `loops`, compiled on first use. Raises CompileError."""
        if text not in self._pieces:
            self._pieces[text] = self.environment.compile(text)
        return self._pieces[text]

    @property
    def reads_authorizer(self) -> bool:
        """Reports whether the expression uses `authorizer`."""
        return "authorizer" in self.reads


class Activation:
    """The values that expressions of one request read; fields of `variables` are added on first use."""

    def __init__(self, env: cel.Env, values: Mapping[str, Any], functions: Sequence[cel.Function]) -> None:
        self._env = env
        self._values = dict(values)
        self._functions = list(functions) or None
        self._native: cel.Activation | None = None

    def set_variable(self, name: str, value: Any) -> None:
        self._values[f"variables.{name}"] = value
        self._native = None

    @property
    def values(self) -> Mapping[str, Any]:
        return self._values

    @property
    def native(self) -> cel.Activation:
        if self._native is None:
            self._native = self._env.Activation(self._values, self._functions)
        return self._native


@dataclass(frozen=True, eq=False)
class SharedEnv:
    """An environment of the library, with its programs that are in use. A policy and its next version share the
    programs of all expressions that do not change, and the versions of a CustomResourceDefinition share their rules."""

    native: cel.Env
    programs: WeakValueDictionary[str, Program] = field(default_factory=WeakValueDictionary)


class Environment:
    """Declares object, oldObject, request and namespaceObject, and optionally params, authorizer and variables.

    `variables` maps the fields of the CEL variable `variables` to their types; None declares no such variable.
    """

    def __init__(
        self, *, params: bool = False, authorizer: bool = False, variables: Mapping[str, Type] | None = None
    ) -> None:
        self._variables = variables
        self._env = _shared_env(params, authorizer) if not variables else _env_in_use(params, authorizer, variables)

    @classmethod
    def of_schema_rules(cls) -> Environment:
        """Declares self and oldSelf, the values of the rules in schemas."""
        environment = cls.__new__(cls)
        environment._variables = None
        environment._env = _rule_env()
        return environment

    def compile(self, expression: str, returns: Sequence[Type] = ()) -> Program:
        """`returns` lists the accepted result types; empty accepts any. Raises CompileError."""
        used = fields_of("variables", expression) if self._variables is not None else []
        # before the lookup: environments without the variable `variables` share programs with those where it is empty
        if missing := [name for name in used if name not in (self._variables or {})]:
            raise CompileError(f"compilation failed: ERROR: <input>: undefined field '{missing[0]}'")
        if (program := self._env.programs.get(expression)) is None:
            program = self._env.programs[expression] = self._compile(expression, used)
        if returns and not any(program.returns == each for each in returns):
            expected = " ".join(_type_name(each) for each in returns)
            one_of = expected if len(returns) == 1 else f"one of [{expected}]"
            raise CompileError(f"must evaluate to {one_of} but got {_type_name(program.returns)}")
        return program

    def _compile(self, expression: str, used: Sequence[str]) -> Program:
        compiled = self._compiled(expression)
        found = compiled.return_type()
        return Program(self, expression, compiled, found, tuple(used), _values_read_by(expression), found == BOOL)

    def _compiled(self, expression: str) -> cel.Expression:
        for macro in _UNBOUND:
            if calls(macro, expression):
                raise CompileError(f"compilation failed: the macro '{macro}' is not available")
        try:
            return self._env.native.compile(rewrite_unsupported_calls(expression))
        except (RuntimeError, ValueError, LookupError) as error:
            raise CompileError(f"compilation failed: {_compile_error_message(error)}") from error

    def activation(self, values: Mapping[str, Any], *functions: cel.Function) -> Activation:
        """`functions` implement those that are bound for each evaluation: `authorizer…check(verb)`, and those of
        loops. Evaluated expressions must not call one that is missing."""
        return Activation(self._env.native, values, functions)


def flatten_typed_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `values`, with an additional entry `root.path` for each field whose type is declared."""
    found = dict(values)
    for root, fields in _TYPED.items():
        for path in fields:
            if (value := _value_at(values.get(root), path)) is not None:
                found[f"{root}.{path}"] = value
    return found


def evaluate(program: Program, activation: Activation) -> Any:
    """Returns the result as a plain Python value. Raises EvaluationError, or IterationLimit or UnsupportedValue, which
    must reject the request."""
    try:
        result = program.compiled.eval(activation.native)
        if program.is_bool and isinstance(truth := result.plain_value(), bool):
            return truth
        found = result.type()
        value = result.plain_value()
    except (RuntimeError, ValueError, LookupError, TypeError, SystemError) as error:
        if _ITERATION_LIMIT in str(error):
            raise IterationLimit from error
        raise _evaluation_error(str(error)) from error
    finally:
        release_result()
    if found == Type.ERROR:
        status = text_of_status(value)
        if is_field_selection_error(value):
            raise EvaluationError(missing_field_message(program.expression, activation.values), status=status)
        raise _evaluation_error(value)
    return value


def _evaluation_error(error: str) -> EvaluationError:
    """The error for a status of the library. A missing field of request or namespaceObject is also reported as an unset
    variable."""
    status = text_of_status(error)
    if any(text in status for text in _UNSUPPORTED):
        return UnsupportedValue(status)
    _, unset, rest = status.partition(_ABSENT)
    if not unset:
        return EvaluationError(to_kubernetes_message(error), status=status)
    root, _, path = rest.partition('"')[0].partition(".")
    name = path.rpartition(".")[2]
    return EvaluationError(f"no such key: {name}", status=status, unset_variable=name if root == "variables" else "")


@functools.cache
def _shared_env(params: bool, authorizer: bool) -> SharedEnv:
    return _env(params, authorizer, {})


def _env_in_use(params: bool, authorizer: bool, variables: Mapping[str, Type]) -> SharedEnv:
    """One for the same declarations, as long as a program of it is in use."""
    declared = params, authorizer, *sorted((name, str(kind.name())) for name, kind in variables.items())
    if (found := _envs_in_use().get(declared)) is None:
        found = _envs_in_use()[declared] = _env(params, authorizer, variables)
    return found


@functools.cache
def _envs_in_use() -> WeakValueDictionary[Hashable, SharedEnv]:
    return WeakValueDictionary()


def _env(params: bool, authorizer: bool, variables: Mapping[str, Type]) -> SharedEnv:
    types: dict[str, Type] = {
        "object": Type.DYN,
        "oldObject": Type.DYN,
        "request": _OBJECT,
        "namespaceObject": Type.DYN,
        **{f"{root}.{path}": kind for root, fields in _TYPED.items() for path, kind in fields.items()},
        **{f"variables.{name}": kind for name, kind in variables.items()},
    }
    if params:
        types["params"] = Type.DYN
    if authorizer:
        types["authorizer"] = _OBJECT
    return _new_env(types)


@functools.cache
def _rule_env() -> SharedEnv:
    return _new_env({"self": Type.DYN, "oldSelf": Type.DYN})


def _new_env(types: Mapping[str, Type]) -> SharedEnv:
    return SharedEnv(cel.NewEnv(config=_config(), variables=dict(types), extensions=[_extension()]))


@functools.cache
def _config() -> cel.EnvConfig:
    return cel.NewEnvConfigFromYaml(_CONFIG)


@functools.cache
def _extension() -> cel.CelExtension:
    """The functions of Kubernetes, declared once: declaring them takes ten times as long as the rest of an
    environment, and each policy has several."""
    return cel.CelExtension("kubernetes", [each for library in _LIBRARIES for each in library()])


_LIBRARIES: tuple[Callable[[], Sequence[cel.FunctionDecl]], ...] = (
    lists.functions,
    regexes.functions,
    texts.functions,
    urls.functions,
    addresses.functions,
    comparables.functions,
    formats.functions,
    authorization.functions,
    pieces.functions,
)


def _values_read_by(expression: str) -> frozenset[str]:
    """The values that the expression reads: only these are converted for the library, because conversion is slow."""
    found = set(names_in(expression).intersection(_ROOTS))
    for root, fields in select_chains(expression):
        typed = _TYPED.get(root, {})
        paths = (".".join(fields[:end]) for end in range(1, len(fields) + 1))
        found.update(f"{root}.{path}" for path in paths if path in typed)
    return frozenset(found)


def _value_at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _compile_error_message(error: Exception) -> str:
    return str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")


def _type_name(found: Type) -> str:
    return str(found.name()).lower().replace("null", "null_type")
