from __future__ import annotations

import pytest

from admission.tenant.placement import TenantPlacement
from apiserver.meta import errors
from tests.tenant_objects import attributes, tenant, tenant_summary, tree_of


async def test_a_tenant_is_created_in_the_workload_namespace_of_another_tenant() -> None:
    plugin = TenantPlacement(tree=tree_of(tenant_summary("alpha")))

    await plugin.validate(attributes("CREATE", tenant("beta", "tenant-alpha")))


async def test_no_tenant_is_created_in_a_namespace_without_a_tenant() -> None:
    with pytest.raises(errors.Forbidden) as caught:
        await TenantPlacement(tree=tree_of()).validate(attributes("CREATE", tenant("alpha", "default")))

    assert caught.value.message == (
        'tenants.apps.cozystack.io "alpha" is forbidden: a tenant can be created only in the workload namespace of an '
        'existing tenant, and namespace "default" is not one'
    )


async def test_no_tenant_is_created_under_one_that_is_being_deleted() -> None:
    plugin = TenantPlacement(tree=tree_of(tenant_summary("alpha", terminating=True)))

    with pytest.raises(errors.Forbidden, match='the tenant of namespace "tenant-alpha" is being deleted'):
        await plugin.validate(attributes("CREATE", tenant("beta", "tenant-alpha")))


def test_placement_is_not_validated_on_update() -> None:
    orphan = tenant("alpha", "default")

    assert not TenantPlacement(tree=tree_of()).handles(attributes("UPDATE", orphan, orphan))
