from __future__ import annotations

import pytest

from admission.tenant.host_validation import TenantHosts, validate_host_change
from apiserver.meta import errors
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from tests.tenant_objects import ADMIN, ROOT_HOST, attributes, facts, root, tenant, tree_of


def problems(tree: TenantTree, new: TenantSummary, old: TenantSummary | None = None) -> list[str]:
    return [str(each) for each in validate_host_change(tree, new, old)]


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
def test_a_host_that_is_not_in_its_one_form_is_refused_when_it_is_set(host: str) -> None:
    """ATTACK-08."""
    found = problems(tree_of(), facts("alpha", spec={"host": host}))

    assert found
    assert all(each.startswith("spec.host: Invalid value: ") for each in found)


def test_a_stored_host_of_another_form_passes_unchanged() -> None:
    stored = facts("alpha", spec={"host": "Victim.Example."})

    assert problems(tree_of(stored), facts("alpha", spec={"host": "Victim.Example.", "etcd": True}), stored) == []


def test_a_punycode_host_is_a_host_like_any_other() -> None:
    assert problems(tree_of(), facts("alpha", spec={"host": "xn--80ak6aa92e.example"})) == []


def test_a_derived_host_that_no_label_can_hold_is_refused() -> None:
    """FACT-6."""
    name = "a" * 46
    parent = facts(name)

    found = problems(tree_of(parent), facts("b" * 10, f"tenant-{name}"))

    assert len(found) == 1
    assert "the effective host has 69 characters, and must have no more than 63" in found[0]


@pytest.mark.parametrize(("length", "fits"), [pytest.param(63, True, id="63"), pytest.param(64, False, id="64")])
def test_the_limit_of_an_own_host(length: int, fits: bool) -> None:
    host = "a" * (length - 31) + "." + "b" * 30

    assert (problems(tree_of(), facts("alpha", spec={"host": host})) == []) is fits


def test_a_descendant_that_becomes_too_long_is_a_condition_and_no_refusal() -> None:
    old = facts("alpha")
    tree = tree_of(old, facts("b" * 30, "tenant-alpha"))

    assert problems(tree, facts("alpha", spec={"host": f"{'a' * 40}.example"}), old) == []


@pytest.mark.parametrize(
    ("tree", "new", "taken"),
    [
        pytest.param(
            tree_of(facts("bob", spec={"host": "x.example"})),
            facts("alpha", spec={"host": "x.example"}),
            "x.example",
            id="two own hosts",
        ),
        pytest.param(
            tree_of(facts("bob", spec={"host": "alpha.example.org"})),
            facts("alpha"),
            "alpha.example.org",
            id="a derived host equals an own one",
        ),
        pytest.param(
            tree_of(facts("bob")),
            facts("alpha", spec={"host": "bob.example.org"}),
            "bob.example.org",
            id="an own host equals a derived one",
        ),
        pytest.param(tree_of(), facts("alpha", spec={"host": ROOT_HOST}), ROOT_HOST, id="the root's"),
        pytest.param(
            tree_of(facts("bob", spec={"host": "X.Example."})),
            facts("alpha", spec={"host": "x.example"}),
            "x.example",
            id="another spelling that is stored",
        ),
    ],
)
def test_two_tenants_may_not_have_one_host(tree: TenantTree, new: TenantSummary, taken: str) -> None:
    """VAP-7."""
    assert problems(tree, new) == [f'spec.host: Duplicate value: "{taken}": another tenant has this host']


def test_the_hosts_of_descendants_are_judged_too() -> None:
    old = facts("alpha")
    tree = tree_of(old, facts("beta", "tenant-alpha"), facts("bob", spec={"host": "beta.a.example"}))

    found = problems(tree, facts("alpha", spec={"host": "a.example"}), old)

    assert found == ['spec.host: Duplicate value: "beta.a.example": another tenant has this host']


def test_a_descendant_with_a_host_of_its_own_can_be_in_the_way() -> None:
    old = facts("alpha")
    tree = tree_of(old, facts("beta", "tenant-alpha", spec={"host": "c.a.example"}), facts("c", "tenant-alpha"))

    found = problems(tree, facts("alpha", spec={"host": "a.example"}), old)

    assert found == ['spec.host: Duplicate value: "c.a.example": another tenant has this host']


def test_hosts_may_be_passed_on_within_a_subtree() -> None:
    """What the write itself frees is free."""
    old = facts("alpha", spec={"host": "a.example"})
    tree = tree_of(old, facts("beta", "tenant-alpha"))

    assert problems(tree, facts("alpha", spec={"host": "beta.a.example"}), old) == []


def test_a_duplicate_of_old_does_not_stop_other_changes() -> None:
    old = facts("alpha", spec={"host": "x.example"})
    tree = tree_of(old, facts("bob", spec={"host": "x.example"}))

    assert problems(tree, facts("alpha", spec={"host": "x.example", "etcd": True}), old) == []


def test_a_suffix_is_no_equality() -> None:
    tree = tree_of(facts("bob", spec={"host": "victim.example"}))

    assert problems(tree, facts("alpha", spec={"host": "evilvictim.example"})) == []


async def test_the_plugin_answers_422_and_names_no_other_tenant() -> None:
    plugin = TenantHosts(tree=tree_of(facts("bob", spec={"host": "x.example"})))

    with pytest.raises(errors.Invalid) as refused:
        await plugin.validate(attributes("CREATE", tenant("alpha", spec={"host": "x.example"}), user=ADMIN))

    assert refused.value.causes[0]["field"] == "spec.host"
    assert refused.value.causes[0]["reason"] == "FieldValueDuplicate"
    assert "bob" not in refused.value.message


async def test_creating_the_root_again_is_no_duplicate_of_itself() -> None:
    plugin = TenantHosts(tree=tree_of(root()))

    await plugin.validate(attributes("CREATE", tenant("root"), user=ADMIN))
