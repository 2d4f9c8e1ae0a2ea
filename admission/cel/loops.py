"""Rewrites the loops of an expression as calls of functions that evaluate them piece by piece. Pure; untyped.

The CEL library (0.1.3) ends an evaluation after 9,999 iterations, takes time quadratic in the length of a list that
`map` or `filter` builds, and cannot be interrupted. Each piece is an evaluation of its own (piecewise.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from admission.cel.tokenizer import Token, closing, has_optionals, mentions, names_in, operand_start, tokens

TEST, LIST = "kubernetesTest", "kubernetesList"
"""`f(number of the loop, its range, variables of the loops around it)`: a bool, or a list."""
PIECE, OUTER, FIRST = "kubernetesPiece", "kubernetesOuter", "kubernetesFirst"
"""In the text for a piece: the piece, `f(n)` a variable of a loop around it, and the index of the piece's first
element."""


class LoopResult(Enum):
    """The result of a loop, and that of its text for one piece."""

    ALL = "all"
    EXISTS = "exists"
    ONE = "one"
    """A bool; for a piece, the number of elements that were found."""
    ELEMENTS = "elements"
    """A list; for a piece, its part of the list."""
    SORTED = "sorted"
    """The range sorted; for a piece, the keys."""


@dataclass(frozen=True, slots=True)
class PieceText:
    """`of_list` and `of_map` are the text for a piece of either range. The loops inside are rewritten as well, except
    in `plain`, which is None if one of those builds a list."""

    of_list: str
    of_map: str
    plain: PieceText | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    result: LoopResult
    text: PieceText
    of_pairs: bool
    """The loop has two variables: keys and values of a map, indexes and elements of a list."""
    nested: bool
    """The loop has loops inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopShape:
    """The properties of an expression that determine its running time: the depth of its loops (0 if it has none), and
    whether one of them builds a list."""

    depth: int = 0
    builds_list: bool = False
    splits_text: bool = False
    """A function makes a list of the characters or parts of a string."""
    flattens: bool = False
    unbounded: bool = False
    """A list may be longer than everything that the expression reads."""
    unsupported: bool = False
    """Values may occur that cannot be passed to pieces: unsigned integers, which Python does not distinguish from
    others, or maps of optionals, at which the library ends the process."""
    literals: int = 0
    """No list or map in the text is longer."""


def _has_unsigned(code: Sequence[Token]) -> bool:
    return any(token == _UINT or (token.kind == "number" and token.text[-1] in "uU") for token in code)


def union_of_shapes(shapes: Iterable[LoopShape]) -> LoopShape:
    """The shape of expressions that may read each other's results."""
    found = list(shapes)
    return LoopShape(
        depth=max((each.depth for each in found), default=0),
        builds_list=any(each.builds_list for each in found),
        splits_text=any(each.splits_text for each in found),
        flattens=any(each.flattens for each in found),
        unbounded=any(each.unbounded for each in found),
        unsupported=any(each.unsupported for each in found),
        literals=max((each.literals for each in found), default=0),
    )


@dataclass(slots=True)
class SplitExpression:
    """`text` is the expression with its loops rewritten; a call names its loop by the index in `loops`."""

    text: str = ""
    loops: list[Loop] = field(default_factory=list)


# the results of macros, by name and number of arguments; the second column is the number of variables
_MACROS = {
    ("all", 2): (LoopResult.ALL, 1),
    ("all", 3): (LoopResult.ALL, 2),
    ("exists", 2): (LoopResult.EXISTS, 1),
    ("exists", 3): (LoopResult.EXISTS, 2),
    ("exists_one", 2): (LoopResult.ONE, 1),
    ("exists_one", 3): (LoopResult.ONE, 2),
    ("existsOne", 2): (LoopResult.ONE, 1),
    ("existsOne", 3): (LoopResult.ONE, 2),
    ("filter", 2): (LoopResult.ELEMENTS, 1),
    ("map", 2): (LoopResult.ELEMENTS, 1),
    ("map", 3): (LoopResult.ELEMENTS, 1),
    ("transformList", 3): (LoopResult.ELEMENTS, 2),
    ("transformList", 4): (LoopResult.ELEMENTS, 2),
    ("sortBy", 2): (LoopResult.SORTED, 1),
}
_NAMES = frozenset(name for name, _ in _MACROS)
_LISTS = (LoopResult.ELEMENTS, LoopResult.SORTED)
_WORDY = frozenset(("word", "number", "string"))
_UINT = Token("word", "uint")
_SPLITTING = frozenset(("split", "findAll"))


def split_loops(expression: str) -> SplitExpression:
    found = SplitExpression()
    found.text = _rewrite(_code(expression), (), found.loops)
    return found


