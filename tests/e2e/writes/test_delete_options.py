"""DeleteOptions in the query and in the body (WIRE-D87 to WIRE-D91).

Each test deletes a ConfigMap as well, which behind the aggregator shows what a kube-apiserver answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Body, Client, Response
from tests.e2e.support.tenants import Object, Tenants

KEEP = "example.org/keep"
ANOTHER = "11111111-2222-4333-8444-555555555555"


@dataclass(frozen=True, slots=True)
class Deletable:
    """Objects of one kind. Those that `create` returns are held by a finalizer."""

    client: Client
    collection: str
    kind: str
    label: str
    create: Callable[[], Object]

    def path(self, obj: Object) -> str:
        return f"{self.collection}/{obj['metadata']['name']}"

    def read(self, obj: Object) -> Object:
        found: Object = self.client.get(self.path(obj)).expect(200)["metadata"]
        return found

    def delete(self, obj: Object, body: Body = None, **query: str) -> Response:
        return self.client.request("DELETE", self.path(obj), body, query=query)

    def delete_all(self, body: Body = None, **query: str) -> Response:
        selector = {"labelSelector": f"e2e={self.label}"}
        return self.client.request("DELETE", self.collection, body, query={**selector, **query})


@pytest.fixture(params=["ConfigMap", "Tenant"])
def deletable(request: pytest.FixtureRequest, cluster: E2eCluster, tenants: Tenants, unique: str) -> Deletable:
    labels, client = {"e2e": unique}, cluster.client()
    if request.param == "Tenant":

        def create_tenant() -> Object:
            name = tenants.create(labels=labels, finalizers=[KEEP])["metadata"]["name"]
            # until the status is written, the resourceVersion may change at any time
            return tenants.wait_until_settled(name)

        return Deletable(client, tenants_path(ROOT), "Tenant.apps.cozystack.io", unique, create_tenant)
    collection = f"/api/v1/namespaces/{ROOT}/configmaps"

    def create_configmap() -> Object:
        metadata = {"generateName": unique, "labels": labels, "finalizers": [KEEP]}
        created: Object = client.request("POST", collection, {"metadata": metadata}).expect(201)
        request.addfinalizer(lambda: _release(client, f"{collection}/{created['metadata']['name']}"))
        return created

    return Deletable(client, collection, "ConfigMap", unique, create_configmap)


@pytest.fixture(autouse=True)
def _released_tenants(request: pytest.FixtureRequest, tenants: Tenants, unique: str) -> Any:
    yield
    for each in tenants.client.get(tenants_path(ROOT), query={"labelSelector": f"e2e={unique}"}).expect(200)["items"]:
        _release(tenants.client, tenants_path(ROOT, each["metadata"]["name"]))


def _release(client: Client, path: str) -> None:
    """Removes the finalizer and the object."""
    client.request("DELETE", path)
    client.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)


def test_a_uid_in_the_query_is_a_precondition(deletable: Deletable) -> None:
    obj = deletable.create()
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    status = deletable.delete(obj, uid=ANOTHER).expect(409)
    assert status["reason"] == "Conflict"
    assert status["message"] == (
        f'Operation cannot be fulfilled on {deletable.kind} "{name}": the UID in the precondition ({ANOTHER}) does not '
        f"match the UID in record ({uid}). The object might have been deleted and then recreated"
    )
    assert "deletionTimestamp" not in deletable.read(obj)
    assert deletable.delete(obj, uid=uid).status == 200
    assert deletable.read(obj)["deletionTimestamp"]


def test_a_resource_version_in_the_query_is_a_precondition(deletable: Deletable) -> None:
    obj = deletable.create()
    name = obj["metadata"]["name"]
    version = deletable.read(obj)["resourceVersion"]
    assert deletable.delete(obj, resourceVersion="1").expect(409)["message"] == (
        f'Operation cannot be fulfilled on {deletable.kind} "{name}": the ResourceVersion in the precondition (1) does '
        f"not match the ResourceVersion in record ({version}). The object might have been modified"
    )
    assert "deletionTimestamp" not in deletable.read(obj)
    assert deletable.delete(obj, uid=obj["metadata"]["uid"], resourceVersion=version).status == 200


def test_empty_preconditions_count_as_missing(deletable: Deletable) -> None:
    assert deletable.delete(deletable.create(), uid="", resourceVersion="").status == 200


def test_a_uid_in_the_query_is_a_precondition_on_each_object_of_a_collection(deletable: Deletable) -> None:
    obj = deletable.create()
    assert deletable.delete_all(uid=ANOTHER).expect(409)["reason"] == "Conflict"
    assert "deletionTimestamp" not in deletable.read(obj)
    assert deletable.delete_all(uid=obj["metadata"]["uid"]).status == 200
    assert deletable.read(obj)["deletionTimestamp"]


def test_a_resource_version_in_the_query_is_a_precondition_on_each_object_of_a_collection(deletable: Deletable) -> None:
    obj = deletable.create()
    version = deletable.read(obj)["resourceVersion"]
    change = {"metadata": {"annotations": {"changed": "true"}}}
    deletable.client.request("PATCH", deletable.path(obj), change, content_type=MERGE).expect(200)
    assert deletable.delete_all(resourceVersion=version).expect(409)["reason"] == "Conflict"
    assert "deletionTimestamp" not in deletable.read(obj)
    assert deletable.delete_all(resourceVersion=deletable.read(obj)["resourceVersion"]).status == 200
    assert deletable.read(obj)["deletionTimestamp"]


def test_a_collection_at_a_version_does_not_include_later_objects(deletable: Deletable) -> None:
    """With a body, the version in the query is that of the list alone."""
    obj = deletable.create()
    version = deletable.read(obj)["resourceVersion"]
    later = deletable.create()
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    deleted = deletable.delete_all(options, resourceVersion=version).expect(200)["items"]
    assert [each["metadata"]["uid"] for each in deleted] == [obj["metadata"]["uid"]]
    assert deletable.read(obj)["deletionTimestamp"]
    assert "deletionTimestamp" not in deletable.read(later)


@pytest.mark.parametrize(
    ("query", "finalizers", "code"),
    [
        pytest.param({"propagationPolicy": "Foreground"}, [KEEP, "foregroundDeletion"], 200, id="Foreground"),
        pytest.param({"propagationPolicy": "Orphan"}, [KEEP, "orphan"], 200, id="Orphan"),
        pytest.param({"propagationPolicy": "Background"}, [KEEP], 200, id="Background"),
        pytest.param({"orphanDependents": "true"}, [KEEP, "orphan"], 200, id="orphanDependents"),
        pytest.param({"orphanDependents": "0"}, [KEEP], 202, id="not orphanDependents"),
        pytest.param({"gracePeriodSeconds": "60"}, [KEEP], 200, id="a grace period, which neither kind has"),
        pytest.param({"gracePeriodSeconds": "-1"}, [KEEP], 200, id="a negative grace period"),
    ],
)
def test_the_query_has_the_other_options_as_well(
    deletable: Deletable, query: dict[str, str], finalizers: list[str], code: int
) -> None:
    answer = deletable.delete(deletable.create(), **query)
    metadata = answer.expect(code)["metadata"]
    assert (sorted(metadata["finalizers"]), metadata["deletionGracePeriodSeconds"]) == (sorted(finalizers), 0)


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param(
            {"propagationPolicy": "x"},
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
            id="an unknown policy",
        ),
        pytest.param(
            {"propagationPolicy": ""},
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
            id="an empty policy",
        ),
        pytest.param(
            {"propagationPolicy": "Orphan", "orphanDependents": ""},
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and '
            "deletionPropagation cannot be both set",
            id="both forms of the policy",
        ),
        pytest.param(
            {"dryRun": "Some"},
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
            id="an unknown dry run",
        ),
        pytest.param(
            {"gracePeriodSeconds": "soon"},
            400,
            'strconv.ParseInt: parsing "soon": invalid syntax',
            id="a grace period that is no number",
        ),
        pytest.param(
            {"gracePeriodSeconds": ""},
            400,
            'strconv.ParseInt: parsing "": invalid syntax',
            id="an empty grace period",
        ),
    ],
)
def test_invalid_options_in_the_query_delete_nothing(
    deletable: Deletable, query: dict[str, str], code: int, message: str
) -> None:
    obj = deletable.create()
    assert deletable.delete(obj, **query).expect(code)["message"] == message
    assert deletable.delete_all(**query).expect(code)["message"] == message
    assert "deletionTimestamp" not in deletable.read(obj)


def test_a_dry_run_in_the_query_deletes_nothing(deletable: Deletable) -> None:
    obj = deletable.create()
    assert deletable.delete(obj, dryRun="All").expect(200)["metadata"]["deletionTimestamp"]
    assert deletable.delete_all(dryRun="All").status == 200
    assert "deletionTimestamp" not in deletable.read(obj)


def test_a_body_replaces_the_query(deletable: Deletable) -> None:
    """Even one that sets nothing: a kube-apiserver reads the query only if there is no body."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    obj = deletable.create()
    answer = deletable.delete(obj, options, uid=ANOTHER, dryRun="All", propagationPolicy="x")
    assert answer.expect(200)["metadata"]["finalizers"] == [KEEP]
    assert deletable.read(obj)["deletionTimestamp"]


