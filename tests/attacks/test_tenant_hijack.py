"""ATTACK-07: taking over labels, annotations and owners of the platform, and namespaces that are no tenant's.

The policy of layer 4 is tested by the table of tests/policies; these tests run without it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.peer_lessons import JSON_PATCH
from tests.e2e.support.tenants import Object, Tenants, manifest

SYSTEM_NAMESPACES = ["kube-system", "kube-public", "default", "cozy-system"]
APPLY_QUERY = {"fieldManager": "attacker", "force": "true"}


def helmrelease_path(namespace: str, name: str) -> str:
    return f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{namespace}/helmreleases/tenant-{name}"


def namespace_path(name: str, subresource: str = "") -> str:
    return f"/api/v1/namespaces/{name}{subresource and '/'}{subresource}"


def hostile_metadata(bob: TenantAdmin) -> Object:
    """Labels and annotations with a meaning for the platform, if they reached the HelmRelease or the Namespace."""
    return {
        "labels": {
            "apps.cozystack.io/application.kind": "Kubernetes",
            "apps.cozystack.io/application.name": bob.child,
            "sharding.fluxcd.io/key": "other",
            "helm.toolkit.fluxcd.io/name": f"tenant-{bob.child}",
            "app.kubernetes.io/managed-by": "Helm",
            "namespace.cozystack.io/host": "victim.example",
            "namespace.cozystack.io/gateway": bob.namespace,
            f"tenant.cozystack.io/{bob.namespace}": "",
            "platform.cozystack.io/no-delete": "true",
            "pod-security.kubernetes.io/enforce": "privileged",
        },
        "annotations": {
            "apps.cozystack.io/adopt": f"{bob.namespace}/{bob.child}",
            "apps.cozystack.io/tenant-uid": "00000000-0000-0000-0000-000000000000",
            "apps.cozystack.io/tenant-status": '{"host":"victim.example"}',
            "apps.cozystack.io/managed-fields": "[]",
            "cozystack.io/gateway-attached-by": bob.namespace,
            "meta.helm.sh/release-name": f"tenant-{bob.child}",
            "meta.helm.sh/release-namespace": bob.namespace,
        },
    }


def metadata_writes(
    client: Client, path: str, name: str, wanted: Object
) -> Iterator[tuple[str, Callable[[], Response]]]:
    """Yields every way to write this metadata to an object."""

    def changed(body: Object) -> Object:
        for field, value in wanted.items():
            body["metadata"][field] = {**body["metadata"].get(field, {}), **value} if isinstance(value, dict) else value
        return body

    add = [{"op": "add", "path": f"/metadata/{field}", "value": value} for field, value in wanted.items()]
    applied = configuration(name, metadata=wanted)
    yield "PUT", lambda: client.update(path, changed)
    yield "merge patch", lambda: client.request("PATCH", path, {"metadata": wanted}, content_type=MERGE)
    yield "JSON patch", lambda: client.request("PATCH", path, add, content_type=JSON_PATCH)
    yield "apply", lambda: client.request("PATCH", path, applied, query=APPLY_QUERY, content_type=APPLY)


def system_labels(release: Object) -> Mapping[str, str]:
    labels = release["metadata"]["labels"]
    return {key: value for key, value in labels.items() if not key.startswith("apps.cozystack.io-")}


def namespace_metadata(client: Client, namespace: str, name: str) -> Mapping[str, Any]:
    """Labels, owners and annotation keys of a workload namespace, without its own name."""
    metadata = client.get(namespace_path(namespace)).expect(200)["metadata"]
    text = repr({key: metadata.get(key) for key in ("labels", "ownerReferences")})
    annotations = sorted(metadata.get("annotations", {}))
    return {"text": text.replace(namespace, "SELF").replace(f"'{name}.", "'NAME."), "annotations": annotations}


def test_metadata_of_a_tenant_does_not_reach_system_labels(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants
) -> None:
    admin = cluster.client()
    plain = tenants.create(alice.namespace)["metadata"]["name"]
    wanted = hostile_metadata(bob)
    for number, how in enumerate(("create", "generateName", "apply", "PUT", "merge patch", "JSON patch")):
        name = _create_tenant(alice, tenants, wanted if number < 3 else {}, how)
        path = tenants_path(alice.namespace, name)
        if number >= 3:
            ways = dict(metadata_writes(alice.client, path, name, wanted))
            ways[how]().expect(200)
        release = admin.get(helmrelease_path(alice.namespace, name)).expect(200)
        reference = admin.get(helmrelease_path(alice.namespace, plain)).expect(200)
        assert system_labels(release) == {
            key: value.replace(plain, name) for key, value in system_labels(reference).items()
        }, how
        annotations = release["metadata"]["annotations"]
        assert "victim" not in annotations.get("apps.cozystack.io/tenant-status", ""), how
        assert "apps.cozystack.io/adopt" not in annotations, how
        assert "meta.helm.sh/release-name" not in annotations, how
        # the Tenant itself shows them
        shown = alice.client.get(path).expect(200)["metadata"]
        assert shown["labels"].items() >= wanted["labels"].items(), how
        for each in (name, plain):
            tenants.wait_until_settled(each, alice.namespace)
        expected = namespace_metadata(admin, f"{alice.namespace}-{plain}", plain)
        assert namespace_metadata(admin, f"{alice.namespace}-{name}", name) == expected, how


def _create_tenant(alice: TenantAdmin, tenants: Tenants, metadata: Object, how: str) -> str:
    name, namespace = tenants.new_name(alice.namespace), alice.namespace
    if how == "apply":
        body = configuration(name, metadata=metadata)
        path = tenants_path(namespace, name)
        alice.client.request("PATCH", path, body, query=APPLY_QUERY, content_type=APPLY).expect(201)
        return name
    body = manifest(name, namespace, **metadata)
    if how == "generateName":
        del body["metadata"]["name"]
        body["metadata"]["generateName"] = name
    created: str = alice.client.request("POST", alice.children, body).expect(201)["metadata"]["name"]
    return created


def test_owner_references_of_a_tenant_do_not_affect_other_objects(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants
) -> None:
    """Neither bob's Tenant as an owner nor the namespace of alice's child is affected."""
    admin = cluster.client()
    theirs = admin.get(bob.child_path).expect(200)
    owner = {"apiVersion": theirs["apiVersion"], "kind": "Tenant", "name": bob.child, "uid": theirs["metadata"]["uid"]}
    place = f"{alice.namespace}-{alice.child}"
    before = tenants.wait_for_namespace(place)["metadata"].get("ownerReferences")
    for how, write in metadata_writes(alice.client, alice.child_path, alice.child, {"labels": {"how": "x"}}):
        assert write().status == 200, how
    body = {"metadata": {"ownerReferences": [{**owner, "blockOwnerDeletion": True, "controller": True}]}}
    alice.client.request("PATCH", alice.child_path, body, content_type=MERGE)
    assert tenants.get(bob.child, bob.namespace)["metadata"]["uid"] == owner["uid"]
    assert "ownerReferences" not in tenants.get(bob.child, bob.namespace)["metadata"]
    found = admin.get(namespace_path(place))
    if found.status == 404:
        # for the garbage collector an owner in another namespace does not exist: alice's own child is deleted
        tenants.wait_until_gone(alice.child_path)
    else:
        assert found.expect(200)["metadata"].get("ownerReferences") == before
    alice.client.request("PATCH", alice.child_path, {"metadata": {"ownerReferences": None}}, content_type=MERGE)


def test_tenant_admins_cannot_write_namespaces(alice: TenantAdmin, bob: TenantAdmin) -> None:
    for name in (alice.namespace, f"{alice.namespace}-{alice.child}", bob.namespace, ROOT, *SYSTEM_NAMESPACES):
        body = {"metadata": {"name": name, "labels": {"namespace.cozystack.io/host": "victim.example"}}}
        for subresource in ("", "status", "finalize"):
            path = namespace_path(name, subresource)
            answers = [
                alice.client.request("PUT", path, body),
                alice.client.request("PATCH", path, body, content_type=MERGE),
                alice.client.request("PATCH", path, body, query=APPLY_QUERY, content_type=APPLY),
                alice.client.request("DELETE", path),
            ]
            assert {answer.status for answer in answers} == {403}, name
    assert alice.client.request("POST", "/api/v1/namespaces", {"metadata": {"name": "tenant-x"}}).status == 403


PROTECTED_KEYS = ["host", "etcd", "monitoring", "ingress", "seaweedfs"]


def namespace_writes(client: Client, name: str, change: Callable[[Object], None]) -> Iterator[tuple[str, Response]]:
    """Makes the same change by every verb and subresource that can write a Namespace's metadata."""
    path = namespace_path(name)

    def changed() -> Object:
        body: Object = copy.deepcopy(client.get(path).expect(200))
        body["metadata"].pop("resourceVersion")
        change(body["metadata"])
        return body

    for subresource in ("", "status", "finalize"):
        yield f"PUT {subresource}", client.request("PUT", namespace_path(name, subresource), changed())
    for subresource in ("", "status"):
        metadata = changed()["metadata"]
        changed_fields = {key: metadata.get(key) for key in ("labels", "ownerReferences")}
        current = client.get(path).expect(200)["metadata"].get("labels", {})
        removed = {key: None for key in current if key not in metadata.get("labels", {})}
        body = {"metadata": {**changed_fields, "labels": {**metadata.get("labels", {}), **removed}}}
        yield (
            f"merge patch {subresource}",
            client.request("PATCH", namespace_path(name, subresource), body, content_type=MERGE),
        )
    operations = [{"op": "add", "path": "/metadata/labels", "value": changed()["metadata"].get("labels", {})}]
    yield "JSON patch", client.request("PATCH", path, operations, content_type=JSON_PATCH)
    applied = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": changed()["metadata"].get("labels", {})}}
    yield "apply", client.request("PATCH", path, applied, query=APPLY_QUERY, content_type=APPLY)


