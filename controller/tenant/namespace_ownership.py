"""Decides who owns a Namespace. Pure.

A Namespace that the reconciler creates carries a record: the Tenant, its uid, and the time of creation. We delete a
Namespace only if its record is its own, not copied from another Namespace (ATTACK-07).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from apiserver.meta.resource import Key, Object
from controller.tenant.helm_ownership import MANAGED_BY_LABEL
from registry.names import (
    NO_DELETE_LABEL,
    RELEASE_NAME_ANNOTATION,
    RELEASE_NAMESPACE_ANNOTATION,
    TENANT_ANNOTATION,
    release_name,
)
from registry.tenant.summary import TenantSummary

UID_ANNOTATION = "apps.cozystack.io/tenant-uid"
CREATED_ANNOTATION = "apps.cozystack.io/tenant-namespace-made"
ADOPT_ANNOTATION = "apps.cozystack.io/adopt"

# The tolerated difference between our clock and the cluster's. The record of a restored backup or of a copied manifest
# is older than that.
_CLOCK_SKEW_SECONDS = 60.0


class Ownership(Enum):
    OURS = "ours"
    """Created by us for this Tenant, adopted by it, or the root's."""
    HELM = "helm"
    """Created by the chart of this Tenant's HelmRelease."""
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class TenantRecord:
    """The Tenant for which a Namespace was created, as its annotations name it."""

    tenant: Key
    uid: str


def ownership(namespace: Object, tenant: TenantSummary) -> Ownership:
    """Returns who owns a Namespace that has the name of the Tenant's workload namespace.

    tenant-root belongs to the root, no matter who created it: no other Tenant can have it, and it exists before the
    root does.
    """
    metadata = namespace["metadata"]
    labels, annotations = _strings(metadata, "labels"), _strings(metadata, "annotations")
    if labels.get(MANAGED_BY_LABEL) == "Helm":
        release = annotations.get(RELEASE_NAMESPACE_ANNOTATION), annotations.get(RELEASE_NAME_ANNOTATION)
        if tenant.is_root or release == (tenant.key.namespace, release_name(tenant.key.name)):
            return Ownership.HELM
    is_adopted = annotations.get(ADOPT_ANNOTATION) == _format_key(tenant.key)
    is_recorded = read_record(namespace) == TenantRecord(tenant.key, tenant.uid)
    return Ownership.OURS if tenant.is_root or is_adopted or is_recorded else Ownership.FOREIGN


def record_annotations(tenant: TenantSummary, now: datetime) -> dict[str, str]:
    """The annotations that record the Tenant on a Namespace created at `now`."""
    created = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {TENANT_ANNOTATION: _format_key(tenant.key), UID_ANNOTATION: tenant.uid, CREATED_ANNOTATION: created}


def read_record(namespace: Object) -> TenantRecord | None:
    """None if the annotations are missing or incomplete."""
    annotations = _strings(namespace["metadata"], "annotations")
    home, slash, name = annotations.get(TENANT_ANNOTATION, "").partition("/")
    uid = annotations.get(UID_ANNOTATION, "")
    return TenantRecord(Key(home, name), uid) if slash and home and name and uid else None


def may_be_deleted(namespace: Object) -> bool:
    """True if the Namespace is deleted with its Tenant: we created it, it was not adopted, Helm does not manage it, and
    no label protects it."""
    metadata = namespace["metadata"]
    labels, annotations = _strings(metadata, "labels"), _strings(metadata, "annotations")
    if labels.get(MANAGED_BY_LABEL) == "Helm" or ADOPT_ANNOTATION in annotations:
        return False
    return labels.get(NO_DELETE_LABEL) != "true" and is_created_by_us(namespace)


def is_created_by_us(namespace: Object) -> bool:
    """True if there is a record, and it was written when the Namespace was created."""
    metadata = namespace["metadata"]
    if read_record(namespace) is None:
        return False
    recorded = parse_time(_strings(metadata, "annotations").get(CREATED_ANNOTATION))
    created = parse_time(metadata.get("creationTimestamp"))
    if recorded is None or created is None:
        return False
    return abs((created - recorded).total_seconds()) <= _CLOCK_SKEW_SECONDS


def is_of_former_tenant(namespace: Object | None, tenant: TenantSummary) -> bool:
    """True if we created the Namespace for a deleted Tenant of the same name: it is about to be deleted."""
    record = read_record(namespace) if namespace is not None else None
    if namespace is None or record is None or record.tenant != tenant.key or record.uid == tenant.uid:
        return False
    return may_be_deleted(namespace)


def conflict_message(tenant: TenantSummary) -> str:
    """The message about a Namespace that does not belong to the Tenant, with the remedy."""
    return (
        f'Namespace "{tenant.namespace}" exists and was not created for this tenant; delete it, or let '
        f"the tenant adopt it with the annotation {ADOPT_ANNOTATION}: {_format_key(tenant.key)}"
    )


def former_tenant_message(tenant: TenantSummary) -> str:
    """The message about a Namespace that a deleted Tenant of the same name has left behind, with the remedies."""
    return (
        f'Namespace "{tenant.namespace}" belongs to a deleted tenant and still has child tenants; delete them, or let '
        f"the tenant adopt it with the annotation {ADOPT_ANNOTATION}: {_format_key(tenant.key)}"
    )


def _format_key(key: Key) -> str:
    return f"{key.namespace}/{key.name}"


def _strings(metadata: Mapping[str, Any], field: str) -> Mapping[str, str]:
    return metadata.get(field) or {}


def parse_time(text: object) -> datetime | None:
    """None for anything but a time with a time zone, as Kubernetes writes it."""
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None
