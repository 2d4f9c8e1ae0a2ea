"""A write is held while a claim of another could exclude it, and only then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from admission.tenant.claims.claim import Claim, Outcome, ProposedWrite
from admission.tenant.claims.possible_tree import PossibleTree, conflicts_with_claims, conflicts_with_tree
from admission.tenant.quota_ledger import Ledger
from apiserver.meta.resource import Key
from registry.tenant.quota_keys import NANO
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree, possible_hosts
from tests.tenant_objects import names, tenant_summary, tree_of


def summary(name: str, namespace: str = "tenant-root", **spec: Any) -> TenantSummary:
    return tenant_summary(name, namespace, spec=spec)


def quota(name: str, namespace: str = "tenant-root", **amounts: Any) -> TenantSummary:
    return summary(name, namespace, resourceQuotas=amounts)


def created(new: TenantSummary) -> Claim:
    return ProposedWrite(new, None).claim(id=f"create {new.key}", holder="two", base=0)


def changed(old: TenantSummary, new: TenantSummary) -> Claim:
    return ProposedWrite(new, old).claim(id=f"change {new.key}", holder="two", base=0)


def creating(new: TenantSummary) -> ProposedWrite:
    return ProposedWrite(new, None)


P4, P2 = quota("p", cpu=4), quota("p", cpu=2)
A1, A3 = quota("a", "tenant-p", cpu=1), quota("a", "tenant-p", cpu=3)
WIDE = Claim(id="w", holder="two", key=Key("x", "y"), base=0, creates=False, outcomes=(Outcome(),), wide=True)


@pytest.mark.parametrize(
    ("stored", "claims", "write", "expected"),
    [
        pytest.param(
            [],
            [created(summary("b", host="x.example"))],
            creating(summary("a", host="x.example")),
            "held",
            id="the host of a create",
        ),
        pytest.param(
            [],
            [created(summary("b", host="y.example"))],
            creating(summary("a", host="x.example")),
            "admitted",
            id="another host",
        ),
        pytest.param(
            [],
            [created(summary("b", host="b.x.example"))],
            creating(summary("a", host="x.example")),
            "admitted",
            id="a host below the host of a new tenant",
        ),
        pytest.param(
            [],
            [created(summary("b", host="a.example.org"))],
            creating(summary("a")),
            "held",
            id="a host that a plain create derives",
        ),
        pytest.param(
            [],
            [created(summary("b"))],
            creating(summary("a", host="b.example.org")),
            "held",
            id="the derived host of a plain create",
        ),
        pytest.param([], [created(summary("b"))], creating(summary("a")), "admitted", id="two plain creates"),
        pytest.param(
            [summary("b", host="y.example")],
            [changed(summary("b", host="y.example"), summary("b", host="z.example"))],
            creating(summary("a", host="z.example")),
            "held",
            id="the new host of an update",
        ),
        pytest.param(
            [summary("b", host="z.example")],
            [changed(summary("b", host="y.example"), summary("b", host="z.example"))],
            creating(summary("a", host="y.example")),
            "held",
            id="the old host of an update, which may be set back",
        ),
        pytest.param(
            [summary("b"), summary("c", "tenant-b")],
            [changed(summary("b"), summary("b", host="z.example"))],
            creating(summary("a", host="c.z.example")),
            "held",
            id="a host below the new host of a tenant with children",
        ),
        pytest.param(
            [summary("b")],
            [changed(summary("b"), summary("b", host="z.example"))],
            creating(summary("a", "tenant-b")),
            "held",
            id="a host that is inherited from a claim",
        ),
        pytest.param(
            [P4], [created(A3)], creating(quota("b", "tenant-p", cpu=2)), "held", id="what a create leaves over"
        ),
        pytest.param(
            [P4],
            [created(A3)],
            creating(quota("b", "tenant-p", cpu=1)),
            "admitted",
            id="less than a create leaves over",
        ),
        pytest.param([P4], [created(A3)], creating(quota("b", "tenant-p", memory=9)), "admitted", id="another key"),
        pytest.param(
            [P4, A1], [changed(A1, A3)], creating(quota("b", "tenant-p", cpu=2)), "held", id="what a raise leaves over"
        ),
        pytest.param(
            [P4, A3],
            [changed(A3, A1)],
            creating(quota("b", "tenant-p", cpu=2)),
            "rejected",
            id="the tree alone forbids it",
        ),
        pytest.param([P4], [changed(P4, P2)], creating(A3), "held", id="a lower quota of the parent"),
        pytest.param([P4], [changed(P4, quota("p"))], creating(A3), "admitted", id="a removed quota of the parent"),
        pytest.param(
            [quota("g", cpu=4), quota("p", "tenant-g", cpu=4)],
            [changed(quota("p", "tenant-g", cpu=4), quota("p", "tenant-g"))],
            creating(quota("q", "tenant-g", cpu=1)),
            "rejected",
            id="the tree alone forbids it, although a removed quota frees something",
        ),
        pytest.param([P4], [created(A3)], ProposedWrite(P2, P4), "held", id="less than a create needs"),
        pytest.param([P4], [created(A3)], ProposedWrite(quota("p", cpu=8), P4), "admitted", id="a raise of the parent"),
        pytest.param([], [WIDE], creating(summary("a", host="x.example")), "held", id="a wide claim"),
        pytest.param([], [WIDE], creating(summary("a")), "admitted", id="a wide claim and a plain create"),
        pytest.param(
            [],
            [created(summary("a", host="y.example"))],
            creating(summary("a", host="x.example")),
            "admitted",
            id="a claim to the same tenant",
        ),
    ],
)
def test_a_write_is_held_by_claims_that_could_exclude_it(
    stored: Sequence[TenantSummary], claims: Sequence[Claim], write: ProposedWrite, expected: str
) -> None:
    tree = tree_of(*stored)
    if conflicts_with_tree(tree, write):
        verdict = "rejected"
    else:
        verdict = "held" if conflicts_with_claims(tree, claims, write) else "admitted"
    assert verdict == expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param(0, "admitted", id="nothing is used"),
        pytest.param(1, "admitted", id="enough is left for both"),
        pytest.param(2, "held", id="not enough is left for both"),
        pytest.param(4, "rejected", id="nothing is left"),
    ],
)
def test_what_is_used_already_is_left_for_neither_of_two_writes(used: int, expected: str) -> None:
    """Each of two replicas finds that one of the two fits."""

    def usage(namespace: str) -> Mapping[str, int]:
        return {"limits.cpu": used * NANO} if namespace == "tenant-p-lowered" else {}

    tree = tree_of(P4, quota("lowered", "tenant-p", cpu=0))
    write, other = creating(quota("a", "tenant-p", cpu="1500m")), created(quota("b", "tenant-p", cpu="1500m"))

    if conflicts_with_tree(tree, write, usage):
        verdict = "rejected"
    else:
        verdict = "held" if conflicts_with_claims(tree, [other], write, usage) else "admitted"
    assert verdict == expected


def tree_with(*tenants: TenantSummary) -> TenantTree:
    return tree_of(*tenants)


def test_created_tenants_are_children_of_their_parents() -> None:
    possible = PossibleTree(tree_with(P4, quota("m", "tenant-p")), [created(A3), created(quota("z", "tenant-p"))])
    assert names(possible.children("tenant-p")) == ["a", "m", "z"]
    assert names(possible.children("tenant-root")) == ["p"]
    found = possible.by_namespace("tenant-p-a")
    assert found is not None
    assert found.key.name == "a"


def test_of_several_alternatives_the_one_counts_that_leaves_the_least() -> None:
    a_without = quota("a", "tenant-p")
    grandchild = quota("c", "tenant-p-a", cpu=2)
    possible = PossibleTree(tree_with(P4, A3, grandchild), [changed(P4, P2), changed(A3, a_without)])
    ledger = Ledger(possible)
    assert {key: limit.amount for key, limit in ledger.least(P4).items()} == {
        "limits.cpu": 2 * 10**9,
        "requests.cpu": 2 * 10**9,
    }
    # what it declares, and what its child declares if it declares nothing any more
    assert ledger.claimed_below(P4, {"requests.cpu"}) == {"requests.cpu": 5 * 10**9}
    limits = [(each.key.name, keys) for each, keys in ledger.limits(grandchild, {"requests.cpu"})]
    assert limits == [("a", {"requests.cpu"}), ("p", {"requests.cpu"})]


def test_a_tenant_may_have_the_hosts_of_all_alternatives_above_it() -> None:
    b, c = summary("b"), summary("c", "tenant-b")
    possible = PossibleTree(tree_with(b, c), [changed(b, summary("b", host="z.example"))])
    assert possible_hosts(possible, c) == {"c.b.example.org", "c.z.example"}
