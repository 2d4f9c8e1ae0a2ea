"""Bad input is rejected with a clear error and never with a 500."""

from __future__ import annotations

import json

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.tenants import Tenants, manifest

MERGE, JSON_PATCH, APPLY = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(b"", "application/json", id="empty"),
        pytest.param(b"{", "application/json", id="truncated object"),
        pytest.param(b"[]", "application/json", id="a list"),
        pytest.param(b"null", "application/json", id="null"),
        pytest.param(b'"text"', "application/json", id="a string"),
        pytest.param(b'{"spec": {"etcd": NaN}}', "application/json", id="NaN"),
        pytest.param(b'{"kind": "\xff\xfe"}', "application/json", id="invalid UTF-8"),
        pytest.param(b"[" * 2000 + b"]" * 2000, "application/json", id="nested lists"),
        pytest.param(b'{"a":' * 2000 + b"1" + b"}" * 2000, "application/json", id="nested objects"),
        pytest.param(b"a: [b", "application/yaml", id="malformed YAML"),
        pytest.param(b"a: &a [*a]", "application/yaml", id="YAML alias to itself"),
        pytest.param(b"!!python/object/apply:os.getpid []", "application/yaml", id="Python tag in YAML"),
    ],
)
def test_an_undecodable_body_is_a_bad_request(cluster: E2eCluster, body: bytes, content_type: str) -> None:
    answer = cluster.client().request("POST", tenants_path(ROOT), body, content_type=content_type)
    assert answer.expect(400)["kind"] == "Status"


def test_a_yaml_alias_bomb_is_rejected(cluster: E2eCluster) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    answer = cluster.client().request("POST", tenants_path(ROOT), "\n".join(lines), content_type="application/yaml")
    assert answer.status in (400, 413)


def test_a_body_over_three_mebibytes_is_too_large(cluster: E2eCluster, unique: str) -> None:
    body = json.dumps(manifest(unique, annotations={"a": "x" * (3 * 1024 * 1024)}))
    client = cluster.direct_client()
    assert client.request("POST", tenants_path(ROOT), body).expect(413)["reason"] == "RequestEntityTooLarge"


def test_an_object_over_the_etcd_limit_is_too_large(kube: KubeCluster, cluster: E2eCluster, tenants: Tenants) -> None:
    """etcd rejects more than 1.5 MiB, which kube-apiserver turns into a 500 without an explanation."""
    name = tenants.new_name()
    body = manifest(name)
    body["metadata"]["labels"] = {f"{number}.{'k' * 50}/{'l' * 50}": "v" * 60 for number in range(12_000)}
    status = cluster.client().request("POST", tenants_path(ROOT), body).expect(413)
    assert status["reason"] == "RequestEntityTooLarge"
    assert f'tenants.apps.cozystack.io "{name}"' in status["message"]


def test_the_paths_of_fields_are_limited(cluster: E2eCluster, unique: str) -> None:
    """ATTACK-19: errors in the fields of a patch, or of a body, would quote a long key thousands of times."""
    client, fields = cluster.client(), {f"f{number}": 1 for number in range(2000)}
    labels = {"metadata": {"labels": {"k" * 10_000: fields}}}
    create = client.request("POST", tenants_path(ROOT), {**manifest(unique), **labels})
    patch = client.request("PATCH", tenants_path(ROOT, "root"), labels, content_type=MERGE)
    for status in (create.expect(413), patch.expect(413)):
        assert status["message"] == (
            "Request entity too large: the paths of an object's fields may have 8388608 characters in total"
        )


