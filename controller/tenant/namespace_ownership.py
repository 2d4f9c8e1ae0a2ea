"""Whose a Namespace is. Pure.

A Namespace that the reconciler makes carries a record: the Tenant, its uid, and when it was made. Only a Namespace
whose record is its own, and not copied from another one, is ever deleted by us (ATTACK-07).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from apiserver.meta.resource import Key, Object
from controller.tenant.helm_ownership import MANAGED_BY_LABEL, RELEASE_NAME_ANNOTATION, RELEASE_NAMESPACE_ANNOTATION
from registry.names import NO_DELETE_LABEL, release_name
from registry.tenant.summary import TenantSummary

TENANT_ANNOTATION = "apps.cozystack.io/tenant"
UID_ANNOTATION = "apps.cozystack.io/tenant-uid"
MADE_ANNOTATION = "apps.cozystack.io/tenant-namespace-made"
ADOPT_ANNOTATION = "apps.cozystack.io/adopt"

# Between our clock and the host's. A backup that is restored, or a manifest that is copied, is older than that.
_CLOCK_SKEW_SECONDS = 60.0


class Ownership(Enum):
    OURS = "ours"
    """Made by us for this Tenant, adopted for it, or the root's."""
    HELM = "helm"
    """Made by the chart of this Tenant's HelmRelease."""
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class TenantRecord:
    """What a Namespace says of the Tenant that it was made for."""

    tenant: Key
    uid: str


def ownership(namespace: Object, tenant: TenantSummary) -> Ownership:
    """Whose the Namespace with the name of the Tenant's workload namespace is.

    tenant-root is the root's, whoever made it: no other Tenant can have it, and it is there before the root is.
    """
    metadata = namespace["metadata"]
    labels, annotations = _strings(metadata, "labels"), _strings(metadata, "annotations")
    if labels.get(MANAGED_BY_LABEL) == "Helm":
        release = annotations.get(RELEASE_NAMESPACE_ANNOTATION), annotations.get(RELEASE_NAME_ANNOTATION)
        if tenant.is_root or release == (tenant.key.namespace, release_name(tenant.key.name)):
            return Ownership.HELM
    adopted = annotations.get(ADOPT_ANNOTATION) == _text(tenant.key)
    recorded = read_record(namespace) == TenantRecord(tenant.key, tenant.uid)
    return Ownership.OURS if tenant.is_root or adopted or recorded else Ownership.FOREIGN


def record_annotations(tenant: TenantSummary, now: datetime) -> dict[str, str]:
    """The record, for a Namespace that is made at `now`."""
    made = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {TENANT_ANNOTATION: _text(tenant.key), UID_ANNOTATION: tenant.uid, MADE_ANNOTATION: made}


def read_record(namespace: Object) -> TenantRecord | None:
    annotations = _strings(namespace["metadata"], "annotations")
    home, slash, name = annotations.get(TENANT_ANNOTATION, "").partition("/")
    uid = annotations.get(UID_ANNOTATION, "")
    return TenantRecord(Key(home, name), uid) if slash and home and name and uid else None


def may_be_deleted(namespace: Object) -> bool:
    """Whether the Namespace is of our making, so that it goes with its Tenant: it was not adopted, Helm does not
    manage it, nothing forbids it, and its record was written when it was made."""
    metadata = namespace["metadata"]
    labels, annotations = _strings(metadata, "labels"), _strings(metadata, "annotations")
    if labels.get(MANAGED_BY_LABEL) == "Helm" or ADOPT_ANNOTATION in annotations:
        return False
    return labels.get(NO_DELETE_LABEL) != "true" and is_created_by_us(namespace)


def is_created_by_us(namespace: Object) -> bool:
    """Whether there is a record, and it was written when the Namespace was made."""
    metadata = namespace["metadata"]
    if read_record(namespace) is None:
        return False
    made = _time(_strings(metadata, "annotations").get(MADE_ANNOTATION))
    created = _time(metadata.get("creationTimestamp"))
    if made is None or created is None:
        return False
    return abs((created - made).total_seconds()) <= _CLOCK_SKEW_SECONDS


def is_of_former_tenant(namespace: Object | None, tenant: TenantSummary) -> bool:
    """Whether we made the Namespace for a Tenant of the same name that is gone: clean-up will take it away."""
    written = read_record(namespace) if namespace is not None else None
    if namespace is None or written is None or written.tenant != tenant.key or written.uid == tenant.uid:
        return False
    return may_be_deleted(namespace)


def conflict_message(tenant: TenantSummary) -> str:
    """What to say of a foreign Namespace, with the remedy."""
    return (
        f'Namespace "{tenant.namespace}" exists and was not made for this tenant; delete it, or give it to the tenant '
        f"with the annotation {ADOPT_ANNOTATION}: {_text(tenant.key)}"
    )


def _text(key: Key) -> str:
    return f"{key.namespace}/{key.name}"


def _strings(metadata: Mapping[str, Any], field: str) -> Mapping[str, str]:
    return metadata.get(field) or {}


def _time(text: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None
