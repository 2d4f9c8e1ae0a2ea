"""Encoded objects: the values that are available without parsing, and their memory."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.encoding.encoded_object import at_version, encode, to_json
from apiserver.meta.resource import Age, Column, Key, Object, Resource, fields_at

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)


def thing(**metadata: object) -> Object:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", **metadata}}


def test_reads_need_no_parsing() -> None:
    obj = encode(
        THINGS,
        thing(
            namespace="a",
            resourceVersion="12",
            uid="u",
            labels={"l": "1"},
            creationTimestamp="1970-01-01T00:01:00Z",
        ),
    )
    assert (obj.key, obj.rv, obj.uid, obj.labels) == (Key("a", "x"), 12, "u", {"l": "1"})
    assert obj.cells == (b'["x","', 60, b'"]')


def test_an_object_without_server_fields_can_be_encoded() -> None:
    obj = encode(THINGS, thing())
    assert (obj.key, obj.rv, obj.uid, obj.labels) == (Key("", "x"), 0, "", {})
    assert obj.cells == (b'["x","', 0, b'"]')


def test_custom_columns_may_have_ages_at_any_position() -> None:
    columns = (Column("Seen"), Column("What"), Column("Count", "integer"), Column("First"), Column("Last"))
    resource = replace(
        THINGS, replaces_default_columns=True, columns=columns, cells=lambda obj: [Age(1), "a", 2, Age(3), Age(4)]
    )
    assert encode(resource, thing()).cells == (b'["', 1, b'","a",2,"', 3, b'","', 4, b'"]')


def test_selectable_fields_are_extracted() -> None:
    selectable_fields = fields_at("status.phase", "type", "spec.absent.deep")
    obj = encode(
        replace(THINGS, selectable_fields=selectable_fields), {**thing(), "status": {"phase": "Active"}, "type": 7}
    )
    assert obj.fields == {"status.phase": "Active", "type": "", "spec.absent.deep": ""}


def test_selectors_may_match_other_labels_than_those_of_the_object() -> None:
    obj = encode(THINGS, thing(labels={"shown": "1"}), labels={"hidden": "2"})
    assert obj.labels == {"hidden": "2"}
    assert obj.object()["metadata"]["labels"] == {"shown": "1"}


def test_every_caller_gets_its_own_copy() -> None:
    obj = encode(THINGS, thing())
    obj.object()["metadata"]["name"] = "changed"
    assert obj.object() == thing()


def test_at_version_keeps_the_content_and_labels() -> None:
    obj = at_version(THINGS, encode(THINGS, thing(resourceVersion="5"), labels={"hidden": "1"}), 9)
    assert (obj.rv, obj.object(), obj.labels) == (9, thing(resourceVersion="9"), {"hidden": "1"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4), json_values)
def test_an_encoded_object_decodes_to_itself(metadata: Object, spec: object) -> None:
    written = thing(annotations=metadata) | {"spec": spec}
    obj = encode(THINGS, written)
    assert obj.object() == written
    assert json.loads(obj.metadata) == written["metadata"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"n": 2**70}, b'{"n":1180591620717411303424}', id="an integer over 64 bits"),
        pytest.param("\ud800", b'"?"', id="a lone surrogate"),
    ],
)
def test_values_that_orjson_rejects_are_encoded(value: object, expected: bytes) -> None:
    assert to_json(value) == expected


def test_nesting_that_orjson_rejects_is_encoded() -> None:
    nested: object = 1
    for _ in range(300):
        nested = [nested]
    assert to_json(nested) == b"[" * 300 + b"1" + b"]" * 300


def test_equal_labels_are_stored_once() -> None:
    one, other = (encode(THINGS, thing(labels={"".join(("k", "1")): "".join(("v", "1"))})) for _ in range(2))
    assert next(iter(one.labels.values())) is next(iter(other.labels.values()))


def test_an_encoded_object_keeps_no_parsed_content() -> None:
    obj = encode(THINGS, thing(namespace="a", annotations={str(number): "x" * 50 for number in range(20)}))
    size = sum(sys.getsizeof(getattr(obj, name)) for name in type(obj).__slots__) + sys.getsizeof(obj)
    assert size < len(obj.json) + 1000
