"""The Resources of reviews and of TokenRequest."""

from __future__ import annotations

from apiserver.meta.resource import Resource, Schema
from registry.embedded.kinds.protobuf import message_descriptor_of
from registry.embedded.kinds.schema_builders import ANYTHING, STRING, STRINGS, open_struct, struct

AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"

_RESOURCE_ATTRIBUTES = open_struct(
    dict.fromkeys(("namespace", "verb", "group", "version", "resource", "subresource", "name"), STRING)
)
_PATH_ATTRIBUTES = struct({"path": STRING, "verb": STRING})
_ACCESS_ATTRIBUTES = {"resourceAttributes": _RESOURCE_ATTRIBUTES, "nonResourceAttributes": _PATH_ATTRIBUTES}
_EXTRA: Schema = {"type": "object", "additionalProperties": STRINGS}
_SUBJECT_ACCESS_REVIEW_SPEC = struct(
    {**_ACCESS_ATTRIBUTES, "user": STRING, "uid": STRING, "groups": STRINGS, "extra": _EXTRA}
)


def _review(group: str, kind: str, description: str, spec: Schema | None, *, namespaced: bool = False) -> Resource:
    properties = {"status": ANYTHING} if spec is None else {"spec": spec, "status": ANYTHING}
    return Resource(
        group=group,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        namespaced=namespaced,
        description=description,
        properties=properties,
        protobuf=message_descriptor_of(group, "v1", kind),
    )


SUBJECT_ACCESS_REVIEW = _review(
    AUTHORIZATION,
    "SubjectAccessReview",
    "SubjectAccessReview checks whether a user is allowed to perform an action.",
    _SUBJECT_ACCESS_REVIEW_SPEC,
)
LOCAL_SUBJECT_ACCESS_REVIEW = _review(
    AUTHORIZATION,
    "LocalSubjectAccessReview",
    "LocalSubjectAccessReview checks whether a user is allowed to perform an action in a namespace.",
    _SUBJECT_ACCESS_REVIEW_SPEC,
    namespaced=True,
)
SELF_SUBJECT_ACCESS_REVIEW = _review(
    AUTHORIZATION,
    "SelfSubjectAccessReview",
    "SelfSubjectAccessReview asks whether the caller may do something.",
    struct(_ACCESS_ATTRIBUTES),
)
SELF_SUBJECT_RULES_REVIEW = _review(
    AUTHORIZATION,
    "SelfSubjectRulesReview",
    "SelfSubjectRulesReview asks what the caller may do in a namespace.",
    struct({"namespace": STRING}),
)
SELF_SUBJECT_REVIEW = _review(AUTHENTICATION, "SelfSubjectReview", "SelfSubjectReview asks who the caller is.", None)
TOKEN_REQUEST = _review(
    AUTHENTICATION,
    "TokenRequest",
    "TokenRequest requests a token of a service account.",
    struct(
        {
            "audiences": STRINGS,
            "expirationSeconds": {"type": "integer", "format": "int64"},
            "boundObjectRef": {
                **struct(dict.fromkeys(("kind", "apiVersion", "name", "uid"), STRING)),
                "nullable": True,
            },
        }
    ),
    namespaced=True,
)
TOKEN_REVIEW = _review(
    AUTHENTICATION,
    "TokenReview",
    "TokenReview asks whose a token is.",
    struct({"token": STRING, "audiences": STRINGS}),
)

REVIEWS = (
    SUBJECT_ACCESS_REVIEW,
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SELF_SUBJECT_REVIEW,
    TOKEN_REVIEW,
)
"""The reviews that are resources of their own."""
