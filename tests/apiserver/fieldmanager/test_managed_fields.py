"""Entries of managedFields: their identity and their order."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.fieldmanager import managed_fields as managedfields

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"


def stored(*entries: tuple[str, str, str, str, str]) -> list[Any]:
    """managedFields with the given manager, operation, apiVersion, time and subresource of each entry."""
    names = ("manager", "operation", "apiVersion", "time", "subresource")
    named = [{key: value for key, value in zip(names, each, strict=True) if value} for each in entries]
    return [{**each, "fieldsType": "FieldsV1", "fieldsV1": {f"f:{n}": {}}} for n, each in enumerate(named)]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param(("m", "Update", "g/v1", "", ""), ("m", "Update", "g/v1", "", ""), True, id="one update manager"),
        pytest.param(("m", "Update", "g/v1", "", ""), ("m", "Update", "g/v2", "", ""), False, id="in two versions"),
        pytest.param(
            ("m", "Apply", "g/v1", "", ""), ("m", "Apply", "g/v2", "", ""), True, id="an applier in two versions"
        ),
        pytest.param(("m", "Apply", "g/v1", "", ""), ("m", "Update", "g/v1", "", ""), False, id="two operations"),
        pytest.param(("m", "Update", "g/v1", "", ""), ("m", "Update", "g/v1", "", "status"), False, id="subresource"),
        pytest.param(("m", "Update", "g/v1", "", ""), ("n", "Update", "g/v1", "", ""), False, id="two managers"),
        pytest.param(
            ("m", "Update", "g/v1", THEN, ""), ("m", "Update", "g/v1", NOW, ""), True, id="times do not matter"
        ),
    ],
)
def test_entries_of_one_identity_are_read_as_one(first: Any, second: Any, same: bool) -> None:
    assert len(managedfields.decode(stored(first, second))) == (1 if same else 2)


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
    assert managedfields.encode(managedfields.decode(in_order[::-1])) == in_order
