"""Converts a HelmRelease to the Tenant that it stores, and back. Pure.

Reading never fails: malformed parts are omitted. Values are stored as a client sent them, as of every application; an
update changes what differs from what clients see, and preserves the rest.
"""

from __future__ import annotations

from typing import Any

from apiserver.json.values import deep_copy
from apiserver.meta.resource import Key, Object
from registry.application.release_metadata import (
    string_entries,
    to_release_metadata,
    to_shown_metadata,
)
from registry.application.values import write_new_values
from registry.cluster.interface import HELMRELEASES
from registry.names import (
    APP_VERSION_ANNOTATION,
    APPLICATION_GROUP_LABEL,
    APPLICATION_KIND_LABEL,
    APPLICATION_NAME_LABEL,
    GROUP,
    KIND,
    SHARD_LABEL,
    TENANT_FINALIZER,
    is_root,
    release_name,
    tenant_name,
)
from registry.tenant.convert_status import to_tenant_status
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.spec import change_values, spec_from_values

API_VERSION = f"{GROUP}/v1alpha1"
# a label that every Namespace has: selectors match it on Tenants, too, although it is not shown
_NAME_LABEL = "kubernetes.io/metadata.name"


class NotATenant(ValueError):
    """The HelmRelease does not store a Tenant: it lacks the labels or the name prefix."""


def tenant_key(release: Object) -> Key:
    """The key of the Tenant that `release` stores. Raises NotATenant."""
    metadata = release.get("metadata") or {}
    name = tenant_name(str(metadata.get("name", "")))
    if name is None or not is_tenant(release):
        raise NotATenant(f"the HelmRelease {metadata.get('namespace')}/{metadata.get('name')} does not store a Tenant")
    return Key(str(metadata.get("namespace", "")), name)


def is_tenant(release: Object) -> bool:
    """True if the labels of `release` name a Tenant."""
    labels = string_entries((release.get("metadata") or {}).get("labels"))
    return labels.get(APPLICATION_KIND_LABEL) == KIND and labels.get(APPLICATION_GROUP_LABEL) == GROUP


def to_tenant(release: Object) -> Object:
    """The Tenant that `release` stores, with the defaults of its spec (WIRE-D98). Raises NotATenant."""
    key = tenant_key(release)
    metadata = release["metadata"]
    tenant: Object = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": to_shown_metadata(metadata, name=key.name),
    }
    if app_version := string_entries(metadata.get("annotations")).get(APP_VERSION_ANNOTATION):
        tenant["appVersion"] = app_version
    tenant["spec"] = spec_from_values(_mapping(release.get("spec")).get("values"))
    tenant["status"] = to_tenant_status(release, key)
    return tenant


def selectable_labels(release: Object, tenant: Object) -> dict[str, str]:
    """The labels that selectors match: those of the HelmRelease, overridden by those of the Tenant (API-16)."""
    shown = tenant["metadata"]
    labels: dict[str, str] = {_NAME_LABEL: shown["name"]} | string_entries(release["metadata"].get("labels"))
    return labels | string_entries(shown.get("labels"))


def to_release(tenant: Object, current: Object | None, settings: ReleaseSettings) -> Object:
    """The HelmRelease that stores `tenant`: `current` with the changes of the Tenant, or a new one.

    Neither argument is changed. If the Tenant has not changed, the result equals `current`.
    """
    release = _with_own_spec(current) if current is not None else _new_release(tenant, settings)
    release["metadata"] = to_release_metadata(
        tenant["metadata"], release["metadata"], app_version=tenant.get("appVersion") or ""
    )
    if current is None:
        write_new_values(release["spec"], tenant.get("spec"))
    else:
        change_values(release.setdefault("spec", {}), tenant.get("spec"))
    return release


def _with_own_spec(release: Object) -> Object:
    """A copy whose spec can be changed. The metadata are replaced as a whole, and the status is not changed."""
    return {**release, "spec": deep_copy(release["spec"])} if "spec" in release else dict(release)


def _new_release(tenant: Object, settings: ReleaseSettings) -> Object:
    metadata = tenant["metadata"]
    labels = {
        APPLICATION_KIND_LABEL: KIND,
        APPLICATION_GROUP_LABEL: GROUP,
        APPLICATION_NAME_LABEL: metadata["name"],
    }
    if settings.shard:
        labels[SHARD_LABEL] = settings.shard
    metadata_of_release: Object = {
        "name": release_name(metadata["name"]),
        "namespace": metadata["namespace"],
        "labels": labels,
    }
    if settings.finalizer and not is_root(metadata["namespace"], metadata["name"]):
        # set on create, to save the reconciler a write
        metadata_of_release["finalizers"] = [TENANT_FINALIZER]
    return {
        "apiVersion": HELMRELEASES.api_version,
        "kind": HELMRELEASES.kind,
        "metadata": metadata_of_release,
        "spec": settings.release_spec(),
    }


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
