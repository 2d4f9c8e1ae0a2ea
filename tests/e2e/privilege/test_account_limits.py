"""The policies that limit our ServiceAccount: both clusters decide as the table says, with a clear message."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.e2e.support.admission.account_writes import AccountWrites, limited_account
from tests.e2e.support.admission.policies import POLICIES
from tests.e2e.support.clusters.cluster import PATIENCE, E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.policies.account.case import AccountCase
from tests.policies.account.evaluation import LIMITS
from tests.policies.account.table import CASES

DRY_RUN = {"dryRun": "All"}
CLUSTER_CASES = [case for case in CASES if not case.in_process]


@pytest.fixture(scope="module")
def writes(cluster: E2eCluster) -> Iterator[AccountWrites]:
    with limited_account(cluster) as limited:
        yield limited


@pytest.mark.parametrize("case", CLUSTER_CASES, ids=lambda case: case.id)
def test_both_clusters_decide_about_the_account_as_the_table_says(writes: AccountWrites, case: AccountCase) -> None:
    refusal = writes.refusal(case)
    assert case.refusal in refusal if case.refusal else not refusal


def account_client(kube: KubeCluster) -> Client:
    """A client with the token of the account, so with its rights of RBAC, too."""
    account = kube.account
    return Client(account.server, account.tls, {**account.headers, "User-Agent": "curl"})


@pytest.mark.usefixtures("writes")
def test_the_account_cannot_make_itself_an_administrator(kube: KubeCluster, unique: str) -> None:
    """A token of a cluster administrator was once one Secret away: RBAC lets the account create Secrets, and read those
    of this name."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": unique}}
    kube.client().request("POST", "/api/v1/namespaces/kube-system/serviceaccounts", account).expect(201)
    metadata = {"name": "cozystack-values", "annotations": {"kubernetes.io/service-account.name": unique}}
    token = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": metadata}
    policy = "tenant-apiserver-limits-secrets"
    denied = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: the account of "
    for namespace in ("kube-system", "tenant-root", "cozy-system"):
        path = f"/api/v1/namespaces/{namespace}/secrets"
        answer = account_client(kube).request("POST", path, token, query=DRY_RUN).expect(403)
        assert answer["message"].startswith(f'secrets "cozystack-values" is forbidden: {denied}tenant-apiserver')


@pytest.mark.usefixtures("writes")
def test_the_limits_hold_for_the_accounts_own_token(kube: KubeCluster) -> None:
    client, namespaces = account_client(kube), "/api/v1/namespaces"
    for path, name in ((namespaces, "limits-mine"), (f"{namespaces}/default/serviceaccounts", "limits-mine")):
        refused = client.request("POST", path, {"metadata": {"name": name}}, query=DRY_RUN).expect(403)
        assert "the account of tenant-apiserver may write" in refused["message"]
    assert client.request("DELETE", f"{namespaces}/default", query=DRY_RUN).status == 403
    client.request("POST", namespaces, {"metadata": {"name": "tenant-x"}}, query=DRY_RUN).expect(201)


@pytest.mark.controller_manager
@pytest.mark.usefixtures("writes")
def test_no_limit_has_an_expression_of_a_wrong_type(kube: KubeCluster) -> None:
    """kube-controller-manager checks the types of expressions against the schemas of the kinds."""
    for name in LIMITS:
        wait_until(f"the types of {name} are checked", partial(_status, kube, name), seconds=PATIENCE)
        assert not (_status(kube, name).get("typeChecking") or {}).get("expressionWarnings"), name


def _status(kube: KubeCluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = kube.client().get(f"{POLICIES}/{name}").expect(200)
    status: dict[str, Any] = found.get("status") or {}
    return status