def _overwrite_labels(metadata: Object) -> None:
    labels = metadata["labels"]
    labels |= {f"namespace.cozystack.io/{key}": "tenant-thief" for key in PROTECTED_KEYS}
    labels["namespace.cozystack.io/gateway"] = "tenant-thief"
    labels["tenant.cozystack.io/tenant-thief"] = ""


def _remove_labels_and_owners(metadata: Object) -> None:
    ours = ("namespace.cozystack.io/", "tenant.cozystack.io/")
    metadata["labels"] = {key: value for key, value in metadata["labels"].items() if not key.startswith(ours)}
    metadata["ownerReferences"] = []


@pytest.mark.parametrize(
    "change",
    [pytest.param(_overwrite_labels, id="overwritten"), pytest.param(_remove_labels_and_owners, id="removed")],
)
def test_changes_to_the_metadata_of_a_workload_namespace_are_reverted(
    cluster: E2eCluster, alice: TenantAdmin, tenants: Tenants, change: Callable[[Object], None]
) -> None:
    """CVE-2022-46167, CVE-2025-55205: a write by a user who may write Namespaces is denied or reverted, whatever the
    verb."""
    client = cluster.client()
    tenants.wait_until_settled(alice.tenant)

    def now() -> Mapping[str, Any]:
        metadata = client.get(namespace_path(alice.namespace)).expect(200)["metadata"]
        return {"labels": metadata["labels"], "ownerReferences": metadata.get("ownerReferences")}

    before = now()
    assert before["labels"]["namespace.cozystack.io/host"]
    assert before["ownerReferences"]
    for how, answer in namespace_writes(client, alice.namespace, change):
        assert answer.status in (200, 403, 405), (how, answer.body)
        tenants.wait(f"the metadata is restored after {how}", lambda: now() == before)


