"""The cells of a Tenant in a Table. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Object
from registry.names import SERVICE_FLAGS

# A cell names this many quotas.
_MAX_QUOTAS = 5


def tenant_cells(obj: Object) -> Sequence[object]:
    """Ready, Namespace, Host and Gateway, and for wide output Services, Version and Quota."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    host, gateway = status.get("host") or {}, status.get("gateway") or {}
    return (
        _ready(status),
        status.get("namespace", ""),
        host.get("value") or spec.get("host", ""),
        gateway.get("namespace", ""),
        _services(spec, status),
        _build(status.get("version", "")),
        _quota(spec.get("resourceQuotas") or {}),
    )


def _ready(status: Object) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return str(condition.get("status", "Unknown"))
    return "Unknown"


def _services(spec: Object, status: Object) -> str:
    """`etcd=tenant-root,…`; before the first look of a controller only the tenant's own."""
    own = {flag: status.get("namespace", "") for flag in SERVICE_FLAGS if spec.get(flag)}
    providers = status.get("services") or own
    return ",".join(f"{name}={providers[name]}" for name in SERVICE_FLAGS if name in providers)


def _build(version: str) -> str:
    """The part after the last plus sign, as the direct peer shows it; the whole version if there is none."""
    return version.rpartition("+")[2] or version


def _quota(quotas: Mapping[str, Any]) -> str:
    shown = [f"{key}={quotas[key]}" for key in sorted(quotas)[:_MAX_QUOTAS]]
    return ",".join([*shown, "..."] if len(quotas) > _MAX_QUOTAS else shown)
