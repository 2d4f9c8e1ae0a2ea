"""Compares two values of one type; the differences are sets of fields (WIRE-G7, WIRE-G9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.fieldmanager.field_set import FieldSet
from apiserver.fieldmanager.typed.types import ABSENT, Atom, ListType, MapType
from apiserver.json.values import equal
from apiserver.meta import field_path as fieldpath
from apiserver.meta.field_path import Path


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields that the new value removes, modifies and adds."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def modified_or_added(self) -> FieldSet:
        """The fields that the new value sets."""
        return self.modified | self.added

    def exclude_fields(self, fields: FieldSet) -> Comparison:
        return Comparison(
            self.removed.recursive_difference(fields),
            self.modified.recursive_difference(fields),
            self.added.recursive_difference(fields),
        )


def compare(atom: Atom, old: Any, new: Any) -> Comparison:
    """Compares `old` and `new`. Both should match the type: list items without an identity are ignored."""
    walker = _CompareWalker()
    walker.compare(atom, old, new, ())
    return Comparison(FieldSet.of(walker.removed), FieldSet.of(walker.modified), FieldSet.of(walker.added))


class _CompareWalker:
    """Walks two values in parallel and collects the paths that differ."""

    def __init__(self) -> None:
        self.removed: list[Path] = []
        self.modified: list[Path] = []
        self.added: list[Path] = []

    def compare(self, atom: Atom, old: Any, new: Any, path: Path) -> None:
        old_form, new_form = atom.deduce_atom(old), atom.deduce_atom(new)
        if new is ABSENT:
            leaf = self._compare_form(old_form, old, new, path)
        else:
            if old is not ABSENT and old_form is not new_form:
                # the value changes its form: fields of the old form are removed, those of the new form are added
                self._compare_form(old_form, old, new, path)
            leaf = self._compare_form(new_form, old, new, path)
        if not leaf:
            self._record_presence(old, new, path)

    def _compare_form(self, form: Atom, old: Any, new: Any, path: Path) -> bool:
        """Records the differences in one form. Returns True if the value is a leaf in this form."""
        if form.map_type is not None:
            return self._compare_maps(form.map_type, old, new, path)
        if form.list_type is not None and form.scalar is None:
            return self._compare_lists(form.list_type, old, new, path)
        return self._compare_leaf(old, new, path)

    def _compare_leaf(self, old: Any, new: Any, path: Path) -> bool:
        self._record_presence(old, new, path)
        if old is not ABSENT and new is not ABSENT and not equal(old, new):
            self.modified.append(path)
        return True

    def _record_presence(self, old: Any, new: Any, path: Path) -> None:
        if old is ABSENT:
            self.added.append(path)
        elif new is ABSENT:
            self.removed.append(path)

    def _compare_maps(self, map_type: MapType, old: Any, new: Any, path: Path) -> bool:
        before = old if isinstance(old, dict) else {}
        after = new if isinstance(new, dict) else {}
        if map_type.atomic or not (before or after):
            return self._compare_leaf(old, new, path)
        for name in before | after:
            child = map_type.value_atom(name)
            if child is not None:
                self.compare(
                    child, before.get(name, ABSENT), after.get(name, ABSENT), (*path, fieldpath.field_element(name))
                )
        return False

    def _compare_lists(self, list_type: ListType, old: Any, new: Any, path: Path) -> bool:
        before = old if isinstance(old, list) else []
        after = new if isinstance(new, list) else []
        if not list_type.associative or not (before or after):
            return self._compare_leaf(old, new, path)
        old_items, new_items = _group_by_element(list_type, before), _group_by_element(list_type, after)
        for element in old_items | new_items:
            self._compare_items(
                list_type.item_atom, old_items.get(element, []), new_items.get(element, []), (*path, element)
            )
        return False

    def _compare_items(self, child: Atom, old: Sequence[Any], new: Sequence[Any], path: Path) -> None:
        """Compares items with one identity. Several of them (duplicates) count as one leaf."""
        if len(old) <= 1 and len(new) <= 1:
            self.compare(child, old[0] if old else ABSENT, new[0] if new else ABSENT, path)
        elif len(old) > 1 and len(new) > 1:
            if not equal(list(old), list(new)):
                self.modified.append(path)
        elif len(old) > 1:
            if new:
                self.compare(child, ABSENT, new[0], path)
            self.removed.append(path)
        else:
            if old:
                self.compare(child, old[0], ABSENT, path)
            self.added.append(path)


def _group_by_element(list_type: ListType, items: Sequence[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for element, item in list_type.with_path_elements(items):
        groups.setdefault(element, []).append(item)
    return groups
