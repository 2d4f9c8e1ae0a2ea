"""The policies of Cozystack's chart differ from ours in exactly the cells below, each for its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from apiserver.meta.resource import Object
from tests.controller.tenant.isolation.cells import CELLS, SEED
from tests.controller.tenant.isolation.chart_policies import chart_policies
from tests.controller.tenant.isolation.tenant_forest import Forest
from tests.tenant_objects import root_summary, tenant_summary

FROM_CLUSTER = "a Pod takes connections of the entity `cluster`, that is of every Pod, and of the world"
NAMES_CUT = "ancestors are cut out of names, so that the root is none below the first level"
ANY_6443 = "port 6443 of anything, which includes the control planes of other tenants"
OUTSIDE = "an API server outside of the cluster counts as the world as well"

DIFFERENCES = {
    "grandchild to the root's ingress": NAMES_CUT,
    "own etcd without the label": FROM_CLUSTER,
    "the parent's etcd without the label": FROM_CLUSTER,
    "the parent's etcd from one that has its own": FROM_CLUSTER,
    "the child's etcd from the parent": FROM_CLUSTER,
    "the world to etcd": FROM_CLUSTER,
    "default to pods": FROM_CLUSTER,
    "port 6443 of a sibling, with the label of the API server": ANY_6443,
    "pods to an API server outside of the cluster": OUTSIDE,
}
"""Each cell in which the chart differs, with the reason why its behaviour was not taken over."""


def test_the_chart_differs_in_exactly_these_cells() -> None:
    """PEER-26."""
    policies = chart_policies(SEED)
    differing = {each.name for each in CELLS if each.judge(policies) is not each.allowed}

    assert differing == set(DIFFERENCES)


def test_a_child_named_ingress_needs_an_object_that_its_parent_has_already() -> None:
    """The fourth fault is no cell: of two objects with one name, one is missing."""
    forest = Forest.of(
        [root_summary(), tenant_summary("a", spec={"ingress": True}), tenant_summary("ingress", "tenant-a")]
    )

    def most_frequent(policies: Sequence[Object]) -> tuple[tuple[str, str], int]:
        names = Counter((each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in policies)
        return names.most_common(1)[0]

    assert most_frequent(chart_policies(forest)) == (("", "tenant-a-ingress-ingress"), 2)
    assert most_frequent(forest.cilium())[1] == 1
    assert most_frequent(forest.network_policies())[1] == 1
