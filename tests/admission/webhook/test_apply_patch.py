from __future__ import annotations

import copy
from typing import Any

import pytest

from admission.matching.match_rules import target_of
from admission.webhook.admission_review import Verdict
from admission.webhook.apply_patch import operations_of, patched
from admission.webhook.errors import CallFailed
from apiserver.meta.errors import InternalError
from apiserver.meta.resource import Object
from registry.tenant.types import tenant_resource
from tests.tenant_objects import tenant

_RESOURCE = tenant_resource()
_TARGET = target_of(_RESOURCE)


def _patched(*operations: dict[str, Any]) -> Object:
    given = tenant("a", spec={"host": "x"})
    before = copy.deepcopy(given)
    result = patched(given, operations, _TARGET, _RESOURCE)
    assert given == before
    return result


def _words(*operations: dict[str, Any]) -> str:
    with pytest.raises(InternalError) as caught:
        _patched(*operations)
    assert caught.value.code == 500
    return caught.value.message.removeprefix("Internal error occurred: ")


def test_a_patched_object_is_defaulted_and_loses_what_is_unknown() -> None:
    result = _patched(
        {"op": "remove", "path": "/spec"},
        {"op": "add", "path": "/spec", "value": {"etcd": True, "unknown": 1}},
        {"op": "add", "path": "/other", "value": 1},
    )
    assert result["spec"]["etcd"] is True
    assert result["spec"]["monitoring"] is False
    assert "unknown" not in result["spec"]
    assert "other" not in result


def test_what_is_replaced_need_not_have_been_there() -> None:
    assert (
        _patched({"op": "replace", "path": "/metadata/generateName", "value": "g"})["metadata"]["generateName"] == "g"
    )


def test_an_object_comes_back_in_its_own_version() -> None:
    other = target_of(_RESOURCE).__class__("apps.cozystack.io", "v2", "tenants", "Tenant")
    operation = {"op": "test", "path": "/apiVersion", "value": "apps.cozystack.io/v2"}
    assert patched(tenant("a"), [operation], other, _RESOURCE)["apiVersion"] == "apps.cozystack.io/v1alpha1"


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        pytest.param(
            {"op": "add", "path": "/metadata/finalizers/0", "value": "a/b"},
            'add operation does not apply: doc is missing path: "/metadata/finalizers/0": missing value',
            id="into a list that is not there",
        ),
        pytest.param(
            {"op": "remove", "path": "/spec/host/deeper"},
            'remove operation does not apply: doc is missing path: "/spec/host/deeper": missing value',
            id="into a text",
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
            id="metadata that are none",
        ),
        pytest.param({"op": "replace", "path": "", "value": []}, "the patch makes no object", id="no object"),
        pytest.param({"op": "add", "path": 5, "value": 1}, None, id="a path that is no text"),
        pytest.param({"op": "add", "path": "/metadata/labels", "value": ["x"]}, None, id="labels that are none"),
    ],
)
def test_what_cannot_be_applied_is_told(operation: dict[str, Any], words: str | None) -> None:
    told = _words(operation)
    assert told == words if words is not None else told


_LISTED = {"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]}


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        pytest.param(
            {"op": "remove", "path": "/metadata/finalizers/5"},
            "error in remove for path: '/metadata/finalizers/5': "
            "Unable to access invalid index: 5: invalid index referenced",
            id="behind the end",
        ),
        pytest.param(
            {"op": "add", "path": "/metadata/finalizers/x", "value": "c"},
            "error in add for path: '/metadata/finalizers/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
            id="no index",
        ),
        pytest.param(
            {"op": "replace", "path": "/metadata/finalizers/5", "value": "c"},
            "replace operation does not apply: doc is missing key: /metadata/finalizers/5: missing value",
            id="replace behind the end",
        ),
    ],
)
def test_so_is_what_does_not_fit_into_a_list(operation: dict[str, Any], words: str) -> None:
    assert _words(_LISTED, operation) == words


def test_too_many_operations_are_an_error() -> None:
    assert "maximum operations" in _words(*[{"op": "test", "path": "/kind", "value": "Tenant"}] * 10_001)


@pytest.mark.parametrize("patch", [b"", b"null", b"[]"])
def test_nothing_is_no_patch(patch: bytes) -> None:
    assert list(operations_of(Verdict(True, patch=patch, patch_type="JSONPatch"))) == []


@pytest.mark.parametrize("patch", [b"{", b"{}", b'"x"', b"[5]", b"[null]", b"\xff"])
def test_what_is_no_list_of_operations_is_a_failure(patch: bytes) -> None:
    with pytest.raises(CallFailed, match="received undecodable patch in webhook response: "):
        operations_of(Verdict(True, patch=patch, patch_type="JSONPatch"))
