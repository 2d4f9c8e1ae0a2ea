"""A Namespace is deleted with its Tenant only if it was created for it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenant.finalizer import NamespaceDisposition, namespace_disposition
from controller.tenant.namespace_ownership import record_annotations
from registry.cluster.interface import HELMRELEASES, NAMESPACES, ROLEBINDINGS, SECRETS, SERVICEACCOUNTS
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenant.tenant_world import NOW, World
from tests.tenant_objects import tenant_summary
from tests.virtual_time import virtual


@virtual
async def test_an_adopted_namespace_stays_and_everything_of_ours_is_removed() -> None:
    world = World()
    theirs: Object = {"labels": {"theirs": "x"}, "annotations": {"apps.cozystack.io/adopt": "tenant-root/alpha"}}
    world.cluster.add(NAMESPACES, {"metadata": {"name": "tenant-alpha", **theirs}})
    service_account = {"metadata": {"name": "theirs", "namespace": "tenant-alpha"}}
    world.cluster.add(SERVICEACCOUNTS, service_account)
    async with world.running():
        await world.create("alpha", gateway=True, schedulingClass="gold")
        await world.settle()
        assert world.content(ROLEBINDINGS, "tenant-alpha", "cozy:tenant:admin")
        await world.delete("alpha")
        await world.settle()
        await world.edit(TENANTGATEWAYS, "tenant-alpha", "cozystack", {"metadata": {"finalizers": None}})
    after = world.namespace("tenant-alpha")["metadata"]
    assert (after["labels"], after["annotations"]) == (theirs["labels"], theirs["annotations"])
    assert "ownerReferences" not in after
    for res in (ROLEBINDINGS, SECRETS, SERVICEACCOUNTS):
        found = (await world.cluster.list(res, "tenant-alpha"))["items"]
        assert [each["metadata"]["name"] for each in found] == (["theirs"] if res == SERVICEACCOUNTS else [])
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


ALPHA = tenant_summary("alpha", uid="uid")


def namespace(*, uid: str = "uid", recorded: bool = True, **metadata: Any) -> Object:
    annotations = record_annotations(tenant_summary("alpha", uid=uid), NOW) if recorded else {}
    return {
        "metadata": {
            "name": "tenant-alpha",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": metadata.get("labels", {}),
            "annotations": {**annotations, **metadata.get("annotations", {})},
        }
    }


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(namespace(), NamespaceDisposition.DELETED, id="created for this tenant"),
        pytest.param(
            namespace(labels={"app.kubernetes.io/managed-by": "Helm"}),
            NamespaceDisposition.DELETED,
            id="created by us for a chart",
        ),
        pytest.param(namespace(uid="other"), NamespaceDisposition.RETAINED, id="created for a deleted tenant"),
        pytest.param(namespace(recorded=False), NamespaceDisposition.RETAINED, id="created by somebody else"),
        pytest.param(
            namespace(annotations={"apps.cozystack.io/adopt": "tenant-root/alpha"}),
            NamespaceDisposition.RETAINED,
            id="adopted",
        ),
        pytest.param(
            namespace(annotations={"apps.cozystack.io/tenant-namespace-made": "2020-01-01T00:00:00Z"}),
            NamespaceDisposition.RETAINED,
            id="a copied record",
        ),
        pytest.param(
            namespace(labels={"platform.cozystack.io/no-delete": "true"}),
            NamespaceDisposition.PROTECTED,
            id="protected",
        ),
    ],
)
def test_a_namespace_created_for_the_tenant_is_deleted_with_it(stored: Object, expected: NamespaceDisposition) -> None:
    assert namespace_disposition(stored, ALPHA) is expected
