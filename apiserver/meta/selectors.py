"""Label and field selectors, and how they are parsed (WIRE-D56, WIRE-D57)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Final

from apiserver.meta.errors import BadRequest
from apiserver.meta.label_validation import label_value_errors, qualified_name_errors
from apiserver.meta.resource import METADATA_FIELDS
from apiserver.meta.selector_matching import MATCH_EVERYTHING, L, Matcher, Requirement, int64

__all__ = [
    "MAX_REQUIREMENTS",
    "MAX_SELECTOR_LENGTH",
    "NAME",
    "NAMESPACE",
    "FieldSelector",
    "LabelSelector",
    "Requirement",
    "check_supported",
    "parse_field_selector",
    "parse_label_selector",
]

NAME, NAMESPACE = METADATA_FIELDS

MAX_SELECTOR_LENGTH: Final = 16 * 1024
"""The characters of a selector in a request: a thousand names in one `in`."""
MAX_REQUIREMENTS: Final = 100
"""The requirements of a selector in a request. Each event is compared with the selector of every watch."""

_TOKEN = re.compile(r"(?P<symbol>!=|==|[=!(),<>])|(?P<word>[^ \t\r\n=!(),<>]+)")
_BINARY = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_OPERATORS_TEXT = "in, notin, =, ==, !=, gt, lt"
_FIELD_TERM = re.compile(r"(?P<key>.*?)(?P<operator>!=|==|=)(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Selector:
    """Requirements that must all match. Without requirements everything matches."""

    requirements: tuple[Requirement, ...] = ()
    _matcher: Matcher = field(init=False, repr=False, compare=False, default=MATCH_EVERYTHING)

    def __post_init__(self) -> None:
        if self.requirements:
            object.__setattr__(self, "_matcher", Matcher(self.requirements))

    @property
    def empty(self) -> bool:
        return not self.requirements

    def matches(self, values: Mapping[str, str]) -> bool:
        return self._matcher.matches(values)


@dataclass(frozen=True, slots=True)
class LabelSelector(_Selector):
    def select(self, objects: Iterable[L]) -> list[L]:
        """Returns the objects whose labels match."""
        return self._matcher.select(objects)


@dataclass(frozen=True, slots=True)
class FieldSelector(_Selector):
    """The operators are In and NotIn, with one value each."""

    def exact(self, key: str) -> str | None:
        """Returns the value that the selector requires for `key`, None if it requires none."""
        for requirement in self.requirements:
            if requirement.key == key and requirement.operator == "In":
                return requirement.values[0]
        return None


def parse_label_selector(text: str) -> LabelSelector:
    """Raises BadRequest, also for a selector that is too long (ATTACK-19)."""
    if not text:
        return LabelSelector()
    _check_length(text)
    return LabelSelector(_LabelParser(text).parse())


def parse_field_selector(text: str, supported: Collection[str] | None = METADATA_FIELDS) -> FieldSelector:
    """Raises BadRequest, also for a selector that is too long (ATTACK-19), and for a field that is not in `supported`;
    None supports every field."""
    if not text:
        return FieldSelector()
    _check_length(text)
    terms = _split_terms(text)
    if len(terms) > MAX_REQUIREMENTS:
        raise _too_many_requirements()
    requirements = []
    for term in sorted(terms):
        found = _FIELD_TERM.fullmatch(term)
        if found is None:
            raise BadRequest(f"invalid selector: '{text}'; can't understand '{term}'")
        operator, value = "NotIn" if found["operator"] == "!=" else "In", _unescape(found["value"])
        # as in Kubernetes, a term of an operator alone matches everything
        if found["key"] or value:
            requirements.append(Requirement(found["key"], operator, (value,)))
    selector = FieldSelector(tuple(requirements))
    if supported is not None:
        check_supported(selector, supported)
    return selector


def check_supported(selector: FieldSelector, supported: Collection[str]) -> None:
    """Raises BadRequest for a field that is not in `supported`."""
    for requirement in selector.requirements:
        if requirement.key not in supported:
            raise BadRequest(_unsupported(requirement.key, supported))


def _check_length(text: str) -> None:
    if len(text) > MAX_SELECTOR_LENGTH:
        raise BadRequest(f"a selector may have at most {MAX_SELECTOR_LENGTH} characters")


def _too_many_requirements() -> BadRequest:
    return BadRequest(f"a selector may have at most {MAX_REQUIREMENTS} requirements")


def _unsupported(field: str, supported: Collection[str]) -> str:
    """The text for kinds with selectable fields of their own differs from that of the other kinds."""
    if not set(supported) <= set(METADATA_FIELDS):
        return f"field label not supported: {field}"
    quoted = ", ".join(f'"{each}"' for each in supported)
    return f'"{field}" is not a known field selector: only {quoted}'


def _split_terms(text: str) -> list[str]:
    """Splits at unescaped commas and drops empty terms."""
    return [term for term in re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL) if term]


def _unescape(value: str) -> str:
    plain = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "=") or not escaped:
                raise BadRequest(f"invalid field selector: invalid escape sequence: \\{escaped}")
            plain.append(escaped)
        elif character in ",=":
            # Go prints the number of the rune
            raise BadRequest(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            plain.append(character)
    return "".join(plain)


_END: Final = ("", "")


class _LabelParser:
    """A parser with one token of look-ahead. A token is (symbol, text); the symbol of identifiers is 'word', of the end
    ''."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._token = next(self._tokens)

    def parse(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        while True:
            symbol, text = self._peek()
            if not symbol:
                return tuple(requirements)
            if symbol not in ("word", "!"):
                raise BadRequest(f"found '{text}', expected: !, identifier, or 'end of string'")
            if len(requirements) == MAX_REQUIREMENTS:
                raise _too_many_requirements()
            requirements.append(self._requirement())
            symbol, text = self._next()
            if not symbol:
                return tuple(requirements)
            if symbol != ",":
                raise BadRequest(f"found '{text}', expected: ',' or 'end of string'")
            symbol, text = self._peek()
            if symbol not in ("word", "!"):
                raise BadRequest(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        negated = self._peek()[0] == "!"
        if negated:
            self._next()
        symbol, key = self._next()
        if symbol != "word":
            raise _parse_error(f"found '{key}', expected: identifier")
        if errors := qualified_name_errors(key):
            # kube-apiserver formats a nil field path here
            raise _parse_error(f"<nil>: {_invalid_value(key, errors)}")
        if negated:
            return Requirement(key, "DoesNotExist")
        if self._peek()[0] in ("", ","):
            return Requirement(key, "Exists")
        return self._binary(key)

    def _binary(self, key: str) -> Requirement:
        _, text = self._next()
        operator = _BINARY.get(text)
        if operator is None:
            raise _parse_error(f"found '{text}', expected: {_OPERATORS_TEXT}")
        values = tuple(sorted(self._set() if text in ("in", "notin") else {self._value()}))
        problems = []
        if operator in ("Gt", "Lt") and int64(values[0]) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            problems.append(f"values[0]: {_invalid_value(values[0], [why])}")
        for index, value in enumerate(values):
            if errors := label_value_errors(value):
                problems.append(f"values[{index}][{key}]: {_invalid_value(value, errors)}")
        if problems:
            raise _parse_error(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        return Requirement(key, operator, values)

    def _value(self) -> str:
        symbol, text = self._peek()
        if symbol in ("", ","):
            return ""
        self._next()
        if symbol != "word":
            raise _parse_error(f"found '{text}', expected: identifier")
        return text

    def _set(self) -> set[str]:
        symbol, text = self._next()
        if symbol != "(":
            raise _parse_error(f"found '{text}' expected: '('")
        symbol, text = self._peek()
        if symbol == ")":
            self._next()
            return {""}
        if symbol not in ("word", ","):
            raise _parse_error(f"found '{text}', expected: ',', ')' or identifier")
        return self._set_values()

    def _set_values(self) -> set[str]:
        """The values up to the closing parenthesis; the one before, between or after two commas may be empty."""
        values: set[str] = set()
        while True:
            symbol, text = self._next()
            if symbol not in ("word", ","):
                raise _parse_error(f"found '{text}', expected: ',', or identifier")
            following, text_after = self._peek()
            if symbol == "word":
                values.add(text)
                if following not in (",", ")"):
                    raise _parse_error(f"found '{text_after}', expected: ',' or ')'")
            elif not values or following in (",", ")"):
                values.add("")
            if following == ")":
                self._next()
                return values

    def _peek(self) -> tuple[str, str]:
        return self._token

    def _next(self) -> tuple[str, str]:
        token, self._token = self._token, next(self._tokens)
        return token


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(text):
        yield found["symbol"] or "word", found[0]
    yield from repeat(_END)


def _parse_error(why: str) -> BadRequest:
    return BadRequest(f"unable to parse requirement: {why}")


def _invalid_value(value: str, errors: Sequence[str]) -> str:
    return f"Invalid value: {json.dumps(value, ensure_ascii=False)}: {'; '.join(errors)}"