FOREIGN_METADATA = [
    pytest.param({}, id="no metadata"),
    pytest.param({"labels": {"namespace.cozystack.io/host": "victim.example"}}, id="a label of ours"),
    pytest.param({"annotations": {"apps.cozystack.io/tenant": "{parent}/{name}"}}, id="the Tenant without its uid"),
    pytest.param({"annotations": {"apps.cozystack.io/adopt": "{parent}/another"}}, id="adoption by another Tenant"),
    pytest.param({"annotations": {"apps.cozystack.io/adopt": "{name}"}}, id="adoption without a namespace"),
    pytest.param({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, id="a Helm release"),
    pytest.param(
        {
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "meta.helm.sh/release-name": "tenant-{name}",
                "meta.helm.sh/release-namespace": "default",
            },
        },
        id="a Helm release of another namespace",
    ),
]


@pytest.mark.parametrize("metadata", FOREIGN_METADATA)
def test_an_existing_namespace_is_not_adopted(
    cluster: E2eCluster, tenants: Tenants, metadata: Mapping[str, Mapping[str, str]]
) -> None:
    """CVE-2022-46167, CVE-2024-39690: a Tenant takes only a namespace that was created for it, or whose owner allows
    the adoption."""
    client, name = cluster.client(), tenants.new_name()
    filled = {
        field: {key: value.format(parent=ROOT, name=name) for key, value in values.items()}
        for field, values in metadata.items()
    }
    body = {"metadata": {"name": f"tenant-{name}", **filled}}
    client.request("POST", "/api/v1/namespaces", body).expect(201)
    try:
        before = client.get(namespace_path(f"tenant-{name}")).expect(200)
        client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
        tenants.wait("the conflict is reported", lambda: _has_namespace_conflict(tenants, name))
        after = client.get(namespace_path(f"tenant-{name}")).expect(200)
        assert after["metadata"] == before["metadata"]
        for kind in ("secrets/cozystack-values", f"serviceaccounts/tenant-{name}"):
            assert client.get(f"{namespace_path(f'tenant-{name}')}/{kind}").status == 404
        client.request("DELETE", tenants_path(ROOT, name)).expect(200)
        tenants.wait_until_gone(tenants_path(ROOT, name))
        assert "deletionTimestamp" not in client.get(namespace_path(f"tenant-{name}")).expect(200)["metadata"]
    finally:
        client.request("DELETE", namespace_path(f"tenant-{name}"))


