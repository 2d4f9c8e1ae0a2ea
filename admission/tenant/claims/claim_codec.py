"""The document of claims as JSON, in an annotation of a Lease, and its bounds. Pure.

{"version": 1, "minResourceVersion": "123", "claims": [{"id": "a-1", "holder": "pod_1_…", "namespace": "tenant-root",
 "name": "acme", "base": "120", "creates": true, "time": "2026-…Z",
 "outcomes": [{"host": "acme.example", "quotas": {"requests.cpu": "4", "limits.cpu": null}}]}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from admission.tenant.claims.claim import Claim, ClaimsDocument, Outcome
from apiserver.meta.resource import Key

_FORMAT = 1
MAX_CLAIMS = 256
# Kubernetes limits the annotations of an object to 256 KiB. A larger claim than this is recorded as a wide one.
MAX_BYTES = 192 * 1024
_MAX_CLAIM_BYTES = 12 * 1024


def encode(document: ClaimsDocument) -> str:
    claims = [_encode_claim(each) for each in document.claims]
    return orjson.dumps(
        {"version": _FORMAT, "minResourceVersion": str(document.min_version), "claims": claims}
    ).decode()


def decode(text: str) -> ClaimsDocument:
    """Raises ValueError for anything that this version would not have written."""
    found = orjson.loads(text)
    try:
        if found["version"] != _FORMAT:
            raise ValueError(f"unknown version {found['version']}")
        claims = tuple(_decode_claim(each) for each in found["claims"])
        return ClaimsDocument(claims=claims, min_version=int(found["minResourceVersion"]))
    except (KeyError, TypeError, AttributeError) as e:
        raise ValueError(f"not a document of claims: {e!r}") from e


def narrowed(claim: Claim) -> Claim:
    """The claim, or a wide one if it is too large to be recorded in full."""
    if len(orjson.dumps(_encode_claim(claim))) <= _MAX_CLAIM_BYTES:
        return claim
    return replace(claim, outcomes=tuple(replace(each, quotas={}) for each in claim.outcomes), wide=True)


def fits(document: ClaimsDocument) -> bool:
    return len(document.claims) <= MAX_CLAIMS and len(encode(document).encode()) <= MAX_BYTES


def _encode_claim(claim: Claim) -> Mapping[str, Any]:
    encoded: dict[str, Any] = {
        "id": claim.id,
        "holder": claim.holder,
        "namespace": claim.key.namespace,
        "name": claim.key.name,
        "base": str(claim.base),
        "creates": claim.creates,
        "time": claim.time,
        "outcomes": [{"host": each.host, "quotas": dict(each.quotas)} for each in claim.outcomes],
    }
    return encoded | ({"wide": True} if claim.wide else {})


def _decode_claim(found: Mapping[str, Any]) -> Claim:
    return Claim(
        id=_text(found["id"]),
        holder=_text(found["holder"]),
        key=Key(_text(found["namespace"]), _text(found["name"])),
        base=int(found["base"]),
        creates=found["creates"] is True,
        outcomes=tuple(_decode_outcome(each) for each in found["outcomes"]),
        wide=found.get("wide") is True,
        time=_text(found["time"]),
    )


def _decode_outcome(found: Mapping[str, Any]) -> Outcome:
    quotas = {_text(key): None if amount is None else _text(amount) for key, amount in found["quotas"].items()}
    return Outcome(host=None if found["host"] is None else _text(found["host"]), quotas=quotas)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"not a text: {value!r}")
    return value
