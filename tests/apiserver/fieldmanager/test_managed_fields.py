"""Entries of managedFields: which are one, and in which order they stand."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.fieldmanager import managed_fields as managers

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"


def stored(*given: tuple[str, str, str, str, str]) -> list[Any]:
    """Entries, each of manager, operation, apiVersion, time and subresource."""
    names = ("manager", "operation", "apiVersion", "time", "subresource")
    known = [{key: value for key, value in zip(names, each, strict=True) if value} for each in given]
    return [{**each, "fieldsType": "FieldsV1", "fieldsV1": {f"f:{n}": {}}} for n, each in enumerate(known)]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param(("m", "Update", "g/v1", "", ""), ("m", "Update", "g/v1", "", ""), True, id="one updater"),
        pytest.param(("m", "Update", "g/v1", "", ""), ("m", "Update", "g/v2", "", ""), False, id="in two versions"),
        pytest.param(("m", "Apply", "g/v1", "", ""), ("m", "Apply", "g/v2", "", ""), True, id="an applier in two"),
        pytest.param(("m", "Apply", "g/v1", "", ""), ("m", "Update", "g/v1", "", ""), False, id="two operations"),
        pytest.param(("m", "Update", "g/v1", "", ""), ("m", "Update", "g/v1", "", "status"), False, id="subresource"),
        pytest.param(("m", "Update", "g/v1", "", ""), ("n", "Update", "g/v1", "", ""), False, id="two managers"),
        pytest.param(("m", "Update", "g/v1", THEN, ""), ("m", "Update", "g/v1", NOW, ""), True, id="whenever it was"),
    ],
)
def test_an_entry_is_known_by_its_identity(first: Any, second: Any, same: bool) -> None:
    assert len(managers.decode(stored(first, second))) == (1 if same else 2)


def test_entries_are_sorted_by_operation_then_time_then_names() -> None:
    in_order = stored(
        ("z", "Apply", "g/v1", THEN, ""),
        ("a", "Apply", "g/v1", NOW, ""),
        ("z", "Update", "g/v1", "", ""),
        ("a", "Update", "g/v1", THEN, ""),
        ("b", "Update", "g/v1", THEN, ""),
        ("b", "Update", "g/v2", THEN, ""),
        ("b", "Update", "g/v2", THEN, "status"),
        ("aa", "Update", "g/v1", NOW, ""),
    )
    assert managers.encode(managers.decode(in_order[::-1])) == in_order