def test_a_blank_body_is_not_an_empty_one(deletable: Deletable) -> None:
    obj = deletable.create()
    assert deletable.delete(obj, " ", uid=obj["metadata"]["uid"]).status == 400
    assert "deletionTimestamp" not in deletable.read(obj)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param('"preconditions":{"uid":"UID"},"preconditions":{"uid":"OTHER"}', 409, id="the last uid counts"),
        pytest.param('"preconditions":{"uid":"OTHER"},"preconditions":{"uid":"UID"}', 200, id="only the last uid"),
        pytest.param(
            '"preconditions":{"uid":"OTHER"},"preconditions":{"resourceVersion":"VERSION"}',
            409,
            id="both preconditions",
        ),
        pytest.param('"preconditions":{"uid":"OTHER"},"preconditions":{}', 409, id="nothing is added"),
        pytest.param('"preconditions":{"uid":"OTHER"},"preconditions":null', 200, id="null removes both"),
        pytest.param('"preconditions":{"uid":"OTHER","uid":null}', 200, id="null removes one"),
        pytest.param('"gracePeriodSeconds":"none","gracePeriodSeconds":0', 400, id="a wrong type that is overridden"),
        pytest.param('"preconditions":"none","preconditions":{}', 400, id="no object"),
        pytest.param('"propagationPolicy":"Never","propagationPolicy":"Background"', 200, id="an overridden policy"),
        pytest.param('"kind":"Foo","kind":"DeleteOptions"', 200, id="an overridden kind"),
        pytest.param('"dryRun":["Some","All"],"dryRun":["All"]', 200, id="an overridden list"),
    ],
)
def test_the_last_of_duplicate_keys_counts_and_objects_are_merged(deletable: Deletable, body: str, code: int) -> None:
    """As Go decodes JSON into a struct. The body is not decoded strictly: there is no warning (WIRE-D87)."""
    obj = deletable.create()
    metadata = deletable.read(obj)
    for text, value in {"UID": metadata["uid"], "OTHER": ANOTHER, "VERSION": metadata["resourceVersion"]}.items():
        body = body.replace(text, value)
    response = deletable.delete(obj, f'{{{body},"dryRun":["All"]}}'.encode())
    assert (response.status, response.warnings) == (code, [])
    assert "deletionTimestamp" not in deletable.read(obj)


@pytest.mark.parametrize("last", [[], None])
def test_the_last_of_two_dry_runs_counts(deletable: Deletable, last: object) -> None:
    obj = deletable.create()
    deletable.delete(obj, f'{{"dryRun":["All"],"dryRun":{json.dumps(last)}}}'.encode()).expect(200)
    assert "deletionTimestamp" in deletable.read(obj)
