"""Every kind of Cozystack is created, read, listed as a Table, patched, applied, watched and deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.application.kept_forms import NAME as KEPT_FORMS
from registry.application.kept_forms import read_sources
from tests.application_definitions.samples import definition, definition_names, sample_spec
from tests.e2e.support.applications import APPLY, DEFINITIONS, MERGE, RELEASES, Applications
from tests.e2e.support.clusters.cluster import AGGREGATED_DISCOVERY, GROUP_VERSION, ROOT, E2eCluster
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.http.https_client import Client, read_frames_until

KINDS = [name for name in definition_names() if name != "tenant"]
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_all_verbs(applications: Applications, unique: str, kind: str) -> None:
    described = definition(kind)["spec"]
    plural, release = described["application"]["plural"], described["release"]["prefix"] + unique
    client, path, one = applications.client, applications.path(plural), applications.path(plural, unique)
    spec = sample_spec(kind)
    body: Object = {
        "apiVersion": GROUP_VERSION.removeprefix("/apis/"),
        "kind": described["application"]["kind"],
        "metadata": {"name": unique, "labels": {"team": "x"}},
        "spec": spec,
    }
    client.request("POST", path, body, query={"dryRun": "All"}).expect(201)
    client.get(one).expect(404)
    created = client.request("POST", path, body).expect(201)
    stored = client.get(f"{RELEASES}/{release}").expect(200)
    assert stored["spec"]["values"] == spec
    assert stored["spec"]["chartRef"] == described["release"]["chartRef"]
    assert client.request("POST", path, body).status == 409
    assert client.get(one).expect(200)["metadata"]["uid"] == created["metadata"]["uid"]
    listed = client.get(path, query={"labelSelector": "team=x", "fieldSelector": f"metadata.name={unique}"}).expect(200)
    assert [each["metadata"]["name"] for each in listed["items"]] == [unique]
    # everybody may list and watch every kind, and sees nothing without the right to get it
    assert applications.stranger.get(path).expect(200)["items"] == []
    assert applications.stranger.get(one).status == 403
    table = client.get(path, query={"fieldSelector": f"metadata.name={unique}"}, headers=TABLE).expect(200)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Ready", "Age", "Version"]
    assert (table["rows"][0]["cells"][0], table["rows"][0]["cells"][3]) == (unique, "<unknown>")
    query = {
        "watch": "1",
        "fieldSelector": f"metadata.name={unique}",
        "resourceVersion": listed["metadata"]["resourceVersion"],
    }
    with client.stream(path, query=query) as frames:
        patch = {"metadata": {"labels": {"more": "y"}}, "spec": {"added": {"later": True}}}
        client.request("PATCH", one, patch, content_type=MERGE).expect(200)
        assert applications.values(release) == {**spec, "added": {"later": True}}
        applied = {**body, "spec": {"applied": 1}}
        for value in (1, 2):
            applied["spec"]["applied"] = value
            client.request("PATCH", one, applied, query={"fieldManager": "test"}, content_type=APPLY).expect(200)
        assert applications.values(release) == {**spec, "added": {"later": True}, "applied": 2}
        client.request("DELETE", one).expect(200)
        seen = read_frames_until(frames, "DELETED")
    assert [each["type"] for each in seen] == ["MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    client.get(one).expect(404)
    client.get(f"{RELEASES}/{release}").expect(404)


@pytest.fixture
def own(applications: Applications, unique: str) -> Iterator[Object]:
    """A definition of the test's own, which is deleted after the test."""
    obj = definition("redis")
    obj["metadata"] = {"name": unique}
    kind = f"Kind{unique}".replace("-", "")
    obj["spec"]["application"] |= {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    obj["spec"]["release"]["prefix"] = f"{unique}-"
    yield obj
    applications.client.request("DELETE", f"{DEFINITIONS}/{unique}")
    applications.wait_until_gone(obj["spec"]["application"]["plural"])


def _discovered(cluster: E2eCluster) -> set[str]:
    found = cluster.direct_client().get("/apis", headers={"Accept": AGGREGATED_DISCOVERY}).expect(200)
    group = next(each for each in found["items"] if each["metadata"].get("name") == "apps.cozystack.io")
    return {each["resource"] for each in group["versions"][0]["resources"]}


def test_a_kind_is_served_as_soon_as_its_definition_is_there(
    applications: Applications, cluster: E2eCluster, own: Object
) -> None:
    client, plural = cluster.client(), own["spec"]["application"]["plural"]
    path = applications.path(plural)
    client.get(path).expect(404)
    applications.put_definition(own)
    cluster.wait_until_served(path)
    assert plural in _discovered(cluster)
    schemas = cluster.direct_client().get(f"/openapi/v3{GROUP_VERSION}").expect(200)["components"]["schemas"]
    kind = own["spec"]["application"]["kind"]
    assert any(name.endswith(f".{kind}") for name in schemas)
    definitions = cluster.direct_client().get("/openapi/v2").expect(200)["definitions"]
    (described,) = [each for name, each in definitions.items() if name.endswith(f".{kind}")]
    # kubectl validates by it, and rejects what it does not name beside properties
    assert described["properties"]["spec"].get("properties") is None
    version = client.get(path).expect(200)["metadata"]["resourceVersion"]
    with client.stream(path, query={"watch": "1", "resourceVersion": version}) as frames:
        client.request("DELETE", f"{DEFINITIONS}/{own['metadata']['name']}").expect(200)
        (last,) = list(frames)
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
    cluster.wait_until("the kind is gone", lambda: client.get(path).status == 404)
    assert plural not in _discovered(cluster)


def test_a_changed_schema_applies_to_what_is_stored_and_a_bad_one_does_not(
    applications: Applications, cluster: E2eCluster, own: Object, unique: str
) -> None:
    client, path = cluster.client(), applications.path(own["spec"]["application"]["plural"])
    applications.put_definition(own)
    cluster.wait_until_served(path)
    client.request("POST", path, {"metadata": {"name": "one"}, "spec": {"replicas": 3}}).expect(201)

    def change(schema: str) -> None:
        patch = {"spec": {"application": {"openAPISchema": schema}}}
        client.request("PATCH", f"{DEFINITIONS}/{unique}", patch, content_type=MERGE).expect(200)

    change(json.dumps({"type": "object", "properties": {"color": {"type": "string", "default": "red"}}}))
    shown = {"replicas": 3, "color": "red"}
    cluster.wait_until("the new default is shown", lambda: client.get(f"{path}/one").expect(200)["spec"] == shown)
    assert applications.values(f"{unique}-one") == {"replicas": 3}
    change("{")
    note = cluster.wait_until("readyz tells it", lambda: _note(cluster, unique))
    assert "serves the form of generation 2; generation 3 is refused because" in note
    assert "it is no JSON" in note
    cluster.wait_until("the form is kept", lambda: _kept_generation(client, unique) == 2)
    assert client.get(f"{path}/one").expect(200)["spec"] == shown
    client.request("DELETE", f"{path}/one").expect(200)


def _kept_generation(client: Client, name: str) -> int | None:
    """The generation of the form that a restart would begin with."""
    found = client.get(f"/api/v1/namespaces/cozy-system/configmaps/{KEPT_FORMS}")
    source = dict(read_sources(found.json())).get(name) if found.status == 200 else None
    return source["metadata"]["generation"] if source is not None else None


def _note(cluster: E2eCluster, name: str) -> str | None:
    text = cluster.direct_client().get("/readyz", query={"verbose": ""}).content.decode()
    return next((line for line in text.splitlines() if "applications" in line and name in line), None)


def test_a_user_sees_the_applications_that_it_may_get(
    applications: Applications, cluster: E2eCluster, unique: str
) -> None:
    """A namespaced right shows the objects of the namespace, in lists of all namespaces, too, and a watch tells it."""
    client, path, user = cluster.client(), applications.path("etcds"), f"user-{unique}"
    client.request("POST", path, {"metadata": {"name": unique}, "spec": {}}).expect(201)
    everywhere = f"{GROUP_VERSION}/etcds"

    def names() -> list[Any]:
        listed = cluster.client(user).get(everywhere).expect(200)
        return [each["metadata"]["name"] for each in listed["items"]]

    assert names() == []
    version = client.get(everywhere).expect(200)["metadata"]["resourceVersion"]
    with cluster.client(user).stream(everywhere, query={"watch": "1", "resourceVersion": version}) as frames:
        cluster.grant(user, "cozy:tenant:view", ROOT)
        assert any(each["type"] == "ADDED" and each["object"]["metadata"]["name"] == unique for each in frames)
    cluster.wait_until("the user sees it", lambda: unique in names())
    assert cluster.client(user).get("/apis/core.cozystack.io/v1alpha1/tenantsecrets").status in (403, 404)
    client.request("DELETE", f"{path}/{unique}").expect(200)


def test_collections_of_applications(applications: Applications, unique: str) -> None:
    """generateName, pages, selectors, a body of another kind, and the deletion of a collection."""
    client, path = applications.client, applications.path("infos")
    body: Object = {"metadata": {"generateName": f"{unique}-", "labels": {"set": unique}}, "spec": {}}
    names = [client.request("POST", path, body).expect(201)["metadata"]["name"] for _ in range(3)]
    selected: dict[str, object] = {"labelSelector": f"set={unique}"}
    first = client.get(path, query={**selected, "limit": 2}).expect(200)
    rest = client.get(path, query={**selected, "limit": 2, "continue": first["metadata"]["continue"]}).expect(200)
    assert [each["metadata"]["name"] for each in (*first["items"], *rest["items"])] == sorted(names)
    other = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Redis", "metadata": {"name": unique}}
    assert client.request("POST", path, other).status == 400
    assert client.request("POST", path, {"metadata": {"name": unique}, "spec": {"_cluster": {}}}).status == 400
    client.request("DELETE", path, query=selected).expect(200)
    assert client.get(path, query=selected).expect(200)["items"] == []


def test_what_an_application_owns_is_deleted_with_it(
    applications: Applications, embedded: EmbeddedCluster, unique: str
) -> None:
    """A kube-controller-manager learns of a new kind within minutes only, so this is the embedded cluster's."""
    client, path = embedded.client(), applications.path("infos")
    owner = client.request("POST", path, {"metadata": {"name": unique}, "spec": {}}).expect(201)
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": unique,
        "uid": owner["metadata"]["uid"],
    }
    owned = f"/api/v1/namespaces/{ROOT}/configmaps"
    configmap = {"metadata": {"name": unique, "ownerReferences": [reference]}}
    client.request("POST", owned, configmap).expect(201)
    client.request("DELETE", f"{path}/{unique}").expect(200)
    embedded.wait_until("the ConfigMap is deleted", lambda: client.get(f"{owned}/{unique}").status == 404)


