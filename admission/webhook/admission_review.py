"""Builds AdmissionReview requests and parses the responses of webhooks (WIRE-H43 to WIRE-H45). Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from admission.matching.match_rules import Target
from admission.matching.request_variables import object_as, request_variable
from admission.webhook.errors import CallFailed
from admission.webhook.response_decoder import decode_review
from apiserver.admission import Attributes
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
_VERSIONS = ("v1", "v1beta1")
_ONLY_PATCH = "JSONPatch"


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """A webhook's response. `status` is the Status of a denial, if it has one; `patch` is the undecoded JSON patch."""

    allowed: bool
    status: Mapping[str, Any] | None = None
    patch: bytes = b""
    patch_type: str = ""
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


def first_supported_version(versions: Sequence[str]) -> str:
    """The first of a webhook's admissionReviewVersions that is supported. Raises CallFailed."""
    for version in versions:
        if version in _VERSIONS:
            return version
    why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    raise CallFailed(why, code=400)


def make_admission_review(attributes: Attributes, own: Target, target: Target, *, uid: str, version: str) -> Object:
    """The review of a request, with objects in the version of `target`; `own` is the resource that the client wrote."""
    return {
        "kind": KIND,
        "apiVersion": f"{GROUP}/{version}",
        "request": {
            **request_variable(attributes, own, target, uid=uid),
            "object": object_as(attributes.object, target),
            "oldObject": object_as(attributes.old_object, target),
        },
    }


def parse_admission_response(body: bytes, *, uid: str, version: str, mutating: bool) -> AdmissionResponse:
    """Raises CallFailed if the body is not a valid response to the review `uid`."""
    document = decode_review(body, version)
    response = document.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    patch, patch_type = _decoded_patch(response), response.get("patchType")
    if version == "v1":
        _check_v1_envelope(document, response, uid)
        _check_patch(patch, patch_type, mutating=mutating)
    else:
        # Kubernetes never verified v1beta1 responses
        patch, patch_type = (patch, _ONLY_PATCH) if mutating and patch else (b"", "")
    return AdmissionResponse(
        allowed=bool(response.get("allowed")),
        status=response.get("status"),
        patch=patch,
        patch_type=patch_type or "",
        warnings=tuple(response.get("warnings") or ()),
        annotations=response.get("auditAnnotations") or {},
    )


def _check_v1_envelope(document: Mapping[str, Any], response: Mapping[str, Any], uid: str) -> None:
    response_uid = response.get("uid") or ""
    if response_uid != uid:
        raise _invalid(f'expected response.uid="{uid}", got "{response_uid}"')
    api_version, kind = document.get("apiVersion") or "", document.get("kind") or ""
    if (api_version, kind) != (f"{GROUP}/v1", KIND):
        group, _, version = api_version.rpartition("/")
        raise _invalid(
            f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {group}/{version}, Kind={kind}",
        )


def _check_patch(patch: bytes, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _invalid("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _decoded_patch(response: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(response.get("patch") or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise CallFailed("failed to call webhook: illegal base64 data in response.patch") from error


def _invalid(why: str) -> CallFailed:
    return CallFailed(f"received invalid webhook response: {why}")


def denial_status(name: str, status: Mapping[str, Any] | None) -> StatusError:
    """The error for a denial: the webhook's own Status, its message prefixed with the webhook's name (WIRE-H45)."""
    fields = status or {}
    subject = f'admission webhook "{name}" denied the request'
    explanation = fields.get("message") or fields.get("reason")
    code = fields.get("code") or 0
    return StatusError(
        # lower codes are not errors, higher ones not HTTP status codes
        code if 400 <= code <= 999 else 400,
        fields.get("reason") or "",
        f"{subject}: {explanation}" if explanation else f"{subject} without explanation",
        details=fields.get("details"),
        metadata=fields.get("metadata"),
    )
