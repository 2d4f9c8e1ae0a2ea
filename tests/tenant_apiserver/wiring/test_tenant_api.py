from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from admission.chain import ignore_observation
from apiserver.authorization.authorizer import PrivilegedGroups
from apiserver.meta.errors import StatusError
from controller.platform.settings import PlatformSettings, ReloadableSettings
from registry.cluster.interface import HELMRELEASES, NAMESPACES
from tenant_apiserver.wiring.tenant_api import TenantApi, TenantApiConfig, tenant_api
from tests.fake_cluster import FakeCluster
from tests.tenant_objects import ADMIN, ALICE, attributes, release, tenant
from tests.virtual_time import virtual


@asynccontextmanager
async def running_api(
    cluster: FakeCluster, settings: ReloadableSettings, *, controllers: bool = False
) -> AsyncIterator[TenantApi]:
    """The Tenant API over a cluster with the tenants root and alpha, which has a quota."""
    await cluster.create(HELMRELEASES, release("root"))
    await cluster.create(HELMRELEASES, release("alpha", spec={"resourceQuotas": {"cpu": "4"}}))
    for name in ("tenant-root", "tenant-alpha"):
        await cluster.create(NAMESPACES, {"metadata": {"name": name}, "status": {"phase": "Active"}})
    api = tenant_api(
        TenantApiConfig(
            cluster=cluster,
            settings=settings,
            root_host="example.org",
            authorizer=PrivilegedGroups(),
            observe=ignore_observation,
            cluster_admission=lambda _: (),
            admission_informers=(),
            finalizer=controllers,
        )
    )
    tasks = [asyncio.create_task(each.run()) for each in api.informers]
    # the clock is virtual
    await asyncio.sleep(1)
    yield api
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@virtual
async def test_the_platform_decides_whether_refusals_tell_what_is_left_of_a_quota() -> None:
    """A reloaded setting counts at once; users who may not get the parent are never told."""
    settings = ReloadableSettings(PlatformSettings())
    new = tenant("b", "tenant-alpha", spec={"resourceQuotas": {"cpu": "5"}})
    told = "5 is more than the 4 that are left of the parent's 4"
    withheld = "5 is more than what is left of the quota"
    async with running_api(FakeCluster(), settings) as api:
        for quota_messages, user, expected in (
            ("amounts", ADMIN, told),
            ("amounts", ALICE, withheld),
            ("plain", ADMIN, withheld),
        ):
            settings.replace(PlatformSettings.model_validate({"tenants": {"quotaMessages": quota_messages}}))
            with pytest.raises(StatusError) as caught:
                async with api.admission.validating(attributes("CREATE", new, user=user)):
                    pass
            assert expected in caught.value.message


@virtual
@pytest.mark.parametrize("controllers", [True, False], ids=["with our controllers", "with those of the cluster"])
async def test_a_service_without_a_chart_of_ours_gives_a_warning_only_beside_our_controllers(controllers: bool) -> None:
    request = attributes("CREATE", tenant("b", "tenant-alpha", spec={"etcd": True}), user=ADMIN)
    settings = ReloadableSettings(PlatformSettings())
    async with (
        running_api(FakeCluster(), settings, controllers=controllers) as api,
        api.admission.validating(request),
    ):
        pass
    assert any("no controller on this cluster" in each for each in request.context.warnings) is controllers
