from __future__ import annotations

import pytest

from admission.tenant.disclosure import Disclosure
from admission.tenant.host_validation import TenantHosts, validate_host_change
from apiserver.authorization.authorizer import PrivilegedGroups
from apiserver.meta import errors
from apiserver.request.context import User
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from tests.tenant_objects import ADMIN, ALICE, ROOT_HOST, attributes, root_summary, tenant, tenant_summary, tree_of


def problems(tree: TenantTree, new: TenantSummary, old: TenantSummary | None = None) -> list[str]:
    return [str(each.error) for each in validate_host_change(tree, new, old)]


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("Victim.example", id="upper case"),
        pytest.param("victim.example.", id="a trailing dot"),
        pytest.param("*.victim.example", id="a wildcard"),
        pytest.param("10.0.0.1", id="an IP address"),
        pytest.param("víctim.example", id="letters beyond ASCII"),
        pytest.param("victim..example", id="an empty label"),
        pytest.param("victim example", id="a space"),
        pytest.param("victim\0.example", id="a NUL"),
        pytest.param("-victim.example", id="a leading dash"),
        pytest.param("a" * 64 + ".example", id="a label of 64"),
        pytest.param(".".join(["a" * 60] * 5), id="more than 253"),
    ],
)
def test_setting_a_host_that_is_not_canonical_is_rejected(host: str) -> None:
    """ATTACK-08: two spellings of one host would pass as two hosts."""
    found = problems(tree_of(), tenant_summary("alpha", spec={"host": host}))

    assert found
    assert all(each.startswith("spec.host: Invalid value: ") for each in found)


def test_a_stored_host_that_is_not_canonical_may_stay() -> None:
    stored = tenant_summary("alpha", spec={"host": "Victim.Example."})

    assert (
        problems(tree_of(stored), tenant_summary("alpha", spec={"host": "Victim.Example.", "etcd": True}), stored) == []
    )


def test_a_punycode_host_is_valid() -> None:
    assert problems(tree_of(), tenant_summary("alpha", spec={"host": "xn--80ak6aa92e.example"})) == []


def test_an_inherited_host_that_is_too_long_for_a_label_is_rejected() -> None:
    """FACT-6: the host is a label of the namespace."""
    name = "a" * 46
    parent = tenant_summary(name)

    found = problems(tree_of(parent), tenant_summary("b" * 10, f"tenant-{name}"))

    assert len(found) == 1
    assert "the effective host has 69 characters, and must have no more than 63" in found[0]


@pytest.mark.parametrize(
    ("user", "remedy"),
    [
        pytest.param(ADMIN, "choose a shorter name, or set a shorter spec.host", id="who may set a host"),
        pytest.param(
            ALICE,
            "choose a shorter name, or ask a platform administrator to set a shorter spec.host",
            id="who may not",
        ),
    ],
)
async def test_the_remedy_for_a_derived_host_fits_who_asks(user: User, remedy: str) -> None:
    parent = tenant_summary("a" * 46)
    request = attributes("CREATE", tenant("b" * 10, f"tenant-{'a' * 46}"), user=user)
    with pytest.raises(errors.Invalid, match=remedy):
        await TenantHosts(tree=tree_of(parent)).validate(request)


@pytest.mark.parametrize(("length", "fits"), [pytest.param(63, True, id="63"), pytest.param(64, False, id="64")])
def test_a_host_of_its_own_may_have_63_characters(length: int, fits: bool) -> None:
    host = "a" * (length - 31) + "." + "b" * 30

    assert (problems(tree_of(), tenant_summary("alpha", spec={"host": host})) == []) is fits


def test_a_host_change_that_makes_the_host_of_a_descendant_too_long_is_admitted() -> None:
    old = tenant_summary("alpha")
    tree = tree_of(old, tenant_summary("b" * 30, "tenant-alpha"))

    assert problems(tree, tenant_summary("alpha", spec={"host": f"{'a' * 40}.example"}), old) == []


@pytest.mark.parametrize(
    ("tree", "new", "duplicate"),
    [
        pytest.param(
            tree_of(tenant_summary("bob", spec={"host": "x.example"})),
            tenant_summary("alpha", spec={"host": "x.example"}),
            "x.example",
            id="two own hosts",
        ),
        pytest.param(
            tree_of(tenant_summary("bob", spec={"host": "alpha.example.org"})),
            tenant_summary("alpha"),
            "alpha.example.org",
            id="an inherited host equals an own one",
        ),
        pytest.param(
            tree_of(tenant_summary("bob")),
            tenant_summary("alpha", spec={"host": "bob.example.org"}),
            "bob.example.org",
            id="an own host equals an inherited one",
        ),
        pytest.param(tree_of(), tenant_summary("alpha", spec={"host": ROOT_HOST}), ROOT_HOST, id="the root's"),
        pytest.param(
            tree_of(tenant_summary("bob", spec={"host": "X.Example."})),
            tenant_summary("alpha", spec={"host": "x.example"}),
            "x.example",
            id="a stored host in another spelling",
        ),
    ],
)
def test_two_tenants_may_not_have_the_same_host(tree: TenantTree, new: TenantSummary, duplicate: str) -> None:
    """VAP-7: no matter whether the hosts are set or inherited."""
    assert problems(tree, new) == [
        f'spec.host: Duplicate value: "{duplicate}": another tenant has this host; choose another one'
    ]


