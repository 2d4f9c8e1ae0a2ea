"""Builders of Tenants, their HelmReleases and admission attributes, and a fake NamespaceSource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp.test_utils import make_mocked_request

from apiserver.admission import Attributes, Operation
from apiserver.meta.resource import Key, Object
from apiserver.request.context import RequestContext, User
from apiserver.request.request_info import Query, RequestInfo
from registry.names import workload_namespace
from registry.tenant.convert import to_release
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import TenantTree
from registry.tenant.types import tenant_resource

ROOT_HOST = "example.org"
ROOT = Key("tenant-root", "root")
ALICE = User(name="alice", groups=("tenant-root-admin", "system:authenticated"))
ADMIN = User(name="admin", groups=("system:masters", "system:authenticated"))
_RESOURCE = tenant_resource()


def tenant(
    name: str,
    namespace: str = "tenant-root",
    *,
    spec: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    owners: Sequence[Object] = (),
    terminating: bool = False,
    uid: str = "",
) -> Object:
    metadata: Object = {"name": name, "namespace": namespace, "uid": uid or f"uid-{namespace}-{name}"}
    if annotations:
        metadata["annotations"] = dict(annotations)
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    if owners:
        metadata["ownerReferences"] = list(owners)
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": _RESOURCE.api_version,
        "kind": _RESOURCE.kind,
        "metadata": metadata,
        "spec": dict(spec or {}),
        "status": {"namespace": workload_namespace(namespace, name)},
    }


def tenant_summary(name: str, namespace: str = "tenant-root", **options: Any) -> TenantSummary:
    return summarize(tenant(name, namespace, **options))


def root_summary(**spec: Any) -> TenantSummary:
    return tenant_summary("root", spec=spec)


def tree_of(*tenants: TenantSummary, root_host: str = ROOT_HOST) -> TenantTree:
    """Returns a tree of `tenants`, with a default root if they include none."""
    keys = {each.key for each in tenants}
    return TenantTree([*([] if ROOT in keys else [root_summary()]), *tenants], root_host=root_host)


def attributes(
    operation: Operation,
    new: Object | None = None,
    old: Object | None = None,
    *,
    user: User = ALICE,
    options: Mapping[str, Any] | None = None,
) -> Attributes:
    subject = new if new is not None else old
    assert subject is not None
    metadata = subject["metadata"]
    path = f"/apis/apps.cozystack.io/v1alpha1/namespaces/{metadata['namespace']}/tenants"
    request = make_mocked_request("POST", path)
    info = RequestInfo(method="POST", path=path, verb="create", is_resource=True)
    return Attributes(
        operation=operation,
        resource=_RESOURCE,
        namespace=metadata["namespace"],
        name=metadata.get("name", ""),
        object=new,
        old_object=old,
        user=user,
        options=options or {},
        context=RequestContext(http=request, info=info, query=Query(), audit_id="audit", user=user),
    )


def release(
    name: str, namespace: str = "tenant-root", *, spec: Mapping[str, Any] | None = None, finalizer: bool = False
) -> Object:
    """Returns the HelmRelease of a new Tenant."""
    new = {"metadata": {"name": name, "namespace": namespace}, "spec": dict(spec or {})}
    return to_release(new, None, ReleaseSettings(finalizer=finalizer))


def names(tenants: Sequence[TenantSummary]) -> list[str]:
    return [each.key.name for each in tenants]


class FakeNamespaces:
    """A NamespaceSource with the phases in the informer cache and in the cluster."""

    def __init__(self, cached: Mapping[str, str] | None = None, live: Mapping[str, str] | None = None) -> None:
        """Both arguments map names to phases; without `live` the cluster has the namespaces of the cache."""
        self.cached_phases = dict(cached or {})
        self.live_phases = dict(live if live is not None else self.cached_phases)
        self.live_calls: list[str] = []

    def get(self, name: str) -> Object | None:
        return _namespace(name, self.cached_phases)

    async def get_live(self, name: str) -> Object | None:
        self.live_calls.append(name)
        return _namespace(name, self.live_phases)


def _namespace(name: str, phases: Mapping[str, str]) -> Object | None:
    if name not in phases:
        return None
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": {"phase": phases[name]}}
