"""TenantSecrets are labelled Secrets, with the same data."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.tenantsecret.convert import SecretConversion, default_secret, to_identity, trim_secret

LABEL = "internal.cozystack.io/tenantresource"
CONVERSION = SecretConversion()


def secret(**metadata: Any) -> Object:
    fields = {
        "name": "db",
        "namespace": "tenant-a",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {LABEL: "true", "apps.cozystack.io/application.name": "db"},
        "annotations": {"note": "x"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": fields | metadata,
        "type": "Opaque",
        "data": {"password": "c2VjcmV0"},
        "immutable": False,
    }


def shown() -> Object:
    return CONVERSION.to_object(secret())


def test_the_label_is_hidden_and_the_data_is_shown_once() -> None:
    """Not in stringData a second time (T33)."""
    assert shown() == {
        "apiVersion": "core.cozystack.io/v1alpha1",
        "kind": "TenantSecret",
        "metadata": {
            "name": "db",
            "namespace": "tenant-a",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"apps.cozystack.io/application.name": "db"},
            "annotations": {"note": "x"},
        },
        "type": "Opaque",
        "data": {"password": "c2VjcmV0"},
    }


def test_a_deletion_shows_no_data() -> None:
    assert "data" not in to_identity(secret())


@pytest.mark.parametrize("labels", [{}, {LABEL: "false"}, {LABEL: "True"}, None, "text"])
def test_a_secret_without_the_label_is_not_shown(labels: Any) -> None:
    assert not CONVERSION.shows(secret(labels=labels))
    assert CONVERSION.shows(secret())


def test_a_new_secret_has_the_label() -> None:
    obj = {"metadata": {"name": "db", "namespace": "tenant-a", "labels": {"a": "b"}}, "data": {"k": "eA=="}}
    assert CONVERSION.to_new(obj) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "db", "namespace": "tenant-a", "labels": {"a": "b", LABEL: "true"}},
        "type": "Opaque",
        "data": {"k": "eA=="},
    }


def test_what_was_shown_changes_nothing() -> None:
    """Written back, it is equal to what is stored, with the fields that a TenantSecret does not have."""
    stored = secret(managedFields=[{"manager": "kubectl"}], ownerReferences=[{"uid": "o"}], finalizers=["a/b"])
    assert CONVERSION.to_changed(CONVERSION.to_object(stored), stored) is stored


def test_labels_annotations_and_data_are_taken_away() -> None:
    """T34."""
    obj = shown()
    obj["metadata"]["labels"], obj["metadata"]["annotations"], obj["data"] = {}, {}, {}
    changed = CONVERSION.to_changed(obj, secret())
    assert changed["metadata"]["labels"] == {LABEL: "true"}
    assert "annotations" not in changed["metadata"]
    assert "data" not in changed
    assert changed["immutable"] is False


@pytest.mark.parametrize("labels", [{LABEL: "false"}, {LABEL: ""}, {}])
def test_no_client_can_take_the_label_away(labels: dict[str, str]) -> None:
    obj = shown()
    obj["metadata"]["labels"] = labels
    assert CONVERSION.shows(CONVERSION.to_changed(obj, secret()))
    assert CONVERSION.shows(CONVERSION.to_new(obj))


def test_managed_fields_are_kept_in_an_annotation_that_is_hidden() -> None:
    entry = {"manager": "test", "operation": "Apply", "fieldsV1": {"f:data": {"f:password": {}}}}
    obj = shown()
    obj["metadata"]["managedFields"] = [entry]
    stored = CONVERSION.to_changed(obj, secret())
    assert CONVERSION.to_object(stored)["metadata"]["managedFields"] == [entry]
    assert set(CONVERSION.to_object(stored)["metadata"]["annotations"]) == {"note"}


def test_a_client_cannot_forge_the_hidden_annotation() -> None:
    obj = shown()
    obj["metadata"]["annotations"] = {"apps.cozystack.io/managed-fields": '[{"manager":"me"}]'}
    assert "annotations" not in CONVERSION.to_changed(obj, secret())["metadata"]


@pytest.mark.parametrize(
    ("sent", "data"),
    [
        pytest.param({"stringData": {"a": "x"}}, {"a": "eA=="}, id="text"),
        pytest.param(
            {"data": {"a": "eQ==", "b": "eg=="}, "stringData": {"a": "x"}}, {"a": "eA==", "b": "eg=="}, id="both"
        ),
        pytest.param({"data": {"a": "eQ=="}, "stringData": {}}, {"a": "eQ=="}, id="no text"),
    ],
)
def test_text_wins_over_data_and_is_never_stored(sent: Object, data: dict[str, str]) -> None:
    """T33."""
    obj = copy.deepcopy(sent)
    default_secret(obj)
    assert obj == {"type": "Opaque", "data": data}


@pytest.mark.parametrize(
    "broken", [{"data": None}, {"data": {"a": 1}}, {"type": None}, {"metadata": {"name": "db", "annotations": "x"}}]
)
def test_a_malformed_secret_is_shown_without_its_broken_parts(broken: Object) -> None:
    assert CONVERSION.to_object({**secret(), **broken})["metadata"]["name"] == "db"


def test_what_the_informer_keeps_is_enough() -> None:
    stored = secret(managedFields=[{"manager": "kubectl"}])
    assert CONVERSION.to_object(trim_secret(stored)) == CONVERSION.to_object(stored)
