from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from admission.matching.match_rules import target_of
from admission.webhook.admission_review import AdmissionResponse
from admission.webhook.apply_patch import apply_patch, parse_patch_operations
from admission.webhook.errors import CallFailed
from apiserver.meta.errors import InternalError
from apiserver.meta.resource import Object, Resource
from registry.tenant.types import tenant_resource
from tests.tenant_objects import tenant

_RESOURCE = tenant_resource()
_TARGET = target_of(_RESOURCE)


def _patched(*operations: dict[str, Any], resource: Resource = _RESOURCE) -> Object:
    original = tenant("a", spec={"host": "x"})
    before = copy.deepcopy(original)
    result = apply_patch(original, operations, _TARGET, resource)
    assert original == before
    return result


def _error_message(*operations: dict[str, Any]) -> str:
    with pytest.raises(InternalError) as caught:
        _patched(*operations)
    assert caught.value.code == 500
    return caught.value.message.removeprefix("Internal error occurred: ")


def test_a_patched_object_is_pruned_and_defaulted() -> None:
    """As of kinds whose schema is closed and has defaults."""
    properties = {"etcd": {"type": "boolean"}, "monitoring": {"type": "boolean", "default": False}}
    spec = {"type": "object", "properties": properties}
    result = _patched(
        {"op": "remove", "path": "/spec"},
        {"op": "add", "path": "/spec", "value": {"etcd": True, "unknown": 1}},
        {"op": "add", "path": "/other", "value": 1},
        resource=replace(_RESOURCE, properties={"spec": spec}),
    )
    assert result["spec"] == {"etcd": True, "monitoring": False}
    assert "other" not in result


def test_a_patched_tenant_keeps_undocumented_keys_of_its_spec() -> None:
    result = _patched({"op": "add", "path": "/spec/unknown", "value": 1}, {"op": "add", "path": "/other", "value": 1})
    assert result["spec"] == {"host": "x", "unknown": 1}
    assert "other" not in result


def test_replace_adds_a_missing_field() -> None:
    assert (
        _patched({"op": "replace", "path": "/metadata/generateName", "value": "g"})["metadata"]["generateName"] == "g"
    )


def test_a_patched_object_is_returned_in_its_own_version() -> None:
    other = target_of(_RESOURCE).__class__("apps.cozystack.io", "v2", "tenants", "Tenant")
    operation = {"op": "test", "path": "/apiVersion", "value": "apps.cozystack.io/v2"}
    assert apply_patch(tenant("a"), [operation], other, _RESOURCE)["apiVersion"] == "apps.cozystack.io/v1alpha1"


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        pytest.param(
            {"op": "add", "path": "/metadata/finalizers/0", "value": "a/b"},
            'add operation does not apply: doc is missing path: "/metadata/finalizers/0": missing value',
            id="into a missing list",
        ),
        pytest.param(
            {"op": "remove", "path": "/spec/host/deeper"},
            'remove operation does not apply: doc is missing path: "/spec/host/deeper": missing value',
            id="into a string",
        ),
        pytest.param(
            {"op": "remove", "path": "/metadata/a~1b"},
            "error in remove for path: '/metadata/a~1b': Unable to remove nonexistent key: a/b: missing value",
            id="an escaped key",
        ),
        pytest.param(
            {"op": "replace", "path": "/kind", "value": "Secret"},
            'no kind "Secret" is registered for version "apps.cozystack.io/v1alpha1"',
            id="another kind",
        ),
        pytest.param(
            {"op": "replace", "path": "/metadata", "value": "x"},
            "json: cannot unmarshal string into Go struct field .metadata",
            id="metadata that is a string",
        ),
        pytest.param(
            {"op": "replace", "path": "", "value": []},
            "the patch makes no object",
            id="a document that is not an object",
        ),
        pytest.param({"op": "add", "path": 5, "value": 1}, None, id="a path that is not a string"),
        pytest.param({"op": "add", "path": "/metadata/labels", "value": ["x"]}, None, id="labels that are a list"),
    ],
)
def test_a_patch_that_cannot_be_applied_fails_with_the_message_of_the_go_library(
    operation: dict[str, Any], message: str | None
) -> None:
    text = _error_message(operation)
    assert text == message if message is not None else text


_ADD_FINALIZERS = {"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        pytest.param(
            {"op": "remove", "path": "/metadata/finalizers/5"},
            "error in remove for path: '/metadata/finalizers/5': "
            "Unable to access invalid index: 5: invalid index referenced",
            id="past the end",
        ),
        pytest.param(
            {"op": "add", "path": "/metadata/finalizers/x", "value": "c"},
            "error in add for path: '/metadata/finalizers/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
            id="not an index",
        ),
        pytest.param(
            {"op": "replace", "path": "/metadata/finalizers/5", "value": "c"},
            "replace operation does not apply: doc is missing key: /metadata/finalizers/5: missing value",
            id="replace past the end",
        ),
    ],
)
def test_an_invalid_list_index_fails_with_the_message_of_the_go_library(
    operation: dict[str, Any], message: str
) -> None:
    assert _error_message(_ADD_FINALIZERS, operation) == message


def test_a_patch_with_too_many_operations_fails() -> None:
    assert "maximum operations" in _error_message(*[{"op": "test", "path": "/kind", "value": "Tenant"}] * 10_001)


@pytest.mark.parametrize("patch", [b"", b"null", b"[]"])
def test_an_empty_patch_has_no_operations(patch: bytes) -> None:
    assert list(parse_patch_operations(AdmissionResponse(True, patch=patch, patch_type="JSONPatch"))) == []


@pytest.mark.parametrize("patch", [b"{", b"{}", b'"x"', b"[5]", b"[null]", b"\xff"])
def test_a_patch_that_is_not_a_list_of_operations_is_a_failed_call(patch: bytes) -> None:
    with pytest.raises(CallFailed, match="received undecodable patch in webhook response: "):
        parse_patch_operations(AdmissionResponse(True, patch=patch, patch_type="JSONPatch"))
