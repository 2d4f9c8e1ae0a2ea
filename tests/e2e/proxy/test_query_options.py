"""Wrong options of lists and watches are refused as the cluster refuses them to who may list everything."""

from __future__ import annotations

import pytest
import yaml

from tests.e2e.proxy.test_merged_lists import CONFIGMAPS, create, grant, keys
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import TABLE, RbacObjects, user_subject

NAMESPACES = "/api/v1/namespaces"
LISTS = [
    pytest.param(422, {"sendInitialEvents": "true"}, id="initial events"),
    pytest.param(400, {"timeoutSeconds": "abc"}, id="timeoutSeconds"),
    pytest.param(400, {"limit": "abc"}, id="limit"),
    pytest.param(400, {"fieldSelector": "foo=x"}, id="field"),
    pytest.param(422, {"resourceVersionMatch": "Exact"}, id="match without a version"),
    pytest.param(422, {"resourceVersion": "0", "resourceVersionMatch": "Exact"}, id="exactly any version"),
    pytest.param(422, {"resourceVersion": "5", "resourceVersionMatch": "Foo"}, id="unknown match"),
]
WATCHES = [
    pytest.param(400, {"timeoutSeconds": "abc"}, id="timeoutSeconds"),
    pytest.param(400, {"resourceVersion": "abc"}, id="version"),
    pytest.param(422, {"sendInitialEvents": "true"}, id="initial events without a match"),
    pytest.param(422, {"resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"}, id="match"),
    pytest.param(422, {"resourceVersion": "0", "continue": "abc"}, id="continue"),
]


@pytest.fixture
def client(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> tuple[Client, str]:
    """A client with a ConfigMap in a namespace that is listed."""
    namespace = tenants.create_with_namespace()
    create(tenants, namespace, "a")
    grant(access, unique, namespace)
    access.bind(f"{unique}-view", namespace, user_subject(unique))
    found = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: keys(found) == [(namespace, "a")])
    cluster.wait_until("the namespaces are listed", lambda: found.get(NAMESPACES).status == 200)
    return found, namespace


def _as_of_the_cluster(refused: Response, direct: Response, status: int) -> None:
    assert (refused.status, direct.status) == (status, status), refused.content[:300]
    assert refused.json()["message"] == direct.json()["message"]


@pytest.mark.parametrize("path", [NAMESPACES, CONFIGMAPS])
@pytest.mark.parametrize(("status", "query"), LISTS)
def test_a_list_with_wrong_options_is_refused(
    client: tuple[Client, str], cluster: E2eCluster, path: str, status: int, query: dict[str, str]
) -> None:
    _as_of_the_cluster(client[0].get(path, query=query), cluster.client().get(path, query=query), status)


@pytest.mark.parametrize("path", [NAMESPACES, CONFIGMAPS])
@pytest.mark.parametrize(("status", "query"), WATCHES)
def test_a_watch_with_wrong_options_is_refused(
    client: tuple[Client, str], path: str, status: int, query: dict[str, str]
) -> None:
    assert client[0].get(path, query={"watch": "true", **query}).status == status


def test_namespaces_have_no_namespace_to_select_by(client: tuple[Client, str], cluster: E2eCluster) -> None:
    query = {"fieldSelector": "metadata.namespace=x"}
    _as_of_the_cluster(client[0].get(NAMESPACES, query=query), cluster.client().get(NAMESPACES, query=query), 400)


def test_a_namespace_in_the_list_is_that_of_the_cluster_without_annotations(
    client: tuple[Client, str], cluster: E2eCluster
) -> None:
    """The spec has the finalizers, and a Table the columns of the cluster."""
    listed = client[0].get(NAMESPACES).expect(200)["items"][0]
    stored = cluster.client().get(f"{NAMESPACES}/{client[1]}").expect(200)
    assert listed["spec"] == stored["spec"] == {"finalizers": ["kubernetes"]}
    assert listed["status"] == stored["status"]
    shown = {field: stored["metadata"].get(field) for field in listed["metadata"]}
    assert listed["metadata"] == shown
    accept = {"Accept": TABLE}
    columns = [each.get(NAMESPACES, headers=accept).expect(200) for each in (client[0], cluster.client())]
    assert columns[0]["columnDefinitions"] == columns[1]["columnDefinitions"]


@pytest.mark.parametrize("selector", ["for=test", "for=nothing"])
@pytest.mark.parametrize("form", ["", ";as=Table;v=v1;g=meta.k8s.io"], ids=["objects", "Table"])
def test_a_merged_list_is_also_yaml(client: tuple[Client, str], selector: str, form: str) -> None:
    query = {"labelSelector": selector}
    answer = client[0].get(CONFIGMAPS, query=query, headers={"Accept": f"application/yaml{form}"})
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/yaml")
    listed = client[0].get(CONFIGMAPS, query=query, headers={"Accept": f"application/json{form}"}).expect(200)
    assert yaml.load(answer.content, Loader=yaml.CSafeLoader)["kind"] == listed["kind"]
    name = "rows" if form else "items"
    found = yaml.load(answer.content, Loader=yaml.BaseLoader)[name]
    assert len(found) == len(listed[name]) == (1 if selector == "for=test" else 0)


def test_what_is_accepted_is_named(client: tuple[Client, str]) -> None:
    refused = client[0].get(CONFIGMAPS, headers={"Accept": "application/vnd.kubernetes.protobuf"}).expect(406)
    assert refused["message"] == "only the following media types are accepted: application/json, application/yaml"
