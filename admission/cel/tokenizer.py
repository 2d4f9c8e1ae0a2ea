"""Finds the names in a CEL expression, and rewrites calls that the CEL library cannot evaluate. Pure; untyped."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<string>[bB]?[rR]?(?:\"{3}(?s:.*?)\"{3}|'{3}(?s:.*?)'{3})(?<!\\)
        |[bB]?[rR](?:"[^"\n]*"|'[^'\n]*')|[bB]?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9][0-9A-Za-z_]*(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?)?)
    |(?P<dot>\.\??)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_PAIRS = {")": "(", "]": "[", "}": "{"}
BOUNDED = "kubernetesBounded"
REPLACE = "kubernetesReplace"
# A Python function cannot return an optional: these two return a list or a map, empty for optional.none().
FORMAT_ERRORS = "kubernetesFormatErrors"
NAMED_FORMAT = "format.kubernetesNamed"
INDEX_OF_NULL = {"indexOf": "kubernetesIndexOfNull", "lastIndexOf": "kubernetesLastIndexOfNull"}
_PAIR, _MAP, _TARGET, _ITEM = "kubernetesPair", "kubernetesMap", "kubernetesTarget", "kubernetesItem"
# they return optionals, or have them in their names
_OPTIONALS = frozenset(("optional", "optMap", "optFlatMap", "first", "last", "validate", "named"))


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str


_NO_TOKEN = Token("", "")
_NULL = Token("word", "null")


def tokens(expression: str) -> list[Token]:
    """All tokens, including white space and comments: joined, they are the expression again."""
    return [Token(found.lastgroup or "other", found[0]) for found in _TOKEN.finditer(expression)]


def fields_of(root: str, expression: str) -> list[str]:
    """The distinct names in `root.<name>`, in order. A local variable named `root` is not distinguished."""
    found = _significant_tokens(expression)
    names = [
        found[index + 2].text
        for index, token in enumerate(found[:-2])
        if token == Token("word", root)
        and found[index + 1].kind == "dot"
        and found[index + 2].kind == "word"
        and (index == 0 or found[index - 1].kind != "dot")
    ]
    return list(dict.fromkeys(names))


def select_chains(expression: str) -> list[tuple[str, list[str]]]:
    """Each `root.field.field`, in order, without the name of a method that is called at its end. The root is empty if
    the fields are selected from a computed value."""
    found = _significant_tokens(expression)
    chains: list[tuple[str, list[str]]] = []
    index = 0
    while index < len(found):
        start = index
        index += 1
        computed = found[start].text in _PAIRS or found[start].kind in ("string", "number")
        if not computed and (found[start].kind != "word" or (start and found[start - 1].kind == "dot")):
            continue
        fields = []
        while index + 1 < len(found) and found[index].kind == "dot" and found[index + 1].kind == "word":
            fields.append(found[index + 1].text)
            index += 2
        if fields and index < len(found) and found[index].text == "(":
            fields.pop()
        if fields:
            chains.append(("" if computed else found[start].text, fields))
    return chains


def mentions(word: str, expression: str) -> bool:
    """Reports whether the expression has the name anywhere but after a dot."""
    return word in names_in(expression)


def names_in(expression: str) -> frozenset[str]:
    """The names anywhere but after a dot."""
    code = _significant_tokens(expression)
    return frozenset(
        token.text
        for before, token in itertools.pairwise([_NO_TOKEN, *code])
        if token.kind == "word" and before.kind != "dot"
    )


def calls(method: str, expression: str) -> bool:
    """Reports whether there is a call `….method(…)`."""
    found = _significant_tokens(expression)
    return any(
        found[index].kind == "dot" and found[index + 1] == Token("word", method) and found[index + 2].text == "("
        for index in range(len(found) - 2)
    )


def has_optionals(code: Sequence[Token]) -> bool:
    """True if an optional may be the value of a part of the expression, whose tokens are without white space."""
    return any(
        token.text == ".?"
        or (token.kind == "word" and token.text in _OPTIONALS)
        or (token.text == "?" and before.text == "[")
        for before, token in itertools.pairwise([_NO_TOKEN, *code])
    )


def rewrite_unsupported_calls(expression: str) -> str:
    """Rewrites calls that the library cannot evaluate as Kubernetes does. `f.validate(s)` and `format.named(s)` return
    optionals, `lists.range(n)` and `s.replace(a, b)` have no limit, and the operands of `includes` have any type.
    `has(a.b)` fails if `a` is null, and does not find typed fields, which are separate variables. `indexOf` cannot be
    declared for null, and a map of optionals would end the process."""
    if "has" in expression:
        expression = _rewrite_has(expression)
    if any(name in expression for name in ("validate", "named", "range", "includes", "replace")):
        expression = _rewrite_calls(expression)
    if "{" in expression and has_optionals(_significant_tokens(expression)):
        expression = _guard_maps(expression)
    return _rewrite_index_of(expression) if "ndexOf" in expression else expression


def _guard_maps(expression: str) -> str:
    """Lets each map literal fail if it contains an optional, anywhere: `format` cannot convert one to a string."""
    found = tokens(expression)
    code = [index for index, token in enumerate(found) if token.kind != "space"]
    brackets = [found[index] for index in code]
    texts = [token.text for token in found]
    for position, index in enumerate(code):
        if brackets[position].text != "{" or (end := closing(brackets, position)) is None:
            continue
        before = brackets[position - 1] if position else _NO_TOKEN
        if before.kind == "word" and before.text != "in":
            # a message, not a map
            continue
        texts[index] = f" optional.of({texts[index]}"
        texts[code[end]] += f").optMap({_MAP}, '%s'.format([{_MAP}]) == '' ? {_MAP} : {_MAP}).value()"
    return "".join(texts)


def _rewrite_index_of(expression: str) -> str:
    """Rewrites `a.indexOf(b)`, where b may be null, as a choice between two functions."""
    found = tokens(expression)
    places = [index for index, token in enumerate(found) if token.kind != "space"]
    code = [found[index] for index in places]

    def text(start: int, end: int) -> str:
        last = places[end] if end < len(places) else len(found)
        return "".join(token.text for token in found[places[start] if start < len(places) else last : last])

    for position in range(len(code) - 2, 1, -1):
        name, end = code[position].text, closing(code, position + 1)
        if name not in INDEX_OF_NULL or code[position - 1].text != "." or code[position + 1].text != "(" or end is None:
            continue
        argument = code[position + 2 : end]
        if not _may_be_null(argument):
            continue
        start = operand_start(code, position - 2)
        operand = text(start, position - 1)
        item = "dyn(null)" if argument == [_NULL] else text(position + 2, end)
        # an end of line ends a comment
        choice = f"dyn({_ITEM}) == null ? dyn({_TARGET}).{INDEX_OF_NULL[name]}() : {_TARGET}.{name}({_ITEM})"
        choice = f"optional.of({item}\n).optMap({_ITEM}, {choice}).value()"
        call = f"optional.of({operand}\n).optMap({_TARGET}, {choice}).value()"
        return _rewrite_index_of(f"{text(0, start)}{call}{text(end + 1, len(code))}")
    return expression


def _may_be_null(argument: Sequence[Token]) -> bool:
    """False for no argument, several, a literal, and the argument of a call that has been rewritten."""
    depth = 0
    for token in argument:
        depth += token.text in _PAIRS.values()
        depth -= token.text in _PAIRS
        if token.text == "," and depth == 0:
            return False
    return bool(argument) and (len(argument) > 1 or (argument[0].kind == "word" and argument[0].text != _ITEM))


def _rewrite_calls(expression: str) -> str:
    found = tokens(expression)
    code = [index for index, token in enumerate(found) if token.kind != "space"]
    called = [found[index] for index in code]
    texts = [token.text for token in found]
    before, after = [""] * len(found), [""] * len(found)
    for position, index in enumerate(code[:-1]):
        call = _rewrite_call(called, position)
        if call is None:
            continue
        before[code[call.start]] = call.opening + before[code[call.start]]
        texts[index] = call.name
        if call.joins_operands:
            texts[code[position - 1]], texts[code[position + 1]], texts[code[call.end]] = "), dyn(", "", ""
        after[code[call.end]] += call.closing
    return "".join(f"{head}{text}{tail}" for head, text, tail in zip(before, texts, after, strict=True))


def _rewrite_has(expression: str) -> str:
    """Rewrites `has(a.b.c)` as `'c' in a.b` if `a.b` is a map, else false."""
    found = tokens(expression)
    code = [index for index, token in enumerate(found) if token.kind != "space"]
    called = [found[index] for index in code]
    texts = [token.text for token in found]
    for position, index in enumerate(code[:-1]):
        chain = _has_argument(called, position)
        if not chain:
            continue
        operand, field = ".".join(chain[:-1]), chain[-1]
        test = f"(type(dyn({operand})) == map ? '{field}' in dyn({operand}) : false)"
        # a declared variable always exists
        texts[index] = "true" if operand == "variables" else test
        for each in range(index + 1, code[position + 2 * len(chain) + 1] + 1):
            texts[each] = ""
    return "".join(texts)


def _has_argument(code: Sequence[Token], position: int) -> list[str]:
    """The names of `has(a.b.c)`; empty if the argument is not a chain of names."""
    if code[position] != Token("word", "has") or (position and code[position - 1].kind == "dot"):
        return []
    end = closing(code, position + 1) if code[position + 1].text == "(" else None
    inside = code[position + 2 : end] if end is not None else []
    chained = all((token.kind == "word") if index % 2 == 0 else token.text == "." for index, token in enumerate(inside))
    return [token.text for token in inside[::2]] if chained and len(inside) % 2 == 1 and len(inside) >= 3 else []


_INCLUDES = (
    f")]).optMap({_PAIR}, type({_PAIR}[0]) == list ? {_PAIR}[1] in {_PAIR}[0] : {_PAIR}[0] == {_PAIR}[1]).value()"
)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call to rewrite: `opening` is inserted before the token at `start`, `closing` after the one at `end`."""

    start: int
    end: int
    opening: str
    name: str
    closing: str = ")"
    joins_operands: bool = False
    """`a.f(b)` becomes `a), dyn(b`, between `opening` and `closing`."""