def _has_namespace_conflict(tenants: Tenants, name: str) -> bool:
    conditions = tenants.get(name)["status"].get("conditions", ())
    return any(each["type"] == "NamespaceConflict" and each["status"] == "True" for each in conditions)


@pytest.mark.parametrize("namespace", [*SYSTEM_NAMESPACES, "cozy-fluxcd"])
def test_a_system_namespace_cannot_become_part_of_the_tree(
    cluster: E2eCluster, tenants: Tenants, namespace: str
) -> None:
    """It is neither adopted nor accepted as a parent, whatever its annotations, even for the administrator."""
    client, name = cluster.client(), tenants.new_name()
    if client.get(namespace_path(namespace)).status == 404:
        client.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).expect(201)
    adoption = {"apps.cozystack.io/adopt": f"{ROOT}/{name}", "apps.cozystack.io/tenant": f"{ROOT}/{name}"}
    body: Object = {"metadata": {"annotations": adoption}}
    client.request("PATCH", namespace_path(namespace), body, content_type=MERGE).expect(200)
    try:
        before = client.get(namespace_path(namespace)).expect(200)["metadata"]
        client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
        for each in (manifest(f"{name}x", namespace), {"metadata": {"generateName": name}}):
            assert client.request("POST", tenants_path(namespace), each).status == 403
        path = tenants_path(namespace, f"{name}y")
        applied = client.request("PATCH", path, configuration(f"{name}y"), query=APPLY_QUERY, content_type=APPLY)
        assert applied.status == 403
        tenants.wait_until_settled(name)
        after = client.get(namespace_path(namespace)).expect(200)["metadata"]
        assert (after.get("labels"), after.get("annotations")) == (before.get("labels"), before.get("annotations"))
        for wrong in ("kube-system", "Kube-System", ROOT):
            assert client.request("POST", tenants_path(ROOT), manifest(wrong)).status in (409, 422)
    finally:
        reverted = {"metadata": {"annotations": dict.fromkeys(adoption)}}
        client.request("PATCH", namespace_path(namespace), reverted, content_type=MERGE).expect(200)
