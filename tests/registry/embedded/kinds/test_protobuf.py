"""Protobuf messages of the built-in kinds: bodies of real clients, round trips, random bytes, and agreement with the
schemas."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.cel.schema_rules import SchemaRuleCompiler
from admission.policy.expression_errors import expression_errors
from apiserver.meta.errors import StatusError
from apiserver.meta.protobuf_message import Cardinality, FieldDescriptor, MessageDescriptor, ScalarType
from apiserver.meta.resource import Resource
from apiserver.schema.pruning_and_defaulting import object_schema, unknown_fields
from apiserver.serializer.protobuf import decode
from apiserver.serializer.protobuf_meta import DELETE_OPTIONS
from registry.embedded.api_groups import build_served_versions
from registry.embedded.kinds import reviews as reviewkinds
from registry.embedded.kinds.protobuf import message_descriptor_of
from registry.sqlite.database import Database
from registry.tenant.types import tenant_resource
from tests.protobuf_encoder import encode, envelope
from tests.registry.embedded.kinds.protobuf_bodies import CAPTURED_BODIES, CapturedBody

_REVIEWS = [value for value in vars(reviewkinds).values() if isinstance(value, Resource)]
_RESOURCES = [
    served.backend.resource
    for served in build_served_versions(Database(Path("never-opened.db")), SchemaRuleCompiler(), expression_errors)
] + _REVIEWS
READABLE = [resource for resource in _RESOURCES if resource.protobuf is not None]
TABLES = [resource.protobuf for resource in READABLE if resource.protobuf] + [DELETE_OPTIONS]


def table_for(object: dict[str, Any]) -> MessageDescriptor:
    if object["kind"] == "DeleteOptions":
        return DELETE_OPTIONS
    group, _, version = object["apiVersion"].rpartition("/")
    table = message_descriptor_of(group, version, object["kind"])
    assert table is not None
    return table


@pytest.mark.parametrize("captured", [pytest.param(captured, id=captured.client) for captured in CAPTURED_BODIES])
def test_bodies_of_go_clients_are_decoded(captured: CapturedBody) -> None:
    assert decode(base64.b64decode(captured.body), table_for(captured.object)) == captured.object


def test_every_protobuf_kind_has_a_captured_body() -> None:
    captured = {(body.object["apiVersion"], body.object["kind"]) for body in CAPTURED_BODIES}
    assert {(resource.api_version, resource.kind) for resource in READABLE} <= captured


def test_only_built_in_kinds_support_protobuf() -> None:
    groups = {resource.group for resource in READABLE}
    assert groups == {
        "",
        "events.k8s.io",
        "coordination.k8s.io",
        "rbac.authorization.k8s.io",
        "authorization.k8s.io",
        "authentication.k8s.io",
    }
    assert [resource.kind for resource in _RESOURCES if resource.group in groups and resource.protobuf is None] == []
    assert tenant_resource().protobuf is None


_WELL_KNOWN: dict[str, st.SearchStrategy[Any]] = {
    "Time": st.datetimes().map(lambda moment: f"{moment.isoformat(timespec='seconds')}Z"),
    "MicroTime": st.datetimes().map(lambda moment: f"{moment.isoformat(timespec='microseconds')}Z"),
    "Quantity": st.text(min_size=1),
    "IntOrString": st.integers(1, 2**31 - 1) | st.text(min_size=1),
    "ExtraValue": st.lists(st.text()),
    "FieldsV1": st.dictionaries(st.text(), st.just({}), min_size=1),
}
_SCALARS: dict[ScalarType, st.SearchStrategy[Any]] = {
    ScalarType.STRING: st.text(),
    ScalarType.BOOL: st.booleans(),
    ScalarType.INT: st.integers(-(2**63), 2**63 - 1),
    ScalarType.BYTES: st.binary().map(lambda content: base64.b64encode(content).decode()),
}


def values_of(type_: ScalarType | MessageDescriptor) -> st.SearchStrategy[Any]:
    if isinstance(type_, ScalarType):
        return _SCALARS[type_]
    if type_.name in _WELL_KNOWN:
        return _WELL_KNOWN[type_.name]
    return st.fixed_dictionaries({}, optional={field.name: values(field) for field in type_.fields.values()})


def values(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    """Values that survive a round trip: zero values survive only in optional fields, lists and maps."""
    each = values_of(field.type)
    if field.cardinality is Cardinality.REPEATED:
        return st.lists(each, min_size=1, max_size=2)
    if field.cardinality is Cardinality.MAP:
        return st.dictionaries(st.text(), each, min_size=1, max_size=2)
    return each if field.cardinality is Cardinality.OPTIONAL else each.filter(bool)


@pytest.mark.parametrize("table", [pytest.param(table, id=table.name) for table in TABLES])
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_objects_round_trip_through_protobuf(table: MessageDescriptor, data: st.DataObject) -> None:
    obj = data.draw(values_of(table))
    body = envelope(encode(obj, table), kind=table.name)
    assert decode(body, table) == {"apiVersion": "v1", "kind": table.name, **obj}


@settings(deadline=None)
@given(table=st.sampled_from(TABLES), raw=st.binary(max_size=100))
def test_random_bytes_raise_at_worst_an_api_error(table: MessageDescriptor, raw: bytes) -> None:
    try:
        decode(envelope(raw, kind=table.name), table)
    except StatusError:
        return


@settings(deadline=None, max_examples=300)
@given(captured=st.sampled_from(CAPTURED_BODIES), data=st.data())
def test_a_corrupted_body_raises_at_worst_an_api_error(captured: CapturedBody, data: st.DataObject) -> None:
    body = bytearray(base64.b64decode(captured.body))
    body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(body), table_for(captured.object))
    except StatusError:
        return


def every_field(table: MessageDescriptor) -> Any:
    """An object with all fields of a message."""
    return {field.name: _with_every_field(field) for field in table.fields.values()}


def _with_every_field(field: FieldDescriptor) -> Any:
    plain = isinstance(field.type, ScalarType) or field.type.name in _WELL_KNOWN
    value = "" if isinstance(field.type, ScalarType) or plain else every_field(field.type)
    if field.cardinality is Cardinality.REPEATED:
        return [value]
    return {"key": value} if field.cardinality is Cardinality.MAP else value


@pytest.mark.parametrize(
    "resource", [pytest.param(resource, id=f"{resource.kind} of {resource.api_version}") for resource in READABLE]
)
def test_the_schema_contains_every_protobuf_field(resource: Resource) -> None:
    assert resource.protobuf is not None
    assert resource.protobuf.name == resource.kind
    assert not list(unknown_fields(object_schema(resource), every_field(resource.protobuf)))
