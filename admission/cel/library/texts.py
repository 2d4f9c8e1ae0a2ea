"""Functions of CEL's library for strings whose results could be of any size."""

from __future__ import annotations

from admission.cel.error_messages import COST_EXCEEDED
from admission.cel.library.opaque_types import FunctionError, Functions, Type, function, overload
from admission.cel.tokenizer import REPLACE

_LONGEST = 4 * 1024 * 1024


def replaced(text: str, old: str, new: str, limit: int = -1) -> str:
    """As Go's strings.Replace. Raises FunctionError for a result of more than 4 Mi characters."""
    if limit == 0:
        return text
    found = text.count(old) if limit < 0 else min(text.count(old), limit)
    if len(text) + found * (len(new) - len(old)) > _LONGEST:
        raise FunctionError(COST_EXCEEDED)
    return text.replace(old, new, limit)


def functions() -> Functions:
    text = Type.STRING
    return (
        function(
            REPLACE,
            overload(text, text, text, text, impl=replaced, member=True),
            overload(text, text, text, text, Type.INT, impl=replaced, member=True),
        ),
    )
