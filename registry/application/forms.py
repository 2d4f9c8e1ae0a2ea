"""Reads the form of an ApplicationDefinition, or the reason why it cannot be served. Pure."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.meta.resource import Object
from apiserver.schema.rules import RuleCompiler
from apiserver.schema.validation import Matches
from registry.application.catalogue import UnreadableForm
from registry.application.definition import ApplicationDefinition, UnusableDefinition, parse_definition, source_of
from registry.application.validation import rule_problem


def _nothing(name: str) -> None:
    pass


def read_form(
    obj: Object, matches: Matches, compiler: RuleCompiler, *, on_unforeseen: Callable[[str], object] = _nothing
) -> ApplicationDefinition | UnreadableForm:
    """`on_unforeseen` is called with the name of a definition that raises an exception that nobody thought of, while it
    is handled: it must not keep the others from being served, nor end the command of an operator."""
    source = source_of(obj)
    try:
        definition = parse_definition(source, matches)
        problem = rule_problem(definition.schema, compiler)
        why = f"spec.application.openAPISchema is unusable: {problem}" if problem else ""
    except UnusableDefinition as error:
        why = str(error)
    except Exception as error:
        on_unforeseen(source["metadata"]["name"])
        why = f"it cannot be read: {type(error).__name__}"
    return UnreadableForm(source["metadata"]["generation"], why) if why else definition
