"""The fields of a Tenant on which admission and the controllers base decisions, as a small immutable value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from types import MappingProxyType

from apiserver.meta.resource import Key, Object
from registry.generic.finalizers import FOREGROUND
from registry.interned import interned
from registry.names import CASCADE_ANNOTATION, SERVICE_FLAGS, canonical_host, is_root, workload_namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSummary:
    """`namespace` is the workload namespace, `flags` the enabled services, and `created` an RFC 3339 time.
    `status_host` is the domain in the status, which may lag behind the specs that it follows from.

    `gateway` is None if the Tenant does not set it. `rv` is 0 for a Tenant that is not stored yet. `allow_cascade` is
    set by the annotation, and `foreground` by the finalizer of a deletion in the foreground.
    """

    key: Key
    namespace: str
    uid: str = ""
    host: str = ""
    status_host: str = ""
    gateway: bool | None = None
    quotas: Mapping[str, str | int] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    scheduling_class: str = ""
    terminating: bool = False
    allow_cascade: bool = False
    foreground: bool = False
    created: str = ""
    rv: int = 0

    @property
    def is_root(self) -> bool:
        return is_root(*self.key)

    @property
    def cascades(self) -> bool:
        """True if its children may be deleted with it."""
        return self.allow_cascade or self.foreground


_NO_QUOTAS: Mapping[str, str | int] = MappingProxyType({})


def summarize(tenant: Object, key: Key | None = None) -> TenantSummary:
    """The summary of a stored or new Tenant. Its workload namespace is that of its status, or on create the one that it
    will get. Callers pass the `key` that they have, to share its memory."""
    metadata, spec = tenant["metadata"], tenant.get("spec") or {}
    key = key or Key(metadata.get("namespace", ""), metadata.get("name", ""))
    namespace = (tenant.get("status") or {}).get("namespace")
    return TenantSummary(
        key=key,
        namespace=intern(namespace or workload_namespace(*key)),
        uid=metadata.get("uid", ""),
        host=spec.get("host") or "",
        status_host=status_host(tenant),
        gateway=spec.get("gateway"),
        quotas=dict(quotas) if (quotas := spec.get("resourceQuotas")) else _NO_QUOTAS,
        flags=_flags(tuple(flag for flag in SERVICE_FLAGS if spec.get(flag))),
        scheduling_class=spec.get("schedulingClass") or "",
        terminating=bool(metadata.get("deletionTimestamp")),
        foreground=FOREGROUND in (metadata.get("finalizers") or ()),
        allow_cascade=(metadata.get("annotations") or {}).get(CASCADE_ANNOTATION) == "true",
        created=metadata.get("creationTimestamp") or "",
        rv=int(metadata.get("resourceVersion") or 0),
    )


def status_host(tenant: Object) -> str:
    """The domain in the status of a Tenant, canonical; empty before a controller has written it."""
    found = ((tenant.get("status") or {}).get("host") or {}).get("value")
    return interned(canonical_host(found)) if isinstance(found, str) else ""


@lru_cache(maxsize=1024)
def _flags(flags: tuple[str, ...]) -> frozenset[str]:
    """Shares one set between all Tenants with the same flags."""
    return frozenset(flags)