def loop_shape(expression: str) -> LoopShape:
    code = _code(expression)
    called = {code[index - 1].text for index, token in enumerate(code) if index and token.text == "("}
    calls = _calls(code)
    return LoopShape(
        depth=_depth(code),
        builds_list=any(call.result in _LISTS for call in calls),
        splits_text=not _SPLITTING.isdisjoint(called),
        flattens="flatten" in called,
        unbounded="range" in called,
        unsupported=_has_unsigned(code) or (any(token.text == "{" for token in code) and has_optionals(code)),
        literals=sum(token.text == "," for token in code),
    )


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a macro: the indexes of the first token of its range, of its name, and of its closing parenthesis."""

    start: int
    name: int
    end: int
    macro: str
    result: LoopResult
    variables: tuple[str, ...]
    arguments: tuple[Sequence[Token], ...]
    """Without the variables."""


def _code(expression: str) -> list[Token]:
    """The tokens without white space and comments."""
    return [token for token in tokens(expression) if token.kind != "space"]


def _calls(code: Sequence[Token]) -> list[_Call]:
    """All calls of macros, outer ones before those in their arguments."""
    found = (_call(code, index) for index, token in enumerate(code) if token.kind == "word" and token.text in _NAMES)
    return [each for each in found if each is not None]


def _call(code: Sequence[Token], name: int) -> _Call | None:
    if name < 2 or code[name - 1].text != "." or name + 1 >= len(code) or code[name + 1].text != "(":
        return None
    end = closing(code, name + 1)
    arguments = _arguments(code[name + 2 : end]) if end is not None else []
    found = _MACROS.get((code[name].text, len(arguments)))
    if found is None or end is None:
        return None
    result, count = found
    if any(len(each) != 1 or each[0].kind != "word" for each in arguments[:count]):
        return None
    variables = tuple(each[0].text for each in arguments[:count])
    return _Call(operand_start(code, name - 2), name, end, code[name].text, result, variables, tuple(arguments[count:]))


def _arguments(code: Sequence[Token]) -> list[Sequence[Token]]:
    arguments: list[Sequence[Token]] = []
    depth = start = 0
    for index, token in enumerate(code):
        depth += token.text in ("(", "[", "{")
        depth -= token.text in (")", "]", "}")
        if token.text == "," and depth == 0:
            arguments.append(code[start:index])
            start = index + 1
    return [*arguments, code[start:]]


def _depth(code: Sequence[Token]) -> int:
    return max((1 + max(map(_depth, call.arguments)) for call in _calls(code)), default=0)


def _rewrite(code: Sequence[Token], scope: tuple[str, ...], loops: list[Loop]) -> str:
    """Returns the text with its outermost loops rewritten, and adds all loops to `loops`. `scope` are the variables of
    the loops around it."""
    texts = [token.text for token in code]
    done = 0
    for call in _calls(code):
        if call.name < done:
            # an argument of the loop before, which has been rewritten with it
            continue
        done = call.end
        range_text = _join(code, texts, call.start, call.name - 1)
        captured = _captured(call, scope)
        number = len(loops)
        _add_loop(call, captured, (*scope, *call.variables), loops)
        function = LIST if call.result in _LISTS else TEST
        texts[call.start] = f"{function}({number}, {range_text}, [{', '.join(captured)}])"
        texts[call.start + 1 : call.end + 1] = [""] * (call.end - call.start)
    return _join(code, texts, 0, len(code))


def _add_loop(call: _Call, captured: Sequence[str], scope: tuple[str, ...], loops: list[Loop]) -> None:
    """Adds the loop, and after it the loops inside. `scope` includes its own variables."""
    plain = _piece_text(
        call, captured, [_join(each, [token.text for token in each], 0, len(each)) for each in call.arguments], None
    )
    number = len(loops)
    of_pairs = len(call.variables) == 2
    loops.append(Loop(call.result, plain, of_pairs=of_pairs, nested=False))
    inner = [inner_call for each in call.arguments for inner_call in _calls(each)]
    if inner:
        intact = None if any(each.result in _LISTS for each in inner) else plain
        rewritten = [_rewrite(each, scope, loops) for each in call.arguments]
        loops[number] = Loop(
            call.result, _piece_text(call, captured, rewritten, intact), of_pairs=of_pairs, nested=True
        )


def _piece_text(call: _Call, captured: Sequence[str], arguments: Sequence[str], plain: PieceText | None) -> PieceText:
    def with_captured(text: str) -> str:
        for index, name in enumerate(captured):
            text = f"optional.of({OUTER}({index})).optMap({name}, {text}).value()"
        return text

    of_map = _macro_text(call, arguments)
    if len(call.variables) == 1:
        return PieceText(with_captured(of_map), with_captured(of_map), plain)
    index = call.variables[0]
    shifted = f"optional.of({index} + {FIRST}()).optMap({index}, "
    of_list = _macro_text(call, [f"{shifted}{each}).value()" if mentions(index, each) else each for each in arguments])
    return PieceText(with_captured(of_list), with_captured(of_map), plain)


def _macro_text(call: _Call, arguments: Sequence[str]) -> str:
    """The call of the macro for a piece."""
    macro, more = call.macro, ""
    if call.result is LoopResult.SORTED:
        macro = "map"
    elif call.result is LoopResult.ONE:
        macro, more = ("filter", ".size()") if len(call.variables) == 1 else ("transformList", ".size()")
        arguments = [*arguments, "true"] if len(call.variables) == 2 else arguments
    return f"{PIECE}().{macro}({', '.join((*call.variables, *arguments))}){more}"


def _captured(call: _Call, scope: Sequence[str]) -> list[str]:
    """The variables of the loops around the call that its arguments read."""
    text = " ".join(token.text for each in call.arguments for token in each)
    names = names_in(text)
    return [name for name in dict.fromkeys(scope) if name in names]


def _join(code: Sequence[Token], texts: Sequence[str], start: int, end: int) -> str:
    """Joins the texts of tokens. Only two words, numbers or strings in a row need a space between them."""
    pieces: list[str] = []
    wordy = False
    for token, text in zip(code[start:end], texts[start:end], strict=True):
        if text:
            is_wordy = token.kind in _WORDY or text is not token.text
            pieces.append(f" {text}" if wordy and is_wordy else text)
            wordy = is_wordy
    return "".join(pieces)