def test_a_host_change_that_gives_a_descendant_a_duplicate_host_is_rejected() -> None:
    old = tenant_summary("alpha")
    tree = tree_of(old, tenant_summary("beta", "tenant-alpha"), tenant_summary("bob", spec={"host": "beta.a.example"}))

    found = problems(tree, tenant_summary("alpha", spec={"host": "a.example"}), old)

    assert found == ['spec.host: Duplicate value: "beta.a.example": another tenant has this host; choose another one']


@pytest.mark.parametrize(
    ("user", "told"),
    [
        pytest.param(
            ADMIN,
            'spec.host: Duplicate value: "beta.a.example": another tenant has this host; choose another one',
            id="may",
        ),
        pytest.param(
            ALICE,
            "spec.host: Forbidden: another tenant has a host that a sub-tenant would inherit; choose another one",
            id="may not",
        ),
    ],
)
async def test_a_descendant_with_a_duplicate_host_is_named_only_to_who_may_get_it(user: User, told: str) -> None:
    """ATTACK-15: its host begins with its name."""
    old = tenant_summary("alpha")
    tree = tree_of(old, tenant_summary("beta", "tenant-alpha"), tenant_summary("bob", spec={"host": "beta.a.example"}))
    plugin = TenantHosts(tree=tree, disclosure=Disclosure(PrivilegedGroups()))
    request = attributes("UPDATE", tenant("alpha", spec={"host": "a.example"}), tenant("alpha"), user=user)
    with pytest.raises(errors.StatusError) as caught:
        await plugin.validate(request)
    assert caught.value.message.endswith(told)
    assert ("beta" in str(caught.value.details)) is (user is ADMIN)


def test_a_host_change_may_collide_with_the_own_host_of_a_descendant() -> None:
    old = tenant_summary("alpha")
    tree = tree_of(
        old, tenant_summary("beta", "tenant-alpha", spec={"host": "c.a.example"}), tenant_summary("c", "tenant-alpha")
    )

    found = problems(tree, tenant_summary("alpha", spec={"host": "a.example"}), old)

    assert found == ['spec.host: Duplicate value: "c.a.example": another tenant has this host; choose another one']


def test_a_tenant_may_take_the_inherited_host_of_its_descendant() -> None:
    """A host that the same write frees is available."""
    old = tenant_summary("alpha", spec={"host": "a.example"})
    tree = tree_of(old, tenant_summary("beta", "tenant-alpha"))

    assert problems(tree, tenant_summary("alpha", spec={"host": "beta.a.example"}), old) == []


def test_an_existing_duplicate_host_does_not_prevent_other_changes() -> None:
    old = tenant_summary("alpha", spec={"host": "x.example"})
    tree = tree_of(old, tenant_summary("bob", spec={"host": "x.example"}))

    assert problems(tree, tenant_summary("alpha", spec={"host": "x.example", "etcd": True}), old) == []


def test_a_host_that_ends_with_another_host_is_not_a_duplicate() -> None:
    tree = tree_of(tenant_summary("bob", spec={"host": "victim.example"}))

    assert problems(tree, tenant_summary("alpha", spec={"host": "evilvictim.example"})) == []


async def test_a_duplicate_host_is_a_422_that_names_no_other_tenant() -> None:
    plugin = TenantHosts(tree=tree_of(tenant_summary("bob", spec={"host": "x.example"})))

    with pytest.raises(errors.Invalid) as caught:
        await plugin.validate(attributes("CREATE", tenant("alpha", spec={"host": "x.example"}), user=ADMIN))

    assert caught.value.causes[0]["field"] == "spec.host"
    assert caught.value.causes[0]["reason"] == "FieldValueDuplicate"
    assert "bob" not in caught.value.message


async def test_the_root_tenant_is_not_a_duplicate_of_itself() -> None:
    plugin = TenantHosts(tree=tree_of(root_summary()))

    await plugin.validate(attributes("CREATE", tenant("root"), user=ADMIN))
