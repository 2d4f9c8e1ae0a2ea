"""The marks that our controllers leave on the HelmReleases of tenants, and how they are taken away. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.meta.resource import Object
from registry.names import (
    APPLICATION_STATUS_ANNOTATION,
    DELETION_MARK_ANNOTATION,
    FINDINGS_ANNOTATION,
    MANAGED_FIELDS_ANNOTATION,
    TENANT_FINALIZER,
    UNCONFIRMED_ANNOTATION,
)

_OUR_ANNOTATIONS = (
    APPLICATION_STATUS_ANNOTATION,
    DELETION_MARK_ANNOTATION,
    FINDINGS_ANNOTATION,
    UNCONFIRMED_ANNOTATION,
)


def is_held(release: Object) -> bool:
    """True if it is being deleted, and our finalizer holds it: without it, the HelmRelease would be gone at once, and
    nobody would delete what belongs to the tenant."""
    metadata = release["metadata"]
    return bool(metadata.get("deletionTimestamp")) and TENANT_FINALIZER in (metadata.get("finalizers") or ())


def stripping_patch(release: Object, *, keep_managed_fields: bool) -> Object | None:
    """The merge patch that takes our marks from a HelmRelease, None if it has none or is held. The labels and
    annotations that callers have set stay, also those that are stored in an annotation of ours as their keys are too
    long. The patch fails if somebody has changed the object since."""
    metadata: Mapping[str, Any] = release["metadata"]
    finalizers = metadata.get("finalizers") or []
    present = metadata.get("annotations") or {}
    ours = _OUR_ANNOTATIONS if keep_managed_fields else (*_OUR_ANNOTATIONS, MANAGED_FIELDS_ANNOTATION)
    annotations = {key: None for key in ours if key in present}
    if is_held(release) or not (annotations or TENANT_FINALIZER in finalizers):
        return None
    changed: dict[str, Any] = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    if TENANT_FINALIZER in finalizers:
        changed["finalizers"] = [each for each in finalizers if each != TENANT_FINALIZER] or None
    if annotations:
        changed["annotations"] = annotations
    return {"metadata": changed}
