"""The columns of a Tenant in a Table, each with its cell. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Column, Object
from registry.names import SERVICE_FLAGS

# A cell names this many quotas.
_MAX_QUOTAS = 5


def _spec(obj: Object) -> Object:
    return obj.get("spec") or {}


def _status(obj: Object) -> Object:
    return obj.get("status") or {}


def _ready(obj: Object) -> str:
    for condition in _status(obj).get("conditions") or ():
        if condition.get("type") == "Ready":
            return str(condition.get("status", "Unknown"))
    return "Unknown"


def _namespace(obj: Object) -> object:
    return _status(obj).get("namespace", "")


def _host(obj: Object) -> object:
    return (_status(obj).get("host") or {}).get("value") or _spec(obj).get("host", "")


def _gateway(obj: Object) -> object:
    return (_status(obj).get("gateway") or {}).get("namespace", "")


def _services(obj: Object) -> str:
    """`etcd=tenant-root,…`; before the first look of a controller only the tenant's own."""
    spec, status = _spec(obj), _status(obj)
    own = {flag: status.get("namespace", "") for flag in SERVICE_FLAGS if spec.get(flag)}
    providers = status.get("services") or own
    return ",".join(f"{name}={providers[name]}" for name in SERVICE_FLAGS if name in providers)


def _build(obj: Object) -> str:
    """The part after the last plus sign, as the direct peer shows it; the whole version if there is none."""
    version: str = _status(obj).get("version", "")
    return version.rpartition("+")[2] or version


def _quota(obj: Object) -> str:
    quotas: Mapping[str, Any] = _spec(obj).get("resourceQuotas") or {}
    shown = [f"{key}={quotas[key]}" for key in sorted(quotas)[:_MAX_QUOTAS]]
    return ",".join([*shown, "..."] if len(quotas) > _MAX_QUOTAS else shown)


_CELLS: Sequence[tuple[Column, Callable[[Object], object]]] = (
    (Column("Ready", description="Status of the condition Ready."), _ready),
    (Column("Namespace", description="The tenant's workload namespace."), _namespace),
    (Column("Host", description="The effective domain."), _host),
    (Column("Gateway", description="Workload namespace of the tenant whose Gateway serves this one."), _gateway),
    (
        Column("Services", description="The effective services with the tenants that provide them.", priority=1),
        _services,
    ),
    (Column("Version", description="Build of the last attempted chart release.", priority=1), _build),
    (Column("Quota", description="The declared resource limits.", priority=1), _quota),
)
"""In the order of the table. A new column is one more line."""

TENANT_COLUMNS = tuple(column for column, _ in _CELLS)


def tenant_cells(obj: Object) -> Sequence[object]:
    """The cell of each column."""
    return tuple(cell(obj) for _, cell in _CELLS)
