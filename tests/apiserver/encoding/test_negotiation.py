"""Accept headers that clients send, and the negotiated media types (WIRE-E1 to WIRE-E10, WIRE-E17)."""

from __future__ import annotations

import pytest

from apiserver.encoding.negotiation import JSON, YAML, MediaType, negotiate
from apiserver.meta.errors import NotAcceptable

KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
METADATA = (
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", MediaType(), id="no header"),
        pytest.param("*/*", MediaType(), id="anything"),
        pytest.param("application/*", MediaType(), id="any application"),
        pytest.param("application/json", MediaType(), id="JSON"),
        pytest.param("application/yaml", MediaType(YAML), id="YAML"),
        pytest.param("application/json;q=0.5,application/yaml", MediaType(YAML), id="the better quality wins"),
        pytest.param("*/*,application/yaml", MediaType(YAML), id="the more exact clause wins"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", MediaType(), id="protobuf is skipped"),
        pytest.param("application/json;q=0.9,application/cbor;q=1", MediaType(), id="so is CBOR"),
        pytest.param(KUBECTL, MediaType(JSON, "Table", "v1"), id="kubectl get"),
        pytest.param(METADATA, MediaType(JSON, "PartialObjectMetadataList", "v1"), id="a metadata client"),
        pytest.param(
            "application/json;as=Table;v=v2;g=meta.k8s.io,application/json", MediaType(), id="an unknown version"
        ),
        pytest.param("application/json;as=Chair;v=v1;g=meta.k8s.io,*/*", MediaType(), id="an unknown transformation"),
        pytest.param("application/json;pretty=1", MediaType(pretty=True), id="pretty"),
        pytest.param("application/json;stream=watch", MediaType(), id="a stream parameter is ignored without a watch"),
    ],
)
def test_a_response_is_negotiated(accept: str, expected: MediaType) -> None:
    assert negotiate(accept) == expected


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("application/json", "application/json", id="plain"),
        pytest.param("application/json;stream=watch", "application/json;stream=watch", id="as a stream"),
        pytest.param("application/yaml,*/*", "application/json", id="never YAML"),
        pytest.param(KUBECTL, "application/json", id="a table has no parameters"),
    ],
)
def test_a_watch_is_json(accept: str, content_type: str) -> None:
    assert negotiate(accept, watch=True).content_type == content_type


def test_tables_can_be_disabled() -> None:
    assert negotiate(KUBECTL, tables=False) == MediaType()


@pytest.mark.parametrize(
    ("accept", "watch", "message"),
    [
        pytest.param(
            "text/html",
            False,
            "only the following media types are accepted: application/json, application/yaml",
            id="HTML",
        ),
        pytest.param(
            "application/yaml",
            True,
            "only the following media types are accepted: application/json, application/json;stream=watch",
            id="a watch in YAML",
        ),
    ],
)
def test_an_unsupported_media_type_is_not_acceptable(accept: str, watch: bool, message: str) -> None:
    with pytest.raises(NotAcceptable) as error:
        negotiate(accept, watch=watch)
    assert (error.value.code, error.value.message) == (406, message)
