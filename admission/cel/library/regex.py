"""Kubernetes' CEL functions for regular expressions, run by the CEL library's own RE2, which is linear in time."""

from __future__ import annotations

import functools
import re

from cel_expr_python import cel

from admission.cel.error_messages import to_kubernetes_message
from admission.cel.library.opaque_types import STRINGS, FunctionError, Functions, Type, function, overload

_CONFIG = 'extensions:\n- name: "optional"\n- name: "regex"\n'
_GROUP = re.compile(
    r"(?P<other>\\Q(?s:.*?)(?:\\E|\Z)|\\(?s:.)|\[\^?\]?(?:\[:\w+:\]|\\(?s:.)|[^\]])*\])|\((?:\?P?<\w+>|(?!\?))"
)


@functools.cache
def _programs() -> tuple[cel.Env, cel.Expression, cel.Expression, cel.Expression]:
    config = cel.NewEnvConfigFromYaml(_CONFIG)
    env = cel.NewEnv(config=config, variables={"text": Type.STRING, "pattern": Type.STRING})
    first = env.compile("regex.extract(text, pattern).orValue('')")
    return env, first, env.compile("regex.extractAll(text, pattern)"), env.compile("string(text.matches(pattern))")


def find(text: str, pattern: str) -> str:
    return str(_evaluate(_programs()[1], text, pattern))


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = list(_evaluate(_programs()[2], text, pattern))
    return found if limit < 0 else found[:limit]


def matches(pattern: str, text: str) -> bool:
    """True if the pattern is found in the text. Raises ValueError for an invalid pattern."""
    env = _programs()[0]
    found = _programs()[3].eval(env.Activation({"text": text, "pattern": pattern}))
    if found.type() == Type.ERROR:
        raise ValueError(to_kubernetes_message(str(found.plain_value())))
    return str(found.plain_value()) == "true"


def without_groups(pattern: str) -> str:
    """The pattern with non-capturing groups: `regex.extract` then returns the whole match."""
    return _GROUP.sub(lambda found: found["other"] or "(?:", pattern)


def _evaluate(expression: cel.Expression, text: str, pattern: str) -> str | list[str]:
    env = _programs()[0]
    result = expression.eval(env.Activation({"text": text, "pattern": without_groups(pattern)}))
    value: str | list[str] = result.plain_value()
    if result.type() == Type.ERROR:
        # the error for the original pattern is the one that Kubernetes reports
        original = _programs()[3].eval(env.Activation({"text": text, "pattern": pattern}))
        raise FunctionError(f"Illegal regex: {to_kubernetes_message(str(original.plain_value()))}")
    return value


def functions() -> Functions:
    text = Type.STRING
    return (
        function("find", overload(text, text, text, impl=find, member=True)),
        function(
            "findAll",
            overload(STRINGS, text, text, impl=find_all, member=True),
            overload(STRINGS, text, text, Type.INT, impl=find_all, member=True),
        ),
    )