def _rewrite_call(code: Sequence[Token], position: int) -> _Call | None:
    token = code[position]
    if token.kind != "word" or position < 2 or code[position + 1].text != "(" or code[position - 1].text != ".":
        return None
    end = closing(code, position + 1)
    if end is None:
        return None
    optional = "optional.ofNonZeroValue("
    match code[position - 2].text, token.text:
        case _, "replace":
            return _Call(position, end, "", REPLACE, "")
        case _, "validate":
            return _Call(operand_start(code, position - 2), end, optional, FORMAT_ERRORS)
        case _, "includes":
            return _Call(
                operand_start(code, position - 2), end, "optional.of([dyn(", "", _INCLUDES, joins_operands=True
            )
        case "format", "named":
            return _Call(position - 2, end, optional, NAMED_FORMAT.partition(".")[2])
        case "lists", "range" if end > position + 2:
            return _Call(position + 2, end - 1, f"{BOUNDED}(", "range")
    return None


def operand_start(code: Sequence[Token], position: int) -> int:
    """The start of the operand that ends at `position`: a chain of names, calls and indexes."""
    while True:
        if code[position].text in _PAIRS:
            position = _opening(code, position)
            before = code[position - 1] if position > 0 else _NO_TOKEN
            if (before.kind == "word" and before.text != "in") or before.text in _PAIRS:
                position -= 1
                continue
        if position >= 2 and code[position - 1].kind == "dot":
            position -= 2
            continue
        return position


def _opening(code: Sequence[Token], position: int) -> int:
    depth = 0
    for index in range(position, -1, -1):
        depth += code[index].text in _PAIRS
        depth -= code[index].text in _PAIRS.values()
        if depth == 0:
            return index
    return 0


def closing(code: Sequence[Token], position: int) -> int | None:
    """The index of the bracket that closes the one at `position`; None if there is none."""
    depth = 0
    for index in range(position, len(code)):
        depth += code[index].text in _PAIRS.values()
        depth -= code[index].text in _PAIRS
        if depth == 0:
            return index
    return None


# each question about an expression begins with them, and about one expression there are a dozen in a row
@functools.lru_cache(maxsize=4)
def _significant_tokens(expression: str) -> tuple[Token, ...]:
    return tuple(token for token in tokens(expression) if token.kind != "space")
