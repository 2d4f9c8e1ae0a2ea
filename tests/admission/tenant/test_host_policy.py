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

    assert [host_change_denial(*change, "alice", ("other", group)) for change in changes] == ["", "", ""]


@pytest.mark.parametrize("group", NEAR_MISSES)
def test_near_misses_are_not_trusted(group: str) -> None:
    """R-249: only the exact names of the groups are trusted."""
    assert host_change_denial("", "a.example", "alice", (group,))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("", "dashboard.example.org", id="set"),
        pytest.param("a.example", "b.example", id="changed"),
        pytest.param("a.example", "", id="cleared"),
        pytest.param("a.example", "A.example", id="other case"),
    ],
)
def test_other_groups_may_not_set_change_or_clear_a_host(old: str, new: str) -> None:
    """R-242, R-243: neither to set nor to change or clear it."""
    why = host_change_denial(old, new, "alice", ("tenant-root-super-admin",))

    assert why.startswith("tenant.spec.host can only be set or changed by")
    assert "inherits the apex of its parent" in why
    assert f'user "alice" asked for "{new}" instead of "{old}"' in why
    assert "cozystack-tenant-host-policy" in why


async def test_a_rejected_host_change_is_a_403_for_the_tenant() -> None:
    with pytest.raises(errors.Forbidden) as caught:
        await TenantHostPolicy().validate(attributes("CREATE", tenant("alpha", spec={"host": "dashboard.example.org"})))

    assert caught.value.message.startswith(
        'tenants.apps.cozystack.io "alpha" is forbidden: tenant.spec.host can only be set or changed by'
    )
    assert [cause["field"] for cause in caught.value.causes] == ["spec.host"]


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
async def test_any_user_may_make_a_write_that_leaves_the_host_unchanged(new: Object, old: Object | None) -> None:
    await TenantHostPolicy().validate(attributes("UPDATE" if old else "CREATE", new, old))


async def test_a_user_named_like_a_trusted_service_account_is_not_trusted_without_its_group() -> None:
    user = User(name="system:serviceaccount:cozy-system:x", groups=("system:authenticated",))

    with pytest.raises(errors.Forbidden):
        await TenantHostPolicy().validate(attributes("CREATE", tenant("a", spec={"host": "x.example"}), user=user))


async def test_an_admin_may_set_a_host() -> None:
    await TenantHostPolicy().validate(attributes("CREATE", tenant("a", spec={"host": "x.example"}), user=ADMIN))