def test_an_object_with_too_many_values_is_too_large(cluster: E2eCluster, unique: str) -> None:
    """Processing such an object would delay all other requests (ATTACK-13), so a patch may not produce one either."""
    finalizers = [f"example.org/f{number}" for number in range(30_000)]
    whole, client = manifest(unique, finalizers=finalizers), cluster.client()
    assert client.request("POST", tenants_path(ROOT), whole).expect(413)["reason"] == "RequestEntityTooLarge"
    query, patch = {"fieldManager": "e2e", "dryRun": "All"}, {**whole, "metadata": {"finalizers": finalizers}}
    for kind in (MERGE, APPLY):
        answer = client.request("PATCH", tenants_path(ROOT, "root"), patch, query=query, content_type=kind)
        assert answer.expect(413)["reason"] == "RequestEntityTooLarge"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        pytest.param({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}, {400}, id="another kind"),
        pytest.param({"metadata": {"name": "x"}, "spec": []}, {400, 422}, id="spec as a list"),
        pytest.param({"metadata": [], "spec": {}}, {400, 422}, id="metadata as a list"),
        pytest.param({"metadata": {"name": 5}}, {400, 422}, id="name as a number"),
        pytest.param({"metadata": {"name": "x", "labels": {"a": 1}}}, {400, 422}, id="label as a number"),
        pytest.param({"metadata": {"name": "x", "labels": {"a b": "c"}}}, {422}, id="bad label key"),
        pytest.param({"metadata": {"name": "x", "annotations": {"": "c"}}}, {422}, id="empty annotation key"),
        pytest.param({"metadata": {"name": "x", "finalizers": ["a b"]}}, {422}, id="bad finalizer"),
        pytest.param({"metadata": {"name": "x", "ownerReferences": [{}]}}, {422}, id="empty owner reference"),
        pytest.param({"metadata": {}}, {422}, id="no name"),
    ],
)
def test_an_invalid_object_is_rejected(cluster: E2eCluster, body: dict[str, object], codes: set[int]) -> None:
    whole = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", **body}
    answer = cluster.client().request("POST", tenants_path(ROOT), whole)
    assert answer.status in codes, answer.content
    assert answer.json()["kind"] == "Status"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param(JSON_PATCH, b"{}", id="JSON patch that is not a list"),
        pytest.param(JSON_PATCH, b'[{"op": "dance", "path": "/spec"}]', id="unknown operation"),
        pytest.param(JSON_PATCH, b'[{"op": "replace", "path": "/spec/none/such", "value": 1}]', id="missing path"),
        pytest.param(JSON_PATCH, b'[{"op": "test", "path": "/spec/etcd", "value": "no"}]', id="failed test"),
        pytest.param(MERGE, b"[]", id="merge patch that is a list"),
        pytest.param(MERGE, b'"x"', id="merge patch that is a string"),
        pytest.param(MERGE, b'{"spec": "x"}', id="spec as a string"),
        pytest.param(MERGE, b'{"metadata": {"name": "other"}}', id="another name"),
        pytest.param(MERGE, b'{"metadata": {"resourceVersion": "abc"}}', id="non-numeric resource version"),
        pytest.param(APPLY, b"[]", id="apply of a list"),
        pytest.param(APPLY, b"{}", id="apply of nothing"),
    ],
)
def test_an_invalid_patch_is_rejected(cluster: E2eCluster, tenants: Tenants, content_type: str, body: bytes) -> None:
    tenant = tenants.create()
    path = tenants_path(ROOT, tenant["metadata"]["name"])
    query = {"fieldManager": "e2e"}
    answer = cluster.client().request("PATCH", path, body, query=query, content_type=content_type)
    assert 400 <= answer.status < 500, answer.content
    assert answer.json()["kind"] == "Status"
    assert tenants.get(tenant["metadata"]["name"])["spec"] == tenant["spec"]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param({"limit": "many"}, id="non-numeric limit"),
        pytest.param({"labelSelector": "a=b=c"}, id="malformed label selector"),
        pytest.param({"labelSelector": "a in (b"}, id="unclosed set in a label selector"),
        pytest.param({"fieldSelector": "spec.host=x"}, id="unsupported field selector"),
        pytest.param({"resourceVersion": "abc"}, id="non-numeric resource version"),
        pytest.param({"resourceVersionMatch": "Exact"}, id="match without a resource version"),
        pytest.param({"timeoutSeconds": "soon"}, id="non-numeric timeoutSeconds"),
    ],
)
def test_an_invalid_query_is_rejected(cluster: E2eCluster, query: dict[str, str]) -> None:
    answer = cluster.client().get(tenants_path(ROOT), query={"timeoutSeconds": "1", **query})
    assert 400 <= answer.status < 500, answer.content
    assert answer.json()["kind"] == "Status"


def test_a_future_resource_version_times_out_with_the_cause_that_reflectors_expect(cluster: E2eCluster) -> None:
    query = {"resourceVersion": str(2**62), "resourceVersionMatch": "NotOlderThan"}
    status = cluster.client().get(tenants_path(ROOT), query=query).expect(504)
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_contradictory_selector_matches_nothing(cluster: E2eCluster) -> None:
    listed = cluster.client().get(tenants_path(ROOT), query={"labelSelector": "a,!a"}).expect(200)
    assert listed["items"] == []


@pytest.mark.parametrize("body", ["[]", '"x"', "1", "true", '{"kind": []}', '{"apiVersion": 1}'])
@pytest.mark.parametrize("path", [tenants_path(ROOT), tenants_path(ROOT, "nobody")], ids=["collection", "object"])
def test_invalid_delete_options_are_a_bad_request(cluster: E2eCluster, path: str, body: str) -> None:
    answer = cluster.client().request("DELETE", path, body, query={"labelSelector": "no=body"})
    assert answer.expect(400)["reason"] == "BadRequest"
