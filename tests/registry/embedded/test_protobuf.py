"""Protobuf bodies: as kubectl v1.37 sends them, and broken ones."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.errors import BadRequest
from registry.embedded.groups import KINDS
from registry.embedded.protobuf import decode
from registry.embedded.protomessages import MESSAGES
from registry.embedded.reviewkinds import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW

MAGIC = b"k8s\x00"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            ("azhzAAoMCgJ2MRIGU2VjcmV0EiEKFQoCczESABoDZm9vIgAqADIAOABCABIGCgFhEgFiGgAaACIA"),
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "s1", "namespace": "foo"},
                "data": {"a": "Yg=="},
            },
            id="a Secret",
        ),
        pytest.param(
            (
                "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxKuAQoWCgNyYjESABoDZm9vIgAqADIA"
                "OABCABImCgRVc2VyEhlyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvGgF1IgASJwoFR3JvdXASGXJiYWMuYXV0aG9yaXphdGlv"
                "bi5rOHMuaW8aAWciABIcCg5TZXJ2aWNlQWNjb3VudBIAGgNzYTEiA2ZvbxolChlyYmFjLmF1dGhvcml6YXRpb24uazhzLmlv"
                "EgRSb2xlGgJyMRoAIgA="
            ),
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "rb1", "namespace": "foo"},
                "subjects": [
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
                    {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "g"},
                    {"kind": "ServiceAccount", "name": "sa1", "namespace": "foo"},
                ],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r1"},
            },
            id="a RoleBinding",
        ),
        pytest.param(
            (
                "azhzAAoNCgJ2MRIHU2VydmljZRJmCh4KAXMSABoDZm9vIgAqADIAOABCAFoICgNhcHASAXMSQAobCgc4MC04MDgwEgNUQ1AY"
                "UCIHCAAQkD8aACgAEggKA2FwcBIBcxoAIglDbHVzdGVySVA6AEIAUgBaAGAAaAAaAgoAGgAiAA=="
            ),
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "s", "namespace": "foo", "labels": {"app": "s"}},
                "spec": {
                    "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                    "selector": {"app": "s"},
                    "type": "ClusterIP",
                },
            },
            id="a Service",
        ),
        pytest.param(
            (
                "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRI/ChQKAXESABoDZm9vIgAqADIAOABCABIlCgoKA2NwdRIDCgExCgsKBHBvZHMS"
                "AwoBMhIKQmVzdEVmZm9ydBoAGgAiAA=="
            ),
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q", "namespace": "foo"},
                "spec": {"hard": {"cpu": "1", "pods": "2"}, "scopes": ["BestEffort"]},
            },
            id="a ResourceQuota",
        ),
        pytest.param(
            (
                "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPwoQCgASABoAIgAqADIA"
                "OABCABIhCh8KA2ZvbxIDZ2V0GgAiACoKY29uZmlnbWFwczIAOgF4GggIABIAGgAgABoAIgA="
            ),
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {"namespace": "foo", "verb": "get", "resource": "configmaps", "name": "x"}
                },
            },
            id="a question",
        ),
        pytest.param(
            (
                "azhzAAotChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESEVNlbGZTdWJqZWN0UmV2aWV3EhoKEAoAEgAaACIAKgAyADgAQgAS"
                "BgoECgASABoAIgA="
            ),
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
            id="nothing but its kind",
        ),
    ],
)
def test_what_kubectl_sends_is_read(body: str, expected: dict[str, Any]) -> None:
    assert decode(base64.b64decode(body)) == expected


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field of fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def number(number: int, value: int) -> bytes:
    return bytes([number << 3, value])


def message(kind: str, raw: bytes, api_version: str = "v1") -> bytes:
    type_meta = field(1, api_version.encode()) + field(2, kind.encode())
    return MAGIC + field(1, type_meta) + field(2, raw)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            message("Secret", field(1, field(1, b"s")) + number(5, 0)),
            {"metadata": {"name": "s"}, "immutable": False},
            id="a false that was set stays",
        ),
        pytest.param(
            message("Namespace", field(1, field(1, b"n") + field(2, b"") + field(8, b""))),
            {"metadata": {"name": "n"}},
            id="zero values are left out",
        ),
        pytest.param(
            message("ConfigMap", field(1, field(8, number(1, 60)))),
            {"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}},
            id="a time",
        ),
        pytest.param(
            message("Lease", field(2, field(4, number(1, 60) + bytes([2 << 3, 0xC0, 0x84, 0x3D])))),
            {"spec": {"renewTime": "1970-01-01T00:01:00.001000Z"}},
            id="a time with microseconds",
        ),
        pytest.param(
            message("ServiceAccount", field(1, field(13, field(4, b"u") + number(6, 1)))),
            {"metadata": {"ownerReferences": [{"uid": "u", "controller": True}]}},
            id="an owner",
        ),
        pytest.param(
            message("Service", field(2, field(1, field(4, number(1, 1) + field(3, b"web"))))),
            {"spec": {"ports": [{"targetPort": "web"}]}},
            id="a port by name",
        ),
        pytest.param(
            message("SubjectAccessReview", field(2, field(5, field(1, b"k") + field(2, field(1, b"v"))))),
            {"spec": {"extra": {"k": ["v"]}}},
            id="extra of a user",
        ),
        pytest.param(
            message("DeleteOptions", number(1, 0) + field(4, b"Orphan")),
            {"gracePeriodSeconds": 0, "propagationPolicy": "Orphan"},
            id="how to delete",
        ),
        pytest.param(
            message("ConfigMap", field(1, field(1, b"c")) + field(12, b"later")),
            {"metadata": {"name": "c"}},
            id="a field of a later version",
        ),
    ],
)
def test_fields_become_json(body: bytes, expected: dict[str, Any]) -> None:
    found = decode(body)
    assert {name: value for name, value in found.items() if name not in ("apiVersion", "kind")} == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="JSON"),
        pytest.param(MAGIC + b"\x0a\xff\x01", id="cut off"),
        pytest.param(message("Pod", b""), id="a kind that is not served"),
        pytest.param(message("ObjectMeta", b""), id="a part of objects"),
        pytest.param(message("ConfigMap", number(1, 1)), id="a number for a message"),
        pytest.param(message("ConfigMap", field(1, field(1, b"\xff"))), id="text that is not UTF-8"),
        pytest.param(message("ConfigMap", field(1, field(8, bytes([8]) + b"\xff" * 9 + b"\x00"))), id="a time too far"),
    ],
)
def test_what_cannot_be_read_is_a_400(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode(body)


@given(kind=st.sampled_from(sorted(MESSAGES)), raw=st.binary(max_size=100))
def test_noise_is_a_400_at_worst(kind: str, raw: bytes) -> None:
    try:
        decode(message(kind, raw))
    except BadRequest:
        return


def test_every_field_of_a_message_is_known_to_the_kind() -> None:
    resources = [kind.resources()[0] for kind in KINDS] + [SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW]
    by_kind = {resource.kind: resource for resource in resources}
    checked = 0
    for kind in sorted(by_kind.keys() & MESSAGES.keys()):
        names = {text.split()[1] for text in MESSAGES[kind].split(";")} - {"metadata"}
        assert names <= by_kind[kind].properties.keys(), kind
        checked += 1
    assert checked > 10
