from __future__ import annotations

import pytest

from admission.tenant.host_policy import TenantHostPolicy, host_change_denial
from apiserver.meta import errors
from apiserver.meta.resource import Object
from apiserver.request.context import User
from tests.tenant_objects import ADMIN, attributes, tenant

TRUSTED = [
    pytest.param("system:masters", id="R-244"),
    pytest.param("system:serviceaccounts:cozy-system", id="R-245"),
    pytest.param("system:serviceaccounts:cozy-cert-manager", id="R-246"),
    pytest.param("system:serviceaccounts:cozy-fluxcd", id="R-247"),
    pytest.param("system:serviceaccounts:kube-system", id="R-248"),
]
NEAR_MISSES = [
    "system:serviceaccounts",
    "system:serviceaccounts:cozy-flux",
    "cozystack-cluster-admin",
    "SYSTEM:MASTERS",
]


@pytest.mark.parametrize("group", TRUSTED)
def test_trusted_groups_may_set_change_and_clear_a_host(group: str) -> None:
    changes = [("", "a.example"), ("a.example", "b.example"), ("a.example", "")]

    assert [host_change_denial(*change, ("other", group)) for change in changes] == ["", "", ""]


@pytest.mark.parametrize("group", NEAR_MISSES)
def test_near_misses_are_not_trusted(group: str) -> None:
    """R-249."""
    assert host_change_denial("", "a.example", (group,))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("", "dashboard.example.org", id="set"),
        pytest.param("a.example", "b.example", id="changed"),
        pytest.param("a.example", "", id="cleared"),
        pytest.param("a.example", "A.example", id="respelled"),
    ],
)
def test_others_may_not(old: str, new: str) -> None:
    """R-242, R-243."""
    why = host_change_denial(old, new, ("tenant-root-super-admin",))

    assert why.startswith("tenant.spec.host can only be set or changed by")
    assert "inherits the apex of its parent" in why
    assert "cozystack-tenant-host-policy" in why


async def test_the_refusal_is_a_403_of_the_tenant() -> None:
    with pytest.raises(errors.Forbidden) as refused:
        await TenantHostPolicy().validate(attributes("CREATE", tenant("alpha", spec={"host": "dashboard.example.org"})))

    assert refused.value.message.startswith(
        'tenants.apps.cozystack.io "alpha" is forbidden: tenant.spec.host can only be set or changed by'
    )
    assert [cause["field"] for cause in refused.value.causes] == ["spec.host"]


def _without_spec() -> Object:
    bare = tenant("alpha")
    del bare["spec"]
    return bare


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param(tenant("alpha"), None, id="R-012: no host"),
        pytest.param(tenant("alpha", spec={"host": ""}), None, id="R-012: an empty host"),
        pytest.param(_without_spec(), None, id="FACT-1: no spec"),
        pytest.param(
            tenant("alpha", spec={"host": "a.example", "etcd": True}),
            tenant("alpha", spec={"host": "a.example"}),
            id="R-250: an unchanged host",
        ),
    ],
)
async def test_what_leaves_the_host_alone_passes_for_everybody(new: Object, old: Object | None) -> None:
    await TenantHostPolicy().validate(attributes("UPDATE" if old else "CREATE", new, old))


async def test_a_user_named_like_a_service_account_is_nobody_without_the_group() -> None:
    impostor = User(name="system:serviceaccount:cozy-system:x", groups=("system:authenticated",))

    with pytest.raises(errors.Forbidden):
        await TenantHostPolicy().validate(attributes("CREATE", tenant("a", spec={"host": "x.example"}), user=impostor))


async def test_an_admin_may() -> None:
    await TenantHostPolicy().validate(attributes("CREATE", tenant("a", spec={"host": "x.example"}), user=ADMIN))
