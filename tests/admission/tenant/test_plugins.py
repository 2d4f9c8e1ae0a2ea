from __future__ import annotations

import pytest

from admission.chain import Chain
from admission.complete_caches import CompleteCaches
from admission.tenant.plugins import tenant_plugins
from apiserver.meta import errors
from apiserver.meta.resource import Object
from apiserver.request.context import User
from registry.tenant.summary import summarize
from tests.tenant_objects import ADMIN, ALICE, FakeNamespaces, attributes, root_summary, tenant, tenant_summary, tree_of


class Cache:
    async def wait_for_own_writes(self) -> None:
        """The tree is always up to date."""


def chain() -> Chain:
    tree = tree_of(root_summary(resourceQuotas={"cpu": 4}), tenant_summary("alpha"))
    namespaces = FakeNamespaces(dict.fromkeys(("tenant-root", "tenant-alpha", "default"), "Active"))
    return Chain(tenant_plugins(tree=tree, cache=Cache(), caches=CompleteCaches([]), namespaces=namespaces))


async def create(new: Object, user: User = ALICE) -> None:
    admission = chain()
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
async def test_the_chain_of_tenant_plugins_rejects_invalid_creates(new: Object, user: User, code: int) -> None:
    with pytest.raises(errors.StatusError) as caught:
        await create(new, user)

    assert caught.value.code == code


async def test_an_ordinary_tenant_is_admitted() -> None:
    await create(tenant("b", "tenant-alpha", spec={"resourceQuotas": {"cpu": 4}}))


async def test_a_tenant_with_children_is_not_deleted() -> None:
    tree = tree_of(tenant_summary("alpha"), summarize(tenant("b", "tenant-alpha")))
    plugins = tenant_plugins(
        tree=tree, cache=Cache(), caches=CompleteCaches([]), namespaces=FakeNamespaces({"tenant-root": "Active"})
    )

    with pytest.raises(errors.Conflict):
        async with Chain(plugins).validating(attributes("DELETE", None, tenant("alpha"), user=ADMIN)):
            pass
