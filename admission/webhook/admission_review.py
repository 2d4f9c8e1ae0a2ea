"""AdmissionReview: what a webhook is asked, and what its answer comes to (WIRE-H43 to WIRE-H45). Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from admission.matching.match_rules import Target
from admission.matching.request_variables import object_as, request_variable
from admission.webhook.errors import CallFailed
from admission.webhook.response_decoder import decoded
from apiserver.admission import Attributes
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
_VERSIONS = ("v1", "v1beta1")
_ONLY_PATCH = "JSONPatch"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a webhook said. `status` is the Status of a refusal, None if there is none; `patch` is JSON, as it came."""

    allowed: bool
    status: Mapping[str, Any] | None = None
    patch: bytes = b""
    patch_type: str = ""
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


def version_of(versions: Sequence[str]) -> str:
    """The first of a webhook's versions that is known here. Raises CallFailed."""
    for version in versions:
        if version in _VERSIONS:
            return version
    why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    raise CallFailed(why, code=400)


def review_of(attributes: Attributes, own: Target, target: Target, *, uid: str, version: str) -> Object:
    """The request as `target`, of which `own` is what was asked for."""
    return {
        "kind": KIND,
        "apiVersion": f"{GROUP}/{version}",
        "request": {
            **request_variable(attributes, own, target, uid=uid),
            "object": object_as(attributes.object, target),
            "oldObject": object_as(attributes.old_object, target),
        },
    }


def verdict_of(body: bytes, *, uid: str, version: str, mutating: bool) -> Verdict:
    """Raises CallFailed for what is no answer to this question."""
    document = decoded(body, version)
    response = document.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    patch, patch_type = _patch(response), response.get("patchType")
    if version == "v1":
        _check(document, response, uid)
        _check_patch(patch, patch_type, mutating=mutating)
    else:
        # nothing of it was ever verified in v1beta1
        patch, patch_type = (patch, _ONLY_PATCH) if mutating and patch else (b"", "")
    return Verdict(
        allowed=bool(response.get("allowed")),
        status=response.get("status"),
        patch=patch,
        patch_type=patch_type or "",
        warnings=tuple(response.get("warnings") or ()),
        annotations=response.get("auditAnnotations") or {},
    )


def _check(document: Mapping[str, Any], response: Mapping[str, Any], uid: str) -> None:
    given = response.get("uid") or ""
    if given != uid:
        raise _invalid(f'expected response.uid="{uid}", got "{given}"')
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


def _patch(response: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(response.get("patch") or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise CallFailed("failed to call webhook: illegal base64 data in response.patch") from error


def _invalid(why: str) -> CallFailed:
    return CallFailed(f"received invalid webhook response: {why}")


def denial(name: str, status: Mapping[str, Any] | None) -> StatusError:
    """The refusal of a webhook: its own Status, with its name in front of the message (WIRE-H45)."""
    given = status or {}
    subject = f'admission webhook "{name}" denied the request'
    said = given.get("message") or given.get("reason")
    code = given.get("code") or 0
    return StatusError(
        # what is below is no refusal, and what is above no code of HTTP
        code if 400 <= code <= 999 else 400,
        given.get("reason") or "",
        f"{subject}: {said}" if said else f"{subject} without explanation",
        details=given.get("details"),
        metadata=given.get("metadata"),
    )
