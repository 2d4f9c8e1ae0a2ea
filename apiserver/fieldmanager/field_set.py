"""Immutable sets of field paths with the operations of structured-merge-diff's fieldpath.Set, and their fieldsV1 form
(WIRE-G4, WIRE-G5, WIRE-G40)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apiserver.meta import field_path as fieldpath
from apiserver.meta.field_path import Path

# No object nests this deeply, so deeper sets are invalid.
_MAX_DEPTH = 256


class FieldSet:
    """A set of field paths. A path in the set does not imply the paths above or below it.

    `members` are path elements that end a path of the set; `children` map path elements to the set of paths below them.
    """

    __slots__ = ("children", "members")

    members: frozenset[str]
    children: Mapping[str, FieldSet]

    def __init__(self, members: Iterable[str] = (), children: Mapping[str, FieldSet] | None = None) -> None:
        self.members = frozenset(members)
        self.children = {element: each for element, each in (children or {}).items() if each}

    @classmethod
    def of(cls, paths: Iterable[Path]) -> FieldSet:
        """Returns the set of `paths` without the empty path, which stands for the whole object."""
        members: set[str] = set()
        below: dict[str, list[Path]] = {}
        for path in paths:
            if len(path) == 1:
                members.add(path[0])
            elif path:
                below.setdefault(path[0], []).append(path[1:])
        return cls(members, {element: cls.of(rest) for element, rest in below.items()})

    @classmethod
    def from_fields_v1(cls, document: Any) -> FieldSet:
        """Parses fieldsV1. Path elements of unknown kinds are dropped. Raises ValueError for an invalid document."""
        return _parse_node(document, 0)[0]

    def to_fields_v1(self) -> dict[str, Any]:
        """Returns the set as fieldsV1, with keys in canonical order (WIRE-G4)."""
        document: dict[str, Any] = {}
        for element in sorted(self.members | self.children.keys(), key=fieldpath.sort_key):
            below = self.children.get(element)
            node = below.to_fields_v1() if below is not None else {}
            document[element] = {".": {}, **node} if node and element in self.members else node
        return document

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSet):
            return NotImplemented
        return self.members == other.members and self.children == other.children

    def __hash__(self) -> int:
        return hash((self.members, frozenset(self.children.items())))

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(fieldpath.format_path(path) for path in self)})"

    def __iter__(self) -> Iterator[Path]:
        """Iterates over the paths; at each level the sorted members come before the children (the order of
        WIRE-G22)."""
        for element in sorted(self.members, key=fieldpath.sort_key):
            yield (element,)
        for element in sorted(self.children, key=fieldpath.sort_key):
            for path in self.children[element]:
                yield (element, *path)

    def __contains__(self, path: Path) -> bool:
        node = self
        for element in path[:-1]:
            node = node.with_prefix(element)
        return bool(path) and path[-1] in node.members

    def with_prefix(self, element: str) -> FieldSet:
        """Returns the paths that begin with `element`, without that element."""
        return self.children.get(element, EMPTY)

    def __or__(self, other: FieldSet) -> FieldSet:
        children = dict(self.children)
        for element, each in other.children.items():
            mine = children.get(element)
            children[element] = each if mine is None else mine | each
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        shared = self.children.keys() & other.children.keys()
        return FieldSet(
            self.members & other.members,
            {element: self.children[element] & other.children[element] for element in shared},
        )

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Returns the paths that are not in `other`. A path in `other` does not exclude the paths below it."""
        children = {element: each - other.with_prefix(element) for element, each in self.children.items()}
        return FieldSet(self.members - other.members, children)

    def recursive_difference(self, other: FieldSet) -> FieldSet:
        """Returns the paths that are neither in `other` nor below a path in `other`."""
        children = {
            element: each.recursive_difference(other.with_prefix(element))
            for element, each in self.children.items()
            if element not in other.members
        }
        return FieldSet(self.members - other.members, children)


EMPTY = FieldSet()


def _parse_node(document: Any, depth: int) -> tuple[FieldSet, bool]:
    """Returns the set in a node of fieldsV1, and True if the node itself is a member."""
    if not isinstance(document, dict):
        raise ValueError("a field set must be an object of objects")
    if depth > _MAX_DEPTH:
        raise ValueError("a field set is nested too deeply")
    members: set[str] = set()
    children: dict[str, FieldSet] = {}
    for text, node in document.items():
        if text == ".":
            continue
        element = fieldpath.parse_element(text)
        if element is None:
            continue
        below, is_member = _parse_node(node, depth + 1)
        if is_member:
            members.add(element)
        if below:
            children[element] = children.get(element, EMPTY) | below
    return FieldSet(members, children), "." in document or not (members or children)
