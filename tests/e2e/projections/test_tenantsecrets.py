"""TenantSecrets: every verb, and that nobody gets at a Secret by the rights of the server."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from apiserver.meta.resource import Object
from tests.e2e.support.clusters.cluster import CORE_GROUP_VERSION, PATIENCE, ROOT, E2eCluster
from tests.e2e.support.http.https_client import Client, read_frames_until
from tests.e2e.support.visibility import TABLE, RbacObjects, user_subject

SECRETS, SHOWN = f"/api/v1/namespaces/{ROOT}/secrets", f"{CORE_GROUP_VERSION}/namespaces/{ROOT}/tenantsecrets"
LABEL = "internal.cozystack.io/tenantresource"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _body(name: str, **fields: object) -> Object:
    head = {"apiVersion": "core.cozystack.io/v1alpha1", "kind": "TenantSecret", "metadata": {"name": name}}
    return {**head, **fields}


@pytest.fixture
def name(cluster: E2eCluster, unique: str) -> Iterator[str]:
    yield unique
    cluster.client().request("DELETE", f"{SECRETS}/{unique}")


def test_a_secret_has_all_verbs(cluster: E2eCluster, name: str) -> None:
    client, one = cluster.client(), f"{SHOWN}/{name}"
    body = _body(name, data={"a": _encoded("1"), "b": _encoded("2")}, stringData={"b": "3"})
    client.request("POST", SHOWN, body, query={"dryRun": "All"}).expect(201)
    assert client.get(one).status == client.get(f"{SECRETS}/{name}").status == 404
    created = client.request("POST", SHOWN, body).expect(201)
    assert "stringData" not in created
    data = {"a": _encoded("1"), "b": _encoded("3")}
    stored = client.get(f"{SECRETS}/{name}").expect(200)
    assert (stored["data"], stored["type"], stored["metadata"]["labels"]) == (data, "Opaque", {LABEL: "true"})
    assert client.request("POST", SHOWN, body).status == 409
    selected: dict[str, object] = {"fieldSelector": f"metadata.name={name}"}
    listed = client.get(SHOWN, query=selected).expect(200)
    assert [each["data"] for each in listed["items"]] == [data]
    table = client.get(SHOWN, query=selected, headers={"Accept": TABLE}).expect(200)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Type", "Age"]
    query = {**selected, "watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
    with client.stream(SHOWN, query=query) as frames:
        client.request("PATCH", one, {"stringData": {"c": "4"}}, content_type=MERGE).expect(200)
        for value in ("5", "6"):
            applied = _body(name, stringData={"own": value})
            client.request("PATCH", one, applied, query={"fieldManager": "test"}, content_type=APPLY).expect(200)
        stale = client.request("PUT", one, {**created, "data": {}})
        assert stale.status == 409
        current = client.get(one).expect(200)
        assert current["data"] == {**data, "c": _encoded("4"), "own": _encoded("6")}
        current["data"] = {"a": _encoded("7")}
        client.request("PUT", one, current).expect(200)
        assert client.get(f"{SECRETS}/{name}").expect(200)["data"] == {"a": _encoded("7")}
        client.request("DELETE", one).expect(200)
        seen = read_frames_until(frames, "DELETED")
    assert [each["type"] for each in seen] == ["MODIFIED"] * 4 + ["DELETED"]
    assert "data" not in seen[-1]["object"]
    client.get(f"{SECRETS}/{name}").expect(404)


def test_a_secret_is_shown_as_long_as_it_has_the_label(cluster: E2eCluster, name: str) -> None:
    client, one = cluster.client(), f"{SHOWN}/{name}"
    plain: Object = {"metadata": {"name": name}, "data": {"a": _encoded("1")}}
    client.request("POST", SECRETS, plain).expect(201)
    applied = client.request("PATCH", one, _body(name), query={"fieldManager": "t"}, content_type=APPLY)
    answers = [client.get(one), client.request("PUT", one, _body(name)), client.request("DELETE", one)]
    assert [each.status for each in answers] == [404, 404, 404]
    assert client.request("POST", SHOWN, _body(name)).status == applied.status == 409
    assert client.get(f"{SECRETS}/{name}").expect(200)["data"] == plain["data"]
    with client.stream(SHOWN, query={"watch": "1", "fieldSelector": f"metadata.name={name}"}) as frames:
        for value in ("true", None):
            change = {"metadata": {"labels": {LABEL: value}}}
            client.request("PATCH", f"{SECRETS}/{name}", change, content_type=MERGE).expect(200)
        seen = read_frames_until(frames, "DELETED")
    assert [(each["type"], "data" in each["object"]) for each in seen] == [("ADDED", True), ("DELETED", False)]
    assert client.get(one).status == 404


@pytest.fixture
def user(cluster: E2eCluster, access: RbacObjects, unique: str) -> Client:
    """May do everything with TenantSecrets of the namespace, and nothing with Secrets."""
    rule = {"apiGroups": ["core.cozystack.io"], "resources": ["tenantsecrets"], "verbs": list(VERBS)}
    access.create_role(unique, ROOT, rule)
    access.bind(unique, ROOT, user_subject(unique), unique)
    client = cluster.client(unique)
    cluster.wait_until("the user may list", lambda: client.get(SHOWN).status == 200)
    return client


def test_the_right_on_tenantsecrets_is_enough_and_gives_no_other(cluster: E2eCluster, user: Client, name: str) -> None:
    user.request("POST", SHOWN, _body(name, stringData={"a": "1"})).expect(201)
    assert user.get(f"{SHOWN}/{name}").expect(200)["data"] == {"a": _encoded("1")}
    assert user.get(f"{SECRETS}/{name}").status == 403
    assert user.get(f"{CORE_GROUP_VERSION}/namespaces/default/tenantsecrets").status == 403
    annotations = {"kubernetes.io/service-account.name": ROOT}
    token = {"metadata": {"name": f"{name}-token", "annotations": annotations}}
    for type_, other in (
        ("kubernetes.io/service-account-token", f"{name}-token"),
        ("helm.sh/release.v1", f"{name}-release"),
        ("Opaque", "sh.helm.release.v1.tenant-a.v1"),
        ("Opaque", "cozystack-values"),
    ):
        metadata = {**token["metadata"], "name": other}
        answer = user.request("POST", SHOWN, _body(other, type=type_) | {"metadata": metadata})
        assert answer.status == 422, answer.content
    assert user.get(f"{SHOWN}/cozystack-values").status == 404


@pytest.mark.parametrize("missing", ["get", "list", "create", "update", "patch", "delete"])
def test_a_user_with_one_right_less_is_refused_exactly_that(
    cluster: E2eCluster, access: RbacObjects, name: str, unique: str, missing: str
) -> None:
    """The rights of the server are not lent. Without `get`, lists are empty, too."""
    cluster.client().request("POST", SHOWN, _body(name, stringData={"a": "secret"})).expect(201)
    rule = {"apiGroups": ["core.cozystack.io"], "resources": ["tenantsecrets"]}
    access.create_role(unique, ROOT, {**rule, "verbs": [verb for verb in VERBS if verb != missing]})
    access.bind(unique, ROOT, user_subject(unique), unique)
    user, one, dry = cluster.client(unique), f"{SHOWN}/{name}", {"dryRun": "All"}
    granted = "list" if missing != "list" else "get"
    cluster.wait_until_allowed(unique, ROOT, verb=granted, group="core.cozystack.io", resource="tenantsecrets")
    answers = {
        "get": user.get(one),
        "list": user.get(SHOWN),
        "create": user.request("POST", SHOWN, _body(f"{name}-new"), query=dry),
        "update": user.request("PUT", one, _body(name), query=dry),
        "patch": user.request("PATCH", one, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE, query=dry),
        "delete": user.request("DELETE", one, query=dry),
    }
    refused = [verb for verb, answer in answers.items() if answer.status == 403]
    assert refused == [missing], {verb: answer.status for verb, answer in answers.items()}
    if missing == "get":
        assert answers["list"].json()["items"] == []


def test_kubectl_works_with_tenantsecrets(cluster: E2eCluster, name: str) -> None:
    manifest = f"""
apiVersion: core.cozystack.io/v1alpha1
kind: TenantSecret
metadata: {{name: {name}, namespace: {ROOT}}}
stringData: {{password: one}}
"""
    for text in (manifest, manifest.replace("one", "two")):
        cluster.kubectl("apply", "-f", "-", input=text)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=manifest.replace("one", "three"))
    shown = cluster.kubectl("get", "tenantsecret", name, "-n", ROOT, "-o", "jsonpath={.data.password}").stdout
    assert base64.b64decode(shown) == b"three"
    assert name in cluster.kubectl("describe", "tenantsecret", name, "-n", ROOT).stdout
    assert "stringData" in cluster.kubectl("explain", "tenantsecret").stdout
    cluster.kubectl("delete", "tenantsecret", name, "-n", ROOT, f"--timeout={PATIENCE:.0f}s")
