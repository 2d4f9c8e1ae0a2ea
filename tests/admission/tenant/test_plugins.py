from __future__ import annotations

import pytest

from admission.chain import Chain
from admission.complete_caches import CompleteCaches
from admission.tenant.plugins import tenant_plugins, tree_plugins
from apiserver.meta import errors
from apiserver.meta.resource import Object
from apiserver.request.context import User
from registry.tenant.summary import summarize
from registry.tenant.tree import TenantTree
from tests.tenant_objects import ADMIN, ALICE, FakeNamespaces, attributes, root_summary, tenant, tenant_summary, tree_of


class Cache:
    async def wait_for_own_writes(self) -> None:
        """The tree is always up to date."""


def chain(tree: TenantTree, *, alone: bool) -> Chain:
    namespaces = FakeNamespaces(dict.fromkeys(("tenant-root", "tenant-alpha", "default"), "Active"))
    judging = tree_plugins(tree=tree, namespaces=namespaces)
    caches = CompleteCaches([])
    return Chain(tenant_plugins(cache=Cache(), caches=caches, namespaces=namespaces, judging=judging, alone=alone))


@pytest.fixture(params=[True, False], ids=["alone", "with other replicas"])
def alone(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def create(new: Object, user: User = ALICE, *, alone: bool) -> None:
    tree = tree_of(root_summary(resourceQuotas={"cpu": 4}), tenant_summary("alpha"))
    admission = chain(tree, alone=alone)
    request = attributes("CREATE", new, user=user)
    await admission.mutate(request)
    async with admission.validating(request):
        pass


@pytest.mark.parametrize(
    ("new", "user", "code"),
    [
        pytest.param(tenant("b", "nowhere"), ALICE, 404, id="a missing namespace"),
        pytest.param(tenant("b", "default"), ALICE, 403, id="a namespace without a tenant"),
        pytest.param(
            tenant("b", spec={"host": "Not Canonical"}),
            ALICE,
            403,
            id="an untrusted user, before the host is validated",
        ),
        pytest.param(tenant("b", spec={"host": "Not Canonical"}), ADMIN, 422, id="a host that is not canonical"),
        pytest.param(tenant("b", spec={"resourceQuotas": {"cpu": 5}}), ALICE, 422, id="an exceeded quota"),
    ],
)
async def test_the_chain_of_tenant_plugins_rejects_invalid_creates(
    new: Object, user: User, code: int, alone: bool
) -> None:
    with pytest.raises(errors.StatusError) as caught:
        await create(new, user, alone=alone)

    assert caught.value.code == code


async def test_an_ordinary_tenant_is_admitted(alone: bool) -> None:
    await create(tenant("b", "tenant-alpha", spec={"resourceQuotas": {"cpu": 4}}), alone=alone)


async def test_a_tenant_with_children_is_not_deleted(alone: bool) -> None:
    tree = tree_of(tenant_summary("alpha"), summarize(tenant("b", "tenant-alpha")))
    deletion = attributes("DELETE", None, tenant("alpha"), user=ADMIN)

    with pytest.raises(errors.Conflict):
        async with chain(tree, alone=alone).validating(deletion):
            pass
