"""The cells of a Tenant in a Table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Object
from registry.names import SERVICE_FLAGS


def cells(obj: Object) -> Sequence[object]:
    """Ready, Namespace, Host and Gateway, and for wide output Version and the flags."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    host, gateway = status.get("host") or {}, status.get("gateway") or {}
    return (
        _ready(status),
        status.get("namespace", ""),
        host.get("value") or spec.get("host", ""),
        gateway.get("namespace", ""),
        status.get("version", ""),
        *(bool(spec.get(flag)) for flag in SERVICE_FLAGS),
    )


def _ready(status: Object) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return str(condition.get("status", "Unknown"))
    return "Unknown"
