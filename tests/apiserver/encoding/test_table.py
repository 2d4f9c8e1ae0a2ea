"""Columns, rows and ages of tables (WIRE-E11 to WIRE-E14)."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.encoding.table import age_cell, column_definitions, human_duration, include_object, unchanged_until
from apiserver.encoding.transforms import PartialView, TableView, View, WholeView, list_metadata
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Age, Column, Object, Resource

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


def sizes(obj: Object) -> list[object]:
    return [obj["spec"]["size"], obj["spec"]["size"] > 1]


THINGS = Resource(
    group="g.example.org",
    version="v1",
    kind="Thing",
    plural="things",
    singular="thing",
    namespaced=True,
    columns=(Column("Size", type="integer"), Column("Large", type="boolean", priority=1)),
    cells=sizes,
)


def thing(spec: Any) -> Object:
    return {
        "apiVersion": "g.example.org/v1",
        "kind": "Thing",
        "metadata": {
            "name": "x",
            "namespace": "a",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
    }


NEW_YEAR = 1767225600
THING = thing({"size": 1})
PARTIAL_THING = {
    "kind": "PartialObjectMetadata",
    "apiVersion": "meta.k8s.io/v1",
    "metadata": THING["metadata"],
}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(-2, "<invalid>", id="the future"),
        pytest.param(-1, "0s", id="a clock a little behind"),
        pytest.param(0, "0s", id="now"),
        pytest.param(119, "119s", id="two minutes less a second"),
        pytest.param(2 * MINUTE, "2m", id="two minutes"),
        pytest.param(5 * MINUTE + 3, "5m3s", id="minutes and seconds"),
        pytest.param(10 * MINUTE + 3, "10m", id="ten minutes"),
        pytest.param(3 * HOUR - 1, "179m", id="three hours less a second"),
        pytest.param(3 * HOUR, "3h", id="three hours"),
        pytest.param(7 * HOUR + 59 * MINUTE, "7h59m", id="hours and minutes"),
        pytest.param(8 * HOUR + 59 * MINUTE, "8h", id="eight hours"),
        pytest.param(47 * HOUR, "47h", id="nearly two days"),
        pytest.param(3 * DAY + 4 * HOUR, "3d4h", id="days and hours"),
        pytest.param(7 * DAY, "7d", id="whole days"),
        pytest.param(8 * DAY + HOUR, "8d", id="eight days"),
        pytest.param(2 * YEAR - 1, "729d", id="nearly two years"),
        pytest.param(2 * YEAR + 5 * DAY, "2y5d", id="years and days"),
        pytest.param(8 * YEAR + 5 * DAY, "8y", id="eight years"),
    ],
)
def test_durations_have_the_format_of_kubectl(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


@given(st.integers(-10, 10 * 365 * 86400), st.floats(0, 0.999))
@example(119, 0.0)
@example(2 * 86400 - 1, 0.0)
def test_a_row_is_unchanged_until_its_age_changes(seconds: int, fraction: float) -> None:
    created = 1_700_000_000
    now = created + seconds + fraction
    until = unchanged_until([row_of(created)], now)
    assert until > now
    assert age_cell(created, until - 1) == age_cell(created, now)
    if seconds >= 0:
        assert age_cell(created, until) != age_cell(created, now)


def test_rows_are_unchanged_until_the_first_of_their_ages_changes() -> None:
    created, now = 1_700_000_000, 1_700_003_600
    assert unchanged_until([row_of(created), row_of(created + 10)], now) == now + 10
    assert unchanged_until([row_of(0)], now) == math.inf
    assert unchanged_until([], now) == math.inf


def row_of(created: int) -> CachedObject:
    """An object created at `created`; without a creationTimestamp if it is 0."""
    at = datetime.fromtimestamp(created, UTC).isoformat() if created else None
    return encode(THINGS, {"metadata": {"name": "x", "creationTimestamp": at}, "spec": {"size": 1}})


def test_an_object_without_creation_timestamp_has_an_unknown_age() -> None:
    assert age_cell(0, NEW_YEAR) == b"<unknown>"


def test_every_column_definition_has_all_keys() -> None:
    columns = json.loads(column_definitions(THINGS))
    assert [column["name"] for column in columns] == ["Name", "Size", "Age", "Large"]
    assert all(set(column) == {"name", "type", "format", "description", "priority"} for column in columns)
    assert columns[0]["format"] == "name"
    assert [column["priority"] for column in columns] == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("include", "row_object"),
    [
        pytest.param("None", None, id="nothing"),
        pytest.param(
            "Metadata",
            {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1beta1",
                "metadata": thing({})["metadata"],
            },
            id="metadata",
        ),
        pytest.param("Object", thing({"size": 2}), id="the object"),
    ],
)
def test_an_object_is_rendered_as_a_table(include: str, row_object: Object | None) -> None:
    view = TableView(THINGS, "v1beta1", include)
    table = json.loads(view.single(encode(THINGS, thing({"size": 2})), NEW_YEAR + 5 * MINUTE))
    assert table == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1beta1",
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": json.loads(column_definitions(THINGS)),
        "rows": [{"cells": ["x", 2, "5m", True], "object": row_object}],
    }


@pytest.mark.parametrize(("include", "content"), [("None", None), ("Metadata", PARTIAL_THING), ("Object", THING)])
@pytest.mark.parametrize(
    ("cells", "row"),
    [
        ([], []),
        (["a", 2, None], ["a", 2, None]),
        ([Age(NEW_YEAR)], ["5m"]),
        ([Age(NEW_YEAR), "a"], ["5m", "a"]),
        (["a", Age(NEW_YEAR), "b"], ["a", "5m", "b"]),
        ([Age(0), Age(NEW_YEAR), '"', Age(NEW_YEAR)], ["<unknown>", "5m", '"', "5m"]),
    ],
)
def test_rows_have_cells_and_ages_in_any_order(
    cells: list[object], row: list[object], include: str, content: Object | None
) -> None:
    columns = tuple(Column(f"C{number}") for number in range(len(cells)))
    resource = replace(THINGS, replaces_default_columns=True, columns=columns, cells=lambda obj: cells)
    objects = [encode(resource, THING)] * 3
    rows = json.loads(b"[" + TableView(resource, include=include).items(objects, NEW_YEAR + 5 * MINUTE) + b"]")
    assert rows == [{"cells": row, "object": content}] * 3


@pytest.mark.parametrize("view", [WholeView(THINGS), PartialView(), TableView(THINGS)])
def test_no_objects_are_no_items(view: View) -> None:
    assert view.items([], NEW_YEAR) == b""


def test_later_tables_of_a_watch_do_not_repeat_the_columns() -> None:
    table = json.loads(TableView(THINGS).for_next_event().single(encode(THINGS, thing({"size": 1})), NEW_YEAR))
    assert table["columnDefinitions"] is None
    assert table["rows"][0]["cells"] == ["x", 1, "0s", False]


def test_an_object_whose_cells_fail_has_a_row_with_its_name(caplog: pytest.LogCaptureFixture) -> None:
    row = json.loads(TableView(THINGS).items([encode(THINGS, thing("no mapping"))], NEW_YEAR))
    assert row["cells"] == ["x", None, "0s", None]
    assert "no table cells for things.g.example.org x" in caplog.text


def test_a_bookmark_is_a_table_whose_row_has_the_version() -> None:
    table = json.loads(TableView(THINGS).bookmark(list_metadata(9)))
    assert table["metadata"] == {"resourceVersion": "9"}
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
    assert table["rows"][0]["object"]["metadata"] == {"resourceVersion": "9"}


def test_partial_metadata_is_all_of_the_metadata_and_nothing_else() -> None:
    partial = json.loads(PartialView().items([encode(THINGS, thing({"size": 1}))], NEW_YEAR))
    assert partial == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": thing({})["metadata"],
    }


def test_the_whole_object_is_what_was_encoded() -> None:
    assert json.loads(WholeView(THINGS).items([encode(THINGS, thing({"size": 3}))], 0)) == thing({"size": 3})


@pytest.mark.parametrize("value", ["", "None", "Metadata", "Object"])
def test_include_object_defaults_to_metadata(value: str) -> None:
    assert include_object(value) == (value or "Metadata")


def test_an_unknown_include_object_is_rejected() -> None:
    with pytest.raises(BadRequest) as error:
        include_object("x")
    assert error.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "x": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )
