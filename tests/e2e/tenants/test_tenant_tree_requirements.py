"""Requirements of names, namespaces and the tree of Tenants, R-027 and R-032 to R-053.

R-043 is in tests/controller/tenant/test_rendering.py, R-050 in tests/admission/tenant/test_quota.py; R-049 and R-053
are with R-013 in test_tenant_api_requirements.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.e2e.support.applying import APPLY, configuration
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Object, Tenants, manifest


def name_error(cluster: E2eCluster, name: str, namespace: str = ROOT) -> str:
    """The messages of a 422 whose causes all concern the name."""
    status = cluster.client().request("POST", tenants_path(namespace), manifest(name, namespace)).expect(422)
    assert {cause["field"] for cause in status["details"]["causes"]} == {"metadata.name"}
    return "; ".join(cause["message"] for cause in status["details"]["causes"])


def create_chain(tenants: Tenants, depth: int) -> Sequence[Object]:
    """Creates nested Tenants, the first one in the root namespace, and waits for their namespaces."""
    made: list[Object] = []
    namespace = ROOT
    for _ in range(depth):
        made.append(tenants.create(namespace))
        namespace = made[-1]["status"]["namespace"]
        tenants.wait_for_namespace(namespace)
    return made


@pytest.mark.parametrize("name", ["foo_bar", "foo.bar", "foo bar", "Foo", "föö", "1foo"])
def test_a_name_is_lower_case_letters_and_digits(cluster: E2eCluster, name: str) -> None:
    """Other characters are rejected (R-032, PEER-19)."""
    assert "only lowercase letters and digits" in name_error(cluster, name)


def test_a_name_may_contain_digits_and_names_the_namespace(cluster: E2eCluster, unique: str) -> None:
    """The namespace is `tenant-` and the name (R-032, R-036)."""
    name = f"{unique}1"
    made = cluster.client().request("POST", tenants_path(ROOT), manifest(name), query={"dryRun": "All"}).expect(201)
    assert made["status"]["namespace"] == f"tenant-{name}"


@pytest.mark.parametrize("name", ["foo-bar", "-foo", "foo-"])
def test_a_name_with_a_dash_is_rejected(cluster: E2eCluster, name: str) -> None:
    """A dash would make chains of names ambiguous (R-033)."""
    assert "dashes are not allowed" in name_error(cluster, name)


def test_no_other_write_creates_a_name_with_a_dash(cluster: E2eCluster) -> None:
    """Apply is rejected, and PUT creates no objects (R-034)."""
    client, path = cluster.client(), tenants_path(ROOT, "foo-bar")
    applied = client.request(
        "PATCH", path, configuration("foo-bar"), content_type=APPLY, query={"fieldManager": "e2e"}
    ).expect(422)
    assert "dashes are not allowed" in applied["message"]
    # PUT never creates a Tenant
    client.request("PUT", path, manifest("foo-bar")).expect(404)
    assert client.get(path).status == 404
    assert client.get(f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-foo-bar").status == 404


def test_the_root_tenant_is_called_root_and_lives_in_its_own_namespace(tenants: Tenants) -> None:
    """The root tenant is its own namespace's Tenant (R-035, R-039)."""
    root = tenants.get("root")
    assert (root["metadata"]["name"], root["metadata"]["namespace"]) == ("root", ROOT)
    assert root["status"]["namespace"] == ROOT


def test_a_namespace_name_is_the_chain_of_tenant_names(tenants: Tenants) -> None:
    """A child is created in the namespace of its parent (R-037, R-040, R-041, R-047, R-048, VAP-6)."""
    alpha, beta, gamma = create_chain(tenants, 3)
    names = [each["metadata"]["name"] for each in (alpha, beta, gamma)]
    expected = ["-".join(["tenant", *names[:depth]]) for depth in (1, 2, 3)]
    assert [each["status"]["namespace"] for each in (alpha, beta, gamma)] == expected
    assert [each["metadata"]["namespace"] for each in (alpha, beta, gamma)] == [ROOT, *expected[:2]]
    assert expected[2].split("-")[1:] == names


def test_every_tenant_has_one_namespace_of_its_own(cluster: E2eCluster, tenants: Tenants) -> None:
    """No two Tenants have the same namespace (R-038)."""
    create_chain(tenants, 2)
    items = cluster.client().get(tenants_path()).expect(200)["items"]
    namespaces = [each["status"]["namespace"] for each in items]
    assert len(items) >= 3
    assert all(namespaces)
    assert len(set(namespaces)) == len(namespaces)


def test_the_namespace_in_the_status_is_the_one_that_is_created(cluster: E2eCluster, tenants: Tenants) -> None:
    """The Namespace exists and is active (R-042)."""
    for each in create_chain(tenants, 3):
        namespace = cluster.client().get(f"/api/v1/namespaces/{each['status']['namespace']}").expect(200)
        assert namespace["status"]["phase"] == "Active"


def test_a_namespace_of_63_characters_is_created_and_one_of_64_is_rejected(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    """The error names the namespace and its length (R-044, R-045, R-046, PEER-14, CHOICE-10)."""
    short = tenants.new_name()
    parent, client = f"{short}{'p' * (45 - len(short))}", cluster.client()
    # the host is short, because it must fit into a label as well
    body = manifest(parent, spec={"host": f"{short}.example"})
    namespace = client.request("POST", tenants_path(ROOT), body).expect(201)["status"]["namespace"]
    assert len(namespace) == 52
    try:
        tenants.wait_for_namespace(namespace)
        message = name_error(cluster, "c" * 11, namespace)
        assert f'"{namespace}-{"c" * 11}"' in message
        assert "64 characters" in message
        fits = client.request("POST", tenants_path(namespace), manifest("c" * 10, namespace)).expect(201)
        assert len(fits["status"]["namespace"]) == 63
        tenants.wait_for_namespace(fits["status"]["namespace"])
        assert client.get(f"/api/v1/namespaces/{namespace}-{'c' * 11}").status == 404
    finally:
        client.request("DELETE", tenants_path(ROOT, parent), query={"propagationPolicy": "Foreground"})


def test_clients_walk_up_to_the_root_by_tenants_alone(cluster: E2eCluster, tenants: Tenants) -> None:
    """The namespace of a Tenant leads to its parent (R-027, R-051, R-052)."""
    made = create_chain(tenants, 5)
    everything = cluster.client().get(tenants_path()).expect(200)["items"]
    by_namespace = {each["status"]["namespace"]: each for each in everything}
    walked = [made[-1]["metadata"]["name"]]
    at = by_namespace[made[-1]["metadata"]["namespace"]]
    while at["metadata"]["name"] != "root":
        walked.append(at["metadata"]["name"])
        at = by_namespace[at["metadata"]["namespace"]]
    assert walked == [each["metadata"]["name"] for each in reversed(made)]
    assert at["status"]["namespace"] == ROOT
