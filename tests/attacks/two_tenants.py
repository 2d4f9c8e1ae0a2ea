"""Two tenants that are none of each other's business, each with somebody who may do everything in theirs."""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.support.clusters import E2eCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.tenants import Object, Tenants
from tests.e2e.support.visibility import wait_until_listed

# the most that a tenant's own people ever hold
ROLE = "cozy:tenant:super-admin"


@dataclass(frozen=True, slots=True)
class TenantAdmin:
    """`user` holds `namespace`, the workload namespace of the Tenant `tenant` of the root. In it is a Tenant `child`,
    which has the word `secret` in its labels, annotations and spec; it is in nothing else."""

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
    words = {"labels": {"word": secret}, "annotations": {"word": secret}}
    child = tenants.create(namespace, spec={"schedulingClass": secret}, **words)["metadata"]["name"]
    cluster.grant(user, ROLE, namespace)
    party = TenantAdmin(user, namespace.removeprefix("tenant-"), namespace, child, secret, cluster.client(user))
    wait_until_listed(party.client, tenants_path(), [child])
    return party


def without_controller_fields(tenant: Object) -> Object:
    """Without what its reconciler says of it, whenever it does."""
    metadata = tenant["metadata"]
    kept = {key: value for key, value in metadata.items() if key not in ("resourceVersion", "managedFields")}
    return {**tenant, "metadata": kept, "status": None}
