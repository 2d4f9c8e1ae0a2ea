"""A Tenant and the HelmRelease that stores it."""

from __future__ import annotations

from typing import Any

from apiserver.meta.resource import Object
from registry import names
from registry.tenant.release_settings import ReleaseSettings

SETTINGS = ReleaseSettings()
DEFAULTS = {
    "host": "",
    "etcd": False,
    "monitoring": False,
    "ingress": False,
    "seaweedfs": False,
    "computeplane": False,
    "schedulingClass": "",
    "resourceQuotas": {},
}


def tenant(**changes: Any) -> Object:
    return {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": "alice", "namespace": "tenant-root", **changes.pop("metadata", {})},
        "spec": {**DEFAULTS, **changes.pop("spec", {})},
        **changes,
    }


def release(**changes: Any) -> Object:
    """A HelmRelease with many fields that a Tenant does not show."""
    metadata = {
        "name": "tenant-alice",
        "namespace": "tenant-root",
        "uid": "u-1",
        "resourceVersion": "41",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {
            names.APPLICATION_KIND_LABEL: "Tenant",
            names.APPLICATION_GROUP_LABEL: "apps.cozystack.io",
            names.APPLICATION_NAME_LABEL: "alice",
            names.SHARD_LABEL: "another",
            "apps.cozystack.io-team": "x",
            "foreign": "label",
        },
        "annotations": {"foreign.example/a": "1", "apps.cozystack.io-note": "hello"},
        "finalizers": [names.FLUX_FINALIZER, "example.org/hold", names.TENANT_FINALIZER],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "u-0"}],
        **changes.pop("metadata", {}),
    }
    spec = {"suspend": True, "chartRef": {"name": "mine"}, "values": {"etcd": True, "_cluster": {"a": 1}, "own": [1]}}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": metadata,
        "spec": {**spec, **changes.pop("spec", {})},
        **changes,
    }