def test_values_that_nest_too_deeply_are_an_error_of_the_client_and_can_be_replaced(
    applications: Applications, cluster: E2eCluster, own: Object, unique: str
) -> None:
    """Another client has written them to the HelmRelease: kube-apiserver accepts ten thousand levels."""
    if isinstance(cluster, EmbeddedCluster):
        pytest.skip("the embedded cluster stores 128 levels")
    client, name, levels = cluster.client(), "deep", 300
    collection = applications.path(own["spec"]["application"]["plural"])
    applications.put_definition(own)
    cluster.wait_until_served(collection)
    body = {"metadata": {"name": name}, "spec": {"replicas": 3}}
    created = client.request("POST", collection, body).expect(201)
    deep = '{"spec":{"values":{"deep":' + '{"a":' * levels + "1" + "}" * levels + "}}}"
    client.request("PATCH", f"{RELEASES}/{unique}-{name}", deep, content_type=MERGE).expect(200)
    path = f"{collection}/{name}"
    version = created["metadata"]["resourceVersion"]
    cluster.wait_until(
        "the change is seen", lambda: client.get(path).expect(200)["metadata"]["resourceVersion"] != version
    )
    typed = {"apiVersion": created["apiVersion"], "kind": created["kind"], **body}
    force = {"fieldManager": "x", "force": "true"}
    answers = {
        "list": client.get(collection),
        "get": client.get(path),
        "replace by what was read": client.request("PUT", path, client.get(path).content),
        "a label": client.request("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE),
        "another value": client.request("PATCH", path, {"spec": {"replicas": 4}}, content_type=MERGE),
        "JSON patch": client.request(
            "PATCH", path, [{"op": "add", "path": "/spec/x", "value": 1}], content_type="application/json-patch+json"
        ),
        "apply": client.request("PATCH", path, typed, query=force, content_type=APPLY),
        "replace": client.request("PUT", path, typed),
    }
    found = {each: (answer.status, answer.content[:300]) for each, answer in answers.items()}
    assert {each: status for each, (status, _) in found.items()} == {
        "list": 200,
        "get": 200,
        "replace by what was read": 400,
        "a label": 422,
        "another value": 422,
        "JSON patch": 422,
        "apply": 400,
        "replace": 200,
    }, found
    client.request("DELETE", path).expect(200)
