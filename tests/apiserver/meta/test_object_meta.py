from __future__ import annotations

import re
from typing import Any

import pytest

from apiserver.meta import object_meta as meta
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Resource


def widgets(*, namespaced: bool = True) -> Resource:
    return Resource(group="g", version="v1", kind="W", plural="ws", singular="w", namespaced=namespaced)


OWNER = {"apiVersion": "v1", "kind": "K", "name": "e", "uid": "1"}


def messages(metadata: dict[str, Any], **more: Any) -> list[str]:
    obj = {"metadata": {"name": "x", "namespace": "ns", **metadata}}
    return [str(error) for error in meta.validate_metadata(obj, widgets(), **more)]


@pytest.mark.parametrize(
    ("metadata", "start"),
    [
        pytest.param({"name": ""}, "metadata.name: Required value: name or generateName is required", id="no name"),
        pytest.param({"namespace": ""}, "metadata.namespace: Required value", id="no namespace"),
        pytest.param(
            {"namespace": "A"},
            'metadata.namespace: Invalid value: "A": a lowercase RFC 1123 label must',
            id="an invalid namespace",
        ),
        pytest.param(
            {"labels": {"a b": "x"}},
            'metadata.labels: Invalid value: "a b": name part must consist of',
            id="a label key",
        ),
        pytest.param(
            {"labels": {"a": "x y"}},
            'metadata.labels: Invalid value: "x y": a valid label must be an empty string or consist of',
            id="a label value",
        ),
        pytest.param(
            {"labels": {"a": "x" * 64}},
            f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
            id="a long label",
        ),
        pytest.param(
            {"annotations": {"a b": "x"}},
            'metadata.annotations: Invalid value: "a b": name part must consist of',
            id="an annotation key",
        ),
        pytest.param(
            {"annotations": {"a": "x" * meta.ANNOTATIONS_LIMIT}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
            id="too many annotations",
        ),
        pytest.param(
            {"finalizers": ["x y"]},
            'metadata.finalizers: Invalid value: "x y": name part must consist of',
            id="a finalizer",
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer '
            "orphan and foregroundDeletion cannot be both set",
            id="finalizers that exclude each other",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "apiVersion": ""}]},
            'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
            id="an owner without version",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "apiVersion": "a/"}]},
            'metadata.ownerReferences.apiVersion: Invalid value: "a/": version must not be empty',
            id="an owner with only a group",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
            id="an owner without uid",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "kind": "Event"}]},
            "metadata.ownerReferences: Invalid value: "
            '{"apiVersion":"v1","kind":"Event","name":"e","uid":"1"}: '
            "/v1, Kind=Event is disallowed from being an owner",
            id="an Event as owner",
        ),
    ],
)
def test_invalid_metadata_has_the_error_of_kubernetes(metadata: dict[str, Any], start: str) -> None:
    (message,) = messages(metadata)
    assert message.startswith(start)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({}, id="empty metadata"),
        pytest.param({"labels": {"a.b/C_d-9": "", "x": "A"}}, id="labels"),
        pytest.param({"annotations": {"Example.com/X": "any text\n"}}, id="an annotation in capitals"),
        pytest.param({"annotations": {"a": "x" * (meta.ANNOTATIONS_LIMIT - 1)}}, id="annotations to the limit"),
        pytest.param({"finalizers": ["a", "a/b", "a/b", "foregroundDeletion"]}, id="finalizers"),
        pytest.param({"ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "uid": "2"}]}, id="owners"),
        pytest.param({"labels": None, "annotations": None, "finalizers": None, "ownerReferences": None}, id="nulls"),
    ],
)
def test_valid_metadata_has_no_errors(metadata: dict[str, Any]) -> None:
    assert messages(metadata) == []


def test_only_one_owner_may_be_the_controller() -> None:
    owners = [{**OWNER, "uid": uid, "name": f"n{uid}", "controller": True} for uid in "123"]
    found = messages({"ownerReferences": owners})
    assert [message.rpartition(": ")[2] for message in found] == [
        'Only one reference can have Controller set to true. Found "true" in references for K/n1 and K/n2',
        'Only one reference can have Controller set to true. Found "true" in references for K/n1 and K/n3',
    ]


