"""An update of a Tenant as an admission request, with fakes of its sources, to measure plugins without a server."""

from __future__ import annotations

from aiohttp.test_utils import make_mocked_request

from apiserver.admission import Attributes
from apiserver.authorization.authorizer import NO_OPINION, AccessAttributes, Decision
from apiserver.meta.resource import Object
from apiserver.request.context import RequestContext, User
from apiserver.request.request_info import Query, RequestInfo
from registry.tenant.types import tenant_resource

_TENANT: Object = {
    "apiVersion": "apps.cozystack.io/v1alpha1",
    "kind": "Tenant",
    "metadata": {"name": "one", "namespace": "tenant-root", "labels": {f"label-{n}": "value" for n in range(10)}},
    "spec": {"host": "one.example.org", "resourceQuotas": {f"limits.{n}": "5" for n in range(10)}},
}
_NAMESPACE: Object = {"metadata": {"name": "tenant-root", "labels": {"kind": "tenant"}}, "status": {"phase": "Active"}}


class SingleNamespaceSource:
    async def wait_until_synced(self, seconds: float) -> bool:
        return True

    def get(self, name: str) -> Object | None:
        return _NAMESPACE

    async def get_live(self, name: str) -> Object | None:
        return None


class NoOpinionAuthorizer:
    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return NO_OPINION


def update_request() -> Attributes:
    path = "/apis/apps.cozystack.io/v1alpha1/namespaces/tenant-root/tenants/one"
    info = RequestInfo(method="PUT", path=path, verb="update", is_resource=True)
    return Attributes(
        operation="UPDATE",
        resource=tenant_resource(),
        namespace="tenant-root",
        name="one",
        object=_TENANT,
        old_object=_TENANT,
        user=User(name="alice", groups=("tenants", "system:authenticated")),
        context=RequestContext(http=make_mocked_request("PUT", path), info=info, query=Query(""), audit_id="benchmark"),
    )
