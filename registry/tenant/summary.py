"""What decisions need to know of a Tenant: a small frozen value, out of the Tenant as it is shown. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from types import MappingProxyType

from apiserver.meta.resource import Key, Object
from registry.names import CASCADE_ANNOTATION, FLAGS, is_root, workload_namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSummary:
    """`namespace` is the workload namespace, `flags` the services that are turned on, `created` an RFC 3339 time.

    `gateway` is None where the Tenant does not say. `rv` is 0 for a Tenant that is not stored yet.
    """

    key: Key
    namespace: str
    uid: str = ""
    host: str = ""
    gateway: bool | None = None
    quotas: Mapping[str, str | int] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    scheduling_class: str = ""
    terminating: bool = False
    allow_cascade: bool = False
    created: str = ""
    rv: int = 0

    @property
    def is_root(self) -> bool:
        return is_root(*self.key)


_NO_QUOTAS: Mapping[str, str | int] = MappingProxyType({})


def summarize(tenant: Object, key: Key | None = None) -> TenantSummary:
    """The facts of a Tenant, stored or about to be. Its workload namespace is the one in its status, else (on
    create) the one that it will have. Who has its key gives it: it is held for as long as the facts."""
    metadata, spec = tenant["metadata"], tenant.get("spec") or {}
    key = key or Key(metadata.get("namespace", ""), metadata.get("name", ""))
    namespace = (tenant.get("status") or {}).get("namespace")
    return TenantSummary(
        key=key,
        namespace=intern(namespace or workload_namespace(*key)),
        uid=metadata.get("uid", ""),
        host=spec.get("host") or "",
        gateway=spec.get("gateway"),
        quotas=dict(quotas) if (quotas := spec.get("resourceQuotas")) else _NO_QUOTAS,
        flags=_flags(tuple(flag for flag in FLAGS if spec.get(flag))),
        scheduling_class=spec.get("schedulingClass") or "",
        terminating=bool(metadata.get("deletionTimestamp")),
        allow_cascade=(metadata.get("annotations") or {}).get(CASCADE_ANNOTATION) == "true",
        created=metadata.get("creationTimestamp") or "",
        rv=int(metadata.get("resourceVersion") or 0),
    )


@lru_cache(maxsize=1024)
def _flags(flags: tuple[str, ...]) -> frozenset[str]:
    """One set for all Tenants that have the same."""
    return frozenset(flags)
