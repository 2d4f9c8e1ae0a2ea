"""Each change in the cluster enqueues exactly the Tenants that it can affect."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from apiserver.storage.watch_cache import WatchCache, encode
from controller.tenant.managed_objects import ManagedKind, ObjectDigests
from controller.tenant.values_secret_step import InheritedValues
from controller.tenant.watches import NamespaceEventHandler, TenantEnqueuer, TenantEventHandler
from registry.cluster.interface import SECRETS
from registry.cluster.object_store import ObjectStore
from registry.tenant.tree import TenantTree
from registry.tenant.types import tenant_resource
from tests.run_coroutine import run_coroutine
from tests.tenant_objects import ROOT_HOST, tenant, tenant_summary, tree_of


class Tenants:
    """A watch cache with the tree and the event handler subscribed, and the names that were enqueued."""

    def __init__(self) -> None:
        self.cache = WatchCache(tenant_resource())
        self.tree = TenantTree(root_host=ROOT_HOST)
        self.enqueued: list[str] = []
        events = TenantEventHandler(tree=self.tree, enqueue=lambda key: self.enqueued.append(key.name))
        self.cache.subscribe(self.tree.on_event)
        self.cache.subscribe(events.on_event)
        self.cache.replace([], 1)
        self.put(tenant("root"))

    def put(self, obj: Object) -> set[str]:
        obj["metadata"]["resourceVersion"] = str(self.cache.rv + 1)
        return self._enqueued_by(lambda: self.cache.apply("MODIFIED", encode(self.cache.resource, obj)))

    def remove(self, obj: Object) -> set[str]:
        obj["metadata"]["resourceVersion"] = str(self.cache.rv + 1)
        return self._enqueued_by(lambda: self.cache.apply("DELETED", encode(self.cache.resource, obj)))

    def _enqueued_by(self, change: Callable[[], None]) -> set[str]:
        self.enqueued.clear()
        change()
        return set(self.enqueued)


def family() -> Tenants:
    tenants = Tenants()
    for each in (
        tenant("alpha"),
        tenant("beta", "tenant-alpha"),
        tenant("own", "tenant-alpha", spec={"host": "own.example", "gateway": True}),
        tenant("child", "tenant-alpha-own"),
        tenant("aside"),
    ):
        tenants.put(each)
    return tenants


def test_a_change_that_is_not_inherited_enqueues_one_tenant() -> None:
    assert family().put(tenant("alpha", spec={"computeplane": True})) == {"alpha"}


@pytest.mark.parametrize("service", ["etcd", "ingress", "monitoring", "seaweedfs"])
def test_a_service_enqueues_all_that_inherit_it_and_no_others(service: str) -> None:
    tenants = family()
    tenants.put(tenant("own", "tenant-alpha", spec={"host": "own.example", "gateway": True, service: True}))

    assert tenants.put(tenant("alpha", spec={service: True})) == {"alpha", "beta"}


def test_a_scheduling_class_enqueues_all_descendants() -> None:
    assert family().put(tenant("alpha", spec={"schedulingClass": "gold"})) == {"alpha", "beta", "own", "child"}


def test_a_host_enqueues_all_that_inherit_it_and_no_others() -> None:
    assert family().put(tenant("alpha", spec={"host": "new.example"})) == {"alpha", "beta"}


def test_a_gateway_enqueues_all_that_inherit_it_and_no_others() -> None:
    assert family().put(tenant("alpha", spec={"gateway": True})) == {"alpha", "beta"}


def test_creating_or_deleting_a_parent_enqueues_all_descendants() -> None:
    tenants = family()

    assert tenants.remove(tenant("alpha")) == {"alpha", "beta", "own", "child"}
    assert tenants.put(tenant("alpha")) == {"alpha", "beta", "own", "child"}


def test_tenants_that_share_a_host_or_no_longer_do_are_enqueued() -> None:
    tenants = family()

    assert tenants.put(tenant("twin", spec={"host": "aside.example.org"})) == {"twin", "aside"}
    assert tenants.put(tenant("twin")) == {"twin", "aside"}
    tenants.put(tenant("twin", spec={"host": "aside.example.org"}))
    assert tenants.remove(tenant("twin")) == {"twin", "aside"}


class Namespaces:
    """A Namespace handler with its store, and the names that were enqueued."""

    def __init__(self) -> None:
        self.store = ObjectStore()
        self.enqueued: list[str] = []
        tree = tree_of(tenant_summary("alpha"), tenant_summary("beta", "tenant-alpha"))
        self.handler = NamespaceEventHandler(
            tree=tree, namespaces=self.store, enqueue=lambda key: self.enqueued.append(key.name)
        )
        self._rv = 0

    def observe(self, type_: str, name: str, *, tenant: str = "") -> set[str]:
        self.enqueued.clear()
        self._rv += 1
        obj: Object = {"metadata": {"name": name, "uid": name, "resourceVersion": str(self._rv)}}
        if tenant:
            obj["metadata"]["annotations"] = {"apps.cozystack.io/tenant": tenant, "apps.cozystack.io/tenant-uid": "u"}
        if type_ == "DELETED":
            self.store.remove(obj)
        else:
            self.store.put(obj)
        self.handler.apply(type_, obj, self._rv)
        return set(self.enqueued)

    def recorded(self, name: str, namespace: str = "tenant-root") -> list[str]:
        return [each["metadata"]["name"] for each in self.handler.recorded(Key(namespace, name))]


def test_creating_or_deleting_a_namespace_enqueues_its_tenant_and_the_children() -> None:
    namespaces = Namespaces()

    assert namespaces.observe("ADDED", "tenant-alpha") == {"alpha", "beta"}
    assert namespaces.observe("MODIFIED", "tenant-alpha") == {"alpha"}
    assert namespaces.observe("DELETED", "tenant-alpha") == {"alpha", "beta"}


def test_a_namespace_of_a_deleted_tenant_enqueues_that_tenant() -> None:
    namespaces = Namespaces()

    assert namespaces.observe("ADDED", "tenant-bob", tenant="tenant-root/bob") == {"bob"}
    assert namespaces.recorded("bob") == ["tenant-bob"]
    assert list(namespaces.handler.tenants()) == [Key("tenant-root", "bob")]


def test_a_changed_record_enqueues_both_tenants() -> None:
    namespaces = Namespaces()
    namespaces.observe("ADDED", "x", tenant="tenant-root/bob")

    assert namespaces.observe("MODIFIED", "x", tenant="tenant-root/carol") == {"bob", "carol"}
    assert (namespaces.recorded("bob"), namespaces.recorded("carol")) == ([], ["x"])


def test_a_namespace_without_a_tenant_enqueues_nothing() -> None:
    assert Namespaces().observe("ADDED", "kube-system") == set()


def test_a_namespace_that_is_missing_from_a_new_list_counts_as_deleted() -> None:
    namespaces = Namespaces()
    namespaces.observe("ADDED", "tenant-alpha")
    namespaces.observe("ADDED", "x", tenant="tenant-root/bob")
    namespaces.enqueued.clear()

    run_coroutine(namespaces.handler.replace([], 9))

    assert set(namespaces.enqueued) == {"alpha", "beta", "bob"}
    assert list(namespaces.handler.tenants()) == []
    assert namespaces.observe("ADDED", "tenant-alpha") == {"alpha", "beta"}


class Contents:
    """The handlers of the contents of namespaces, with a small tree, and the names that were enqueued."""

    def __init__(self) -> None:
        tree = tree_of(tenant_summary("alpha"), tenant_summary("beta", "tenant-alpha"), tenant_summary("aside"))
        self.enqueued: list[str] = []
        enqueuer = TenantEnqueuer(tree=tree, enqueue=lambda key: self.enqueued.append(key.name))
        kind = ManagedKind(
            resource=SECRETS, normalize=lambda obj: obj.get("data"), selects=lambda _, name: name == "cozystack-values"
        )
        self.digests = ObjectDigests(kind, on_change=enqueuer.enqueue_owner)
        self.values = InheritedValues(enqueue_heirs=enqueuer.enqueue_heirs)

    def enqueued_by(self, change: Callable[[], None]) -> list[str]:
        self.enqueued.clear()
        change()
        return sorted(self.enqueued)


def secret(namespace: str, text: str = "", *, name: str = "cozystack-values", **metadata: Any) -> Object:
    data = {"values.yaml": base64.b64encode(text.encode()).decode()}
    metadata = {"name": name, "namespace": namespace, "resourceVersion": "1", **metadata}
    return {"metadata": metadata, "data": data}


def test_a_changed_object_enqueues_the_tenant_of_its_namespace_once() -> None:
    contents = Contents()

    assert contents.enqueued_by(lambda: contents.digests.apply("ADDED", secret("tenant-alpha"), 1)) == ["alpha"]
    assert contents.enqueued_by(lambda: contents.digests.apply("MODIFIED", secret("tenant-alpha"), 2)) == []
    assert contents.enqueued_by(lambda: contents.digests.apply("MODIFIED", secret("tenant-alpha", "x"), 3)) == ["alpha"]
    assert contents.enqueued_by(lambda: contents.digests.apply("DELETED", secret("tenant-alpha", "x"), 4)) == ["alpha"]
    assert contents.enqueued_by(lambda: contents.digests.apply("ADDED", secret("tenant-alpha", name="theirs"), 5)) == []
    assert contents.enqueued_by(lambda: contents.digests.apply("ADDED", secret("kube-system"), 6)) == []


def test_the_event_of_our_own_write_enqueues_nothing() -> None:
    contents = Contents()
    contents.digests.record_written(secret("tenant-alpha", "x"))

    assert contents.enqueued_by(lambda: contents.digests.apply("ADDED", secret("tenant-alpha", "x"), 1)) == []
    assert contents.digests.get("tenant-alpha", "cozystack-values") is not None


def test_events_that_come_before_the_answer_to_our_request_count() -> None:
    contents = Contents()
    digests, name = contents.digests, "cozystack-values"
    theirs = digests.kind.digest_of(secret("tenant-alpha", "theirs"))

    digests.apply("MODIFIED", secret("tenant-alpha", "theirs"), 3)
    digests.record_written(secret("tenant-alpha", "ours", resourceVersion="2"))
    assert digests.get("tenant-alpha", name) == theirs

    requested = digests.version
    digests.apply("DELETED", secret("tenant-alpha", "theirs"), 4)
    digests.apply("ADDED", secret("tenant-alpha", "theirs"), 5)
    digests.record_absent("tenant-alpha", name, since=requested)
    assert digests.get("tenant-alpha", name) == theirs

    digests.record_absent("tenant-alpha", name, since=digests.version)
    assert digests.get("tenant-alpha", name) is None


def test_a_changed_manager_of_an_object_enqueues_its_tenant() -> None:
    contents = Contents()
    contents.digests.record_written(secret("tenant-alpha"))
    helm = secret("tenant-alpha", labels={"app.kubernetes.io/managed-by": "Helm"})

    assert contents.enqueued_by(lambda: contents.digests.apply("MODIFIED", helm, 1)) == ["alpha"]


def test_a_new_list_enqueues_only_tenants_of_objects_that_differ() -> None:
    contents = Contents()
    for namespace in ("tenant-alpha", "tenant-alpha-beta", "tenant-aside"):
        contents.digests.record_written(secret(namespace, "same"))

    items = [secret("tenant-alpha", "same"), secret("tenant-alpha-beta", "other")]

    assert contents.enqueued_by(lambda: run_coroutine(contents.digests.replace(items, 9))) == ["aside", "beta"]
    assert contents.digests.get("tenant-aside", "cozystack-values") is None


def test_the_values_of_a_parent_enqueue_its_children_and_not_their_children() -> None:
    contents = Contents()
    text = "_cluster: {a: b}\n_namespace: {etcd: x}\n"
    run_coroutine(contents.values.replace([secret("tenant-root", text), secret("tenant-alpha", text)], 1))

    def change(namespace: str, text: str) -> list[str]:
        return contents.enqueued_by(lambda: contents.values.apply("MODIFIED", secret(namespace, text), 2))

    assert change("tenant-alpha", "_cluster: {a: c}\n_namespace: {etcd: x}\n") == ["beta"]
    assert change("tenant-alpha", "_cluster: {a: c}\n_namespace: {etcd: y}\n") == []
    assert change("tenant-root", "_cluster: {a: c}\n_namespace: {etcd: x}\n") == ["alpha", "aside", "root"]
    assert contents.enqueued_by(lambda: run_coroutine(contents.values.replace([secret("tenant-root", text)], 3))) == [
        "alpha",
        "aside",
        "beta",
        "root",
    ]
    assert contents.values.get("tenant-alpha") is None
