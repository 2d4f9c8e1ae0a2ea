"""The objects of the benchmarks: Tenants as a user sends them, HelmReleases as Flux leaves them in the cluster."""

from __future__ import annotations

import hashlib
from typing import Any

from benchmarks.targets.target import HELM, NAMESPACE, TENANTS
from registry.tenant.convert import to_release
from registry.tenant.release_settings import ReleaseSettings

COLLECTION = f"/apis/{TENANTS}/v1alpha1/namespaces/{NAMESPACE}/tenants"
RELEASES = f"/apis/{HELM}/v2/namespaces/{NAMESPACE}/helmreleases"
_DEPLOYED = 5
_TIME = "2026-01-02T03:04:05Z"

Object = dict[str, Any]


def name(prefix: str, number: int) -> str:
    return f"{prefix}{number:05}"


def slot(name: str) -> str:
    """Returns a label value that one object in a hundred has."""
    return name[-2:]


def tenant(name: str) -> Object:
    return {
        "apiVersion": f"{TENANTS}/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"team": "bench", "slot": slot(name)}},
        "spec": {"ingress": True},
    }


def tenant_with_quota(name: str) -> Object:
    """Returns a Tenant with a quota; admission processes these one at a time."""
    return {**tenant(name), "spec": {"resourceQuotas": {"cpu": "1", "memory": "1Gi"}}}


def release(name: str) -> Object:
    """Returns the HelmRelease in which `tenant(name)` is stored."""
    return to_release(tenant(name), None, ReleaseSettings(finalizer=True))


def release_status(name: str) -> Object:
    """Returns the status that Flux's helm-controller writes for a release with a full history: most of a HelmRelease's
    size."""
    conditions = [
        {
            "type": type_,
            "status": "True",
            "reason": "UpgradeSucceeded",
            "message": f"Helm upgrade succeeded for release {NAMESPACE}/tenant-{name}.v5 with chart tenant@1.9.3",
            "lastTransitionTime": _TIME,
            "observedGeneration": 1,
        }
        for type_ in ("Ready", "Released")
    ]
    return {
        "conditions": conditions,
        "history": [_deployed(name, version) for version in range(_DEPLOYED, 0, -1)],
        "observedGeneration": 1,
        "lastAttemptedGeneration": 1,
        "lastAttemptedRevision": "1.9.3",
        "lastAttemptedConfigDigest": _digest(f"{name}-values"),
        "lastAttemptedReleaseAction": "upgrade",
        "storageNamespace": NAMESPACE,
    }


def _deployed(name: str, version: int) -> Object:
    return {
        "name": f"tenant-{name}",
        "namespace": NAMESPACE,
        "version": version,
        "chartName": "tenant",
        "chartVersion": "1.9.3",
        "appVersion": "0.1.0",
        "configDigest": _digest(f"{name}-{version}-values"),
        "digest": _digest(f"{name}-{version}"),
        "firstDeployed": _TIME,
        "lastDeployed": _TIME,
        "status": "deployed" if version == _DEPLOYED else "superseded",
    }


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
