"""Events that the proxy itself makes, in the three forms of objects."""

from __future__ import annotations

import json

import pytest

from apiserver.meta.resource import Object
from tenant_apiserver.proxy.merged import frames
from tenant_apiserver.proxy.merged.frames import Form

POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "namespace": "a", "uid": "1"}}


@pytest.mark.parametrize(
    ("document", "form"),
    [
        pytest.param({"kind": "PodList", "apiVersion": "v1", "items": []}, Form("Pod", "v1"), id="list"),
        pytest.param(
            {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"},
            Form("PartialObjectMetadata", "meta.k8s.io/v1"),
            id="metadata",
        ),
        pytest.param(
            {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": [{}, {}]},
            Form("Table", "meta.k8s.io/v1", 2),
            id="table",
        ),
    ],
)
def test_the_form_of_a_list_is_that_of_its_objects(document: Object, form: Form) -> None:
    assert frames.form_of_list(document) == form


def test_a_deleted_object_has_its_identity_only() -> None:
    frame = json.loads(frames.deleted_frame(Form("Pod", "v1"), "a/x", "1", 9))
    metadata = {"name": "x", "namespace": "a", "uid": "1", "resourceVersion": "9"}
    assert frame == {"type": "DELETED", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}}


def test_a_deleted_row_has_as_many_cells_as_the_others() -> None:
    frame = json.loads(frames.deleted_frame(Form("Table", "meta.k8s.io/v1", 3), "a/x", "1", 9))
    [row] = frame["object"]["rows"]
    assert row["cells"] == ["x", None, None]
    assert row["object"]["metadata"]["namespace"] == "a"


@pytest.mark.parametrize("form", [Form("Pod", "v1"), Form("Table", "meta.k8s.io/v1", 2)], ids=["object", "table"])
def test_a_bookmark_has_the_version_of_the_whole(form: Form) -> None:
    for ends in (True, False):
        obj = json.loads(frames.bookmark_frame(form, 3, ends_initial=ends))["object"]
        assert (frames.version_of(obj), obj["kind"]) == (3, form.kind)
        assert (frames.INITIAL_EVENTS_END in frames.metadata_of(obj).get("annotations", {})) == ends


def test_metadata_is_found_in_every_form() -> None:
    row = {"cells": ["x"], "object": POD}
    for item in (POD, row, {"kind": "Table", "rows": [row]}):
        assert frames.key_of(frames.metadata_of(item)) == "a/x"
        assert frames.uid_of(frames.metadata_of(item)) == "1"
    assert frames.metadata_of({"cells": ["x"], "object": None}) == {}
