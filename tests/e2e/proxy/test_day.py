"""A day of a tenant's user with kubectl, whose kubeconfig points at the proxy with the settings of its overlay."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proxy.test_cluster_kinds import allow_names
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import REPOSITORY
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import Object, RbacObjects

SETTINGS = REPOSITORY / "manifests" / "overlays" / "proxy" / "config.yaml"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
STORAGE = "storage.k8s.io"
SERVED_AT = re.compile(r"Starting to serve on 127\.0\.0\.1:(\d+)")


@pytest.fixture(scope="module")
def day(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantProxy]:
    """A proxy with the settings of the overlay, and PersistentVolumes by claim, which they have commented out."""
    directory: Path = tmp_path_factory.mktemp("day")
    config = directory / "config.yaml"
    config.write_text(f"{SETTINGS.read_text()}\npersistentVolumesByClaim: true\n")
    running = TenantProxy(cluster, directory, f"--config={config}")
    yield running
    running.stop()


@pytest.fixture
def own(kube: KubeCluster, day: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str) -> str:
    """The namespace of a tenant whose administrator the user is."""
    namespace = tenants.create_with_namespace()
    kube.grant(unique, "cozy:tenant:admin", namespace)
    kube.wait_until("the list is answered", lambda: day.client(unique).get("/api/v1/namespaces").status == 200)
    return namespace


def served_kinds(client: Client) -> Iterator[tuple[str, Object]]:
    """The path of a group version, and each kind of it that can be listed, in their preferred versions."""
    groups = client.get("/apis").expect(200)["groups"]
    for path in ("/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups)):
        for kind in client.get(path).expect(200)["resources"]:
            if "list" in kind["verbs"]:
                yield path, kind


def may_list(client: Client, path: str, kind: Object, namespace: str) -> bool:
    group = path.split("/")[2] if path.startswith("/apis") else ""
    attributes = {"verb": "list", "group": group, "resource": kind["name"], "namespace": namespace}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    document = {**review, "spec": {"resourceAttributes": attributes}}
    return bool(client.request("POST", REVIEWS, document).expect(201)["status"]["allowed"])


def test_every_kind_that_a_user_may_list_in_a_namespace_is_listed_in_all(
    day: TenantProxy, own: str, unique: str
) -> None:
    """No 403 means "yours, but not listable": of all kinds that the cluster serves, also our own."""
    client = day.client(unique)
    listed: list[str] = []
    for path, kind in served_kinds(client):
        if kind["namespaced"] and may_list(client, path, kind, own):
            client.get(f"{path}/namespaces/{own}/{kind['name']}").expect(200)
            answer = client.get(f"{path}/{kind['name']}")
            assert answer.status == 200, f"{path}/{kind['name']}: {answer.json()}"
            listed.append(kind["name"])
    assert {"pods", "services", "persistentvolumeclaims", "tenants"} <= {*listed}


def test_kubectl_has_no_refusal_of_what_is_the_users(
    kube: KubeCluster, day: TenantProxy, own: str, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """get, -w, describe, -A, by name, auth can-i, api-resources: nothing is forbidden to who has the rights."""
    fast, hidden = f"{unique}-fast", f"{unique}-hidden"
    for name in (fast, hidden):
        body = {"metadata": {"name": name}, "provisioner": "example.org/disk"}
        kube.client().request("POST", f"/apis/{STORAGE}/v1/storageclasses", body).expect(201)
    allow_names(access, unique, fast, verbs=("get", "list", "watch"), group=STORAGE, plural="storageclasses")
    client = day.client(unique)
    path = f"/apis/{STORAGE}/v1/storageclasses"
    kube.wait_until("the class is listed", lambda: client.get(path).status == 200)
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}}
    kube.client().request("POST", f"/api/v1/namespaces/{own}/services", service).expect(201)

    def kubectl(*arguments: str) -> str:
        done = day.kubectl(*arguments, user=unique)
        assert "orbidden" not in done.stderr, done.stderr
        return done.stdout

    try:
        assert kubectl("get", "ns", "-o", "name") == f"namespace/{own}\n"
        assert kubectl("get", "storageclass", "-o", "name") == f"storageclass.{STORAGE}/{fast}\n"
        assert "example.org/disk" in kubectl("describe", "storageclass", fast)
        assert kubectl("get", "services", "-A", "--no-headers").split()[:2] == [own, "web"]
        assert "Namespace:" in kubectl("describe", "services", "-A")
        for kinds in ("pods,services", "pvc,events", "tenants", "pv"):
            kubectl("get", kinds, *([] if kinds == "pv" else ["-A"]))
        assert "Labels:" in kubectl("describe", "ns", own)
        assert kubectl("auth", "can-i", "list", "pods", "-n", own) == "yes\n"
        assert "pods" in kubectl("auth", "can-i", "--list", "-n", own)
        assert "tenants" in kubectl("api-resources", "--verbs=list", "-o", "name")
        assert "KIND:" in kubectl("explain", "pod")
    finally:
        for name in (fast, hidden):
            kube.client().request("DELETE", f"{path}/{name}")


def test_kubectl_watches_the_namespaces(
    kube: KubeCluster, day: TenantProxy, own: str, tenants: Tenants, unique: str
) -> None:
    """A namespace that is granted while `get -w` runs appears in it."""
    watching = day.start_kubectl("get", "namespaces", "-w", "-o", "name", user=unique)
    try:
        kube.wait_until("the namespace is there", lambda: f"namespace/{own}" in watching.log())
        later = tenants.create_with_namespace()
        kube.grant(unique, "cozy:tenant:view", later)
        kube.wait_until("the granted one appears", lambda: f"namespace/{later}" in watching.log())
        assert "orbidden" not in watching.log()
    finally:
        watching.kill()


def test_kubectl_proxy_stands_in_front(
    kube: KubeCluster, day: TenantProxy, own: str, tenants: Tenants, unique: str
) -> None:
    """As for dashboards on a desk: lists and watches arrive by HTTP, with kubectl's credentials."""
    front = day.start_kubectl("proxy", "--port=0", user=unique)
    try:
        kube.wait_until("kubectl proxy listens", lambda: SERVED_AT.search(front.log()))
        found = SERVED_AT.search(front.log())
        assert found is not None
        address = f"http://127.0.0.1:{found[1]}/api/v1"
        with urllib.request.urlopen(f"{address}/namespaces") as answer:
            assert [each["metadata"]["name"] for each in json.load(answer)["items"]] == [own]
        with urllib.request.urlopen(f"{address}/pods") as answer:
            version = json.load(answer)["metadata"]["resourceVersion"]
        watch = f"{address}/pods?watch=true&timeoutSeconds=30&resourceVersion={version}"
        with urllib.request.urlopen(watch, timeout=40) as events:
            pod = {"metadata": {"name": "seen"}, "spec": {"containers": [{"name": "a", "image": "example.org/a"}]}}
            path = f"/api/v1/namespaces/{own}/pods"
            account = f"/api/v1/namespaces/{own}/serviceaccounts/default"
            kube.wait_until("the namespace has an account", lambda: kube.client().get(account).status == 200)
            kube.client().request("POST", path, pod).expect(201)
            event = json.loads(next(iter(events)))
        assert (event["type"], event["object"]["metadata"].get("name")) == ("ADDED", "seen"), str(event)
    finally:
        front.kill()
