"""Administrators of unrelated tenants, each with the highest tenant role in their own."""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.support.clusters.cluster import E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Object, Tenants
from tests.e2e.support.visibility import wait_until_listed

# the highest role that users of a tenant get
ROLE = "cozy:tenant:super-admin"


@dataclass(frozen=True, slots=True)
class TenantAdmin:
    """A user who administers `namespace`, the workload namespace of the Tenant `tenant` of the root namespace. Its
    child Tenant `child` is the only object with the word `secret`: in its labels, annotations and spec."""

    user: str
    tenant: str
    namespace: str
    child: str
    secret: str
    client: Client

    @property
    def children(self) -> str:
        return tenants_path(self.namespace)

    @property
    def child_path(self) -> str:
        return tenants_path(self.namespace, self.child)


def create_tenant_admin(cluster: E2eCluster, tenants: Tenants, user: str) -> TenantAdmin:
    namespace = tenants.create_with_namespace()
    secret = f"secret-{user}"
    metadata = {"labels": {"word": secret}, "annotations": {"word": secret}}
    child = tenants.create(namespace, spec={"schedulingClass": secret}, **metadata)["metadata"]["name"]
    cluster.grant(user, ROLE, namespace)
    admin = TenantAdmin(user, namespace.removeprefix("tenant-"), namespace, child, secret, cluster.client(user))
    wait_until_listed(admin.client, tenants_path(), [child])
    # the cluster's authorizer may see the binding after our server
    tenants.wait(f"{user} may read {child}", lambda: admin.client.get(admin.child_path).status == 200)
    return admin


def without_controller_fields(tenant: Object) -> Object:
    """The Tenant without the fields that change whenever the reconciler writes its status."""
    metadata = tenant["metadata"]
    stable = {key: value for key, value in metadata.items() if key not in ("resourceVersion", "managedFields")}
    return {**tenant, "metadata": stable, "status": None}
