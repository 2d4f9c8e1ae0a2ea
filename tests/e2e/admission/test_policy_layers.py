"""The policies of the five layers: both clusters decide as the table says, with the same messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.admission.policy_layers import PolicyLayers, enforced_layers
from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, E2eCluster
from tests.e2e.support.tenants import Tenants
from tests.policies.case_table import CLUSTER_CASES
from tests.policies.cases import Case


@pytest.fixture(scope="module")
def layers(cluster: E2eCluster) -> Iterator[PolicyLayers]:
    with enforced_layers(cluster) as installed:
        yield installed


@pytest.mark.parametrize("case", CLUSTER_CASES, ids=lambda case: case.id)
def test_both_clusters_decide_as_the_table_says(layers: PolicyLayers, case: Case) -> None:
    """Status and message of every case are those of the table.

    R-231, R-234 to R-240, R-242 to R-250, R-253 to R-258, R-261 to R-267, VAP-1, VAP-2, VAP-3, VAP-4, FACT-1, FACT-8.
    """
    assert layers.try_case(case) == layers.expected_outcome(case)


@pytest.mark.usefixtures("layers")
@pytest.mark.parametrize(("hostname", "status"), [("a.example.org", 201), ("attacker.com", 403)])
def test_routes_in_the_root_namespace_are_checked_like_any_other(
    cluster: E2eCluster, hostname: str, status: int
) -> None:
    """Even for a cluster administrator, who may write routes in every namespace (R-264, R-267)."""
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "root-s"},
        "spec": {"hostnames": [hostname], "parentRefs": [{"name": "cozystack"}]},
    }
    path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{ROOT}/httproutes"
    answer = cluster.client().request("POST", path, route, query={"dryRun": "All"}).expect(status)
    assert status == 201 or "cozystack-route-hostname-policy" in answer["message"]


@pytest.mark.usefixtures("layers")
def test_the_reconciler_writes_hosts_while_the_policies_are_enforced(tenants: Tenants) -> None:
    """The reconciler runs as a trusted service account (R-259)."""
    name = tenants.create()["metadata"]["name"]
    labels = tenants.wait_for_namespace(f"tenant-{name}")["metadata"]["labels"]
    assert labels["namespace.cozystack.io/host"] == f"{name}.{ROOT_HOST}"