def test_name_errors_and_all_other_errors_are_reported() -> None:
    name_error = FieldError("FieldValueInvalid", "metadata.name", "x", "no")
    assert len(messages({"labels": {"a b": "x y"}, "finalizers": ["-"]}, name_errors=[name_error])) == 4


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    obj = {"metadata": {"name": "x", "namespace": "ns"}}
    (error,) = meta.validate_metadata(obj, widgets(namespaced=False))
    assert str(error) == "metadata.namespace: Forbidden: not allowed on this type"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "y"),
        ("namespace", "other"),
        ("uid", "other"),
        ("creationTimestamp", "2030-01-01T00:00:00Z"),
        ("deletionTimestamp", "2030-01-01T00:00:00Z"),
        ("deletionGracePeriodSeconds", 5),
    ],
)
def test_immutable_metadata_cannot_be_updated(field: str, value: Any) -> None:
    old = {"metadata": {"name": "x", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    new = {"metadata": {**old["metadata"], field: value}}
    (error,) = meta.validate_metadata_update(new, old)
    assert (error.field, error.detail) == (f"metadata.{field}", "field is immutable")
    assert meta.validate_metadata_update(old, old) == []


def test_an_object_that_is_being_deleted_gains_no_finalizers() -> None:
    old = {"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}}
    new = {"metadata": {**old["metadata"], "finalizers": ["d/e", "c/d"]}}
    (error,) = meta.validate_metadata_update(new, old)
    assert str(error) == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"c/d", "d/e"}'
    )
    fewer = {"metadata": {**old["metadata"], "finalizers": []}}
    assert meta.validate_metadata_update(fewer, old) == []


def test_identical_owner_references_are_deduplicated() -> None:
    renamed = {**OWNER, "name": "f"}
    other = {**OWNER, "uid": "2"}
    obj = {"metadata": {"ownerReferences": [OWNER, OWNER, renamed, other, other, other]}}
    assert meta.dedup_owner_references(obj) == (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
        "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: 1, 2"
    )
    assert obj["metadata"]["ownerReferences"] == [OWNER, renamed, other]
    assert meta.dedup_owner_references(obj) is None


@pytest.mark.timeout(30)
def test_many_owner_references_are_deduplicated_in_linear_time() -> None:
    """ATTACK-13: comparing each reference with every other would take minutes."""
    many = [{**OWNER, "uid": str(number)} for number in range(20_000)]
    obj = {"metadata": {"ownerReferences": [*many, dict(many[0])]}}
    warning = meta.dedup_owner_references(obj)
    assert warning is not None
    assert warning.endswith("observed: 0")
    assert obj["metadata"]["ownerReferences"] == many


def test_generated_names_fit_and_differ() -> None:
    names = {meta.generate_name("base-") for _ in range(50)}
    assert len(names) > 40
    assert all(re.fullmatch("base-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    assert re.fullmatch("x{58}.{5}", meta.generate_name("x" * 100))


def test_times_are_rfc3339_and_uids_are_uuids() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta.now_rfc3339())
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", meta.new_uid())


@pytest.mark.parametrize(
    ("name", "label", "subdomain"),
    [
        pytest.param("a-b9", True, True, id="a label"),
        pytest.param("a.b-c.d", False, True, id="a subdomain"),
        pytest.param("A", False, False, id="a capital"),
        pytest.param("-a", False, False, id="a leading dash"),
        pytest.param("a..b", False, False, id="two dots"),
        pytest.param("a\n", False, False, id="a line break"),
        pytest.param("", False, False, id="empty"),
        pytest.param("x" * 64, False, True, id="64 characters"),
        pytest.param("x" * 254, False, False, id="254 characters"),
    ],
)
def test_names_are_validated_as_dns_labels_and_subdomains(name: str, label: bool, subdomain: bool) -> None:
    assert (meta.dns1123_label_errors(name) == []) is label
    assert (meta.dns1123_subdomain_errors(name) == []) is subdomain


def test_name_errors_have_the_texts_of_kubernetes() -> None:
    assert meta.dns1123_subdomain_errors("A_b") == [
        (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    ]
    assert meta.dns1123_subdomain_errors("x" * 254) == ["must be no more than 253 characters"]
    assert meta.qualified_name_errors("x/") != []
    assert meta.label_value_errors("x y") != []


def test_errors_about_many_controllers_share_one_value() -> None:
    """ATTACK-13: a copy of all owner references for each error would exhaust the memory."""
    owners = [{**OWNER, "uid": str(number), "controller": True} for number in range(200)]
    obj = {"metadata": {"name": "x", "namespace": "ns", "ownerReferences": owners}}
    problems = meta.validate_metadata(obj, widgets())
    assert len(problems) == 199
    assert len({id(problem.value) for problem in problems}) == 1
