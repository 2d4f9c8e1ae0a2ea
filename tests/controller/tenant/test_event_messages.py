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
    """A watch cache with the tree and the events behind it, and the keys that were enqueued."""

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
        return self._told(lambda: self.cache.apply("MODIFIED", encode(self.cache.resource, obj)))

    def remove(self, obj: Object) -> set[str]:
        obj["metadata"]["resourceVersion"] = str(self.cache.rv + 1)
        return self._told(lambda: self.cache.apply("DELETED", encode(self.cache.resource, obj)))

    def _told(self, happen: Callable[[], None]) -> set[str]:
        self.enqueued.clear()
        happen()
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


def test_a_change_that_nobody_inherits_concerns_one_tenant() -> None:
    assert family().put(tenant("alpha", spec={"computeplane": True})) == {"alpha"}


@pytest.mark.parametrize("service", ["etcd", "ingress", "monitoring", "seaweedfs"])
def test_a_service_concerns_all_that_inherit_it_and_no_others(service: str) -> None:
    tenants = family()
    tenants.put(tenant("own", "tenant-alpha", spec={"host": "own.example", "gateway": True, service: True}))

    assert tenants.put(tenant("alpha", spec={service: True})) == {"alpha", "beta"}


def test_a_scheduling_class_concerns_all_below() -> None:
    assert family().put(tenant("alpha", spec={"schedulingClass": "gold"})) == {"alpha", "beta", "own", "child"}


def test_a_host_concerns_all_that_inherit_it_and_no_others() -> None:
    assert family().put(tenant("alpha", spec={"host": "new.example"})) == {"alpha", "beta"}


def test_a_gateway_concerns_all_that_inherit_it_and_no_others() -> None:
    assert family().put(tenant("alpha", spec={"gateway": True})) == {"alpha", "beta"}


def test_a_parent_that_appears_or_goes_concerns_all_below() -> None:
    tenants = family()

    assert tenants.remove(tenant("alpha")) == {"alpha", "beta", "own", "child"}
    assert tenants.put(tenant("alpha")) == {"alpha", "beta", "own", "child"}


def test_whoever_comes_to_share_a_host_or_to_have_it_alone_is_told() -> None:
    tenants = family()

    assert tenants.put(tenant("twin", spec={"host": "aside.example.org"})) == {"twin", "aside"}
    assert tenants.put(tenant("twin")) == {"twin", "aside"}
    tenants.put(tenant("twin", spec={"host": "aside.example.org"}))
    assert tenants.remove(tenant("twin")) == {"twin", "aside"}


class Namespaces:
    def __init__(self) -> None:
        self.store = ObjectStore()
        self.enqueued: list[str] = []
        tree = tree_of(tenant_summary("alpha"), tenant_summary("beta", "tenant-alpha"))
        self.events = NamespaceEventHandler(
            tree=tree, namespaces=self.store, enqueue=lambda key: self.enqueued.append(key.name)
        )
        self._rv = 0

    def see(self, type_: str, name: str, *, tenant: str = "") -> set[str]:
        self.enqueued.clear()
        self._rv += 1
        obj: Object = {"metadata": {"name": name, "uid": name, "resourceVersion": str(self._rv)}}
        if tenant:
            obj["metadata"]["annotations"] = {"apps.cozystack.io/tenant": tenant, "apps.cozystack.io/tenant-uid": "u"}
        if type_ == "DELETED":
            self.store.remove(obj)
        else:
            self.store.put(obj)
        self.events.apply(type_, obj, self._rv)
        return set(self.enqueued)

    def recorded(self, name: str, namespace: str = "tenant-root") -> list[str]:
        return [each["metadata"]["name"] for each in self.events.recorded(Key(namespace, name))]


def test_a_namespace_that_comes_or_goes_concerns_its_tenant_and_the_children() -> None:
    namespaces = Namespaces()

    assert namespaces.see("ADDED", "tenant-alpha") == {"alpha", "beta"}
    assert namespaces.see("MODIFIED", "tenant-alpha") == {"alpha"}
    assert namespaces.see("DELETED", "tenant-alpha") == {"alpha", "beta"}


def test_a_namespace_of_a_tenant_that_is_gone_concerns_that_tenant() -> None:
    namespaces = Namespaces()

    assert namespaces.see("ADDED", "tenant-bob", tenant="tenant-root/bob") == {"bob"}
    assert namespaces.recorded("bob") == ["tenant-bob"]
    assert list(namespaces.events.tenants()) == [Key("tenant-root", "bob")]


def test_a_record_that_changes_concerns_both_tenants() -> None:
    namespaces = Namespaces()
    namespaces.see("ADDED", "x", tenant="tenant-root/bob")

    assert namespaces.see("MODIFIED", "x", tenant="tenant-root/carol") == {"bob", "carol"}
    assert (namespaces.recorded("bob"), namespaces.recorded("carol")) == ([], ["x"])


def test_namespaces_of_no_tenant_concern_nobody() -> None:
    assert Namespaces().see("ADDED", "kube-system") == set()


def test_what_is_missing_from_a_new_list_is_gone() -> None:
    namespaces = Namespaces()
    namespaces.see("ADDED", "tenant-alpha")
    namespaces.see("ADDED", "x", tenant="tenant-root/bob")
    namespaces.enqueued.clear()

    run_coroutine(namespaces.events.replace([], 9))

    assert set(namespaces.enqueued) == {"alpha", "beta", "bob"}
    assert list(namespaces.events.tenants()) == []
    assert namespaces.see("ADDED", "tenant-alpha") == {"alpha", "beta"}


class Inside:
    """The events of what is in the namespaces of a small tree."""

    def __init__(self) -> None:
        tree = tree_of(tenant_summary("alpha"), tenant_summary("beta", "tenant-alpha"), tenant_summary("aside"))
        self.enqueued: list[str] = []
        events = TenantEnqueuer(tree=tree, enqueue=lambda key: self.enqueued.append(key.name))
        part = ManagedKind(
            resource=SECRETS, normalize=lambda obj: obj.get("data"), selects=lambda _, name: name == "cozystack-values"
        )
        self.marks = ObjectDigests(part, on_change=events.enqueue_owner)
        self.values = InheritedValues(enqueue_heirs=events.enqueue_heirs)

    def told(self, call: Callable[[], None]) -> list[str]:
        self.enqueued.clear()
        call()
        return sorted(self.enqueued)


def secret(namespace: str, text: str = "", *, name: str = "cozystack-values", **metadata: Any) -> Object:
    data = {"values.yaml": base64.b64encode(text.encode()).decode()}
    return {"metadata": {"name": name, "namespace": namespace, **metadata}, "data": data}


def test_what_changes_in_a_namespace_concerns_its_tenant_once() -> None:
    inside = Inside()

    assert inside.told(lambda: inside.marks.apply("ADDED", secret("tenant-alpha"), 1)) == ["alpha"]
    assert inside.told(lambda: inside.marks.apply("MODIFIED", secret("tenant-alpha"), 2)) == []
    assert inside.told(lambda: inside.marks.apply("MODIFIED", secret("tenant-alpha", "x"), 3)) == ["alpha"]
    assert inside.told(lambda: inside.marks.apply("DELETED", secret("tenant-alpha", "x"), 4)) == ["alpha"]
    assert inside.told(lambda: inside.marks.apply("ADDED", secret("tenant-alpha", name="theirs"), 5)) == []
    assert inside.told(lambda: inside.marks.apply("ADDED", secret("kube-system"), 6)) == []


def test_what_we_wrote_is_no_news() -> None:
    inside = Inside()
    inside.marks.record_written(secret("tenant-alpha", "x"))

    assert inside.told(lambda: inside.marks.apply("ADDED", secret("tenant-alpha", "x"), 1)) == []
    assert inside.marks.get("tenant-alpha", "cozystack-values") is not None


def test_a_change_of_who_manages_an_object_is_news() -> None:
    inside = Inside()
    inside.marks.record_written(secret("tenant-alpha"))
    helm = secret("tenant-alpha", labels={"app.kubernetes.io/managed-by": "Helm"})

    assert inside.told(lambda: inside.marks.apply("MODIFIED", helm, 1)) == ["alpha"]


def test_of_a_new_list_only_the_differences_are_news() -> None:
    inside = Inside()
    for namespace in ("tenant-alpha", "tenant-alpha-beta", "tenant-aside"):
        inside.marks.record_written(secret(namespace, "same"))

    items = [secret("tenant-alpha", "same"), secret("tenant-alpha-beta", "other")]

    assert inside.told(lambda: run_coroutine(inside.marks.replace(items, 9))) == ["aside", "beta"]
    assert inside.marks.get("tenant-aside", "cozystack-values") is None


def test_a_parents_values_concern_its_children_and_nobody_below_them() -> None:
    inside = Inside()
    text = "_cluster: {a: b}\n_namespace: {etcd: x}\n"
    run_coroutine(inside.values.replace([secret("tenant-root", text), secret("tenant-alpha", text)], 1))

    def change(namespace: str, text: str) -> list[str]:
        return inside.told(lambda: inside.values.apply("MODIFIED", secret(namespace, text), 2))

    assert change("tenant-alpha", "_cluster: {a: c}\n_namespace: {etcd: x}\n") == ["beta"]
    assert change("tenant-alpha", "_cluster: {a: c}\n_namespace: {etcd: y}\n") == []
    assert change("tenant-root", "_cluster: {a: c}\n_namespace: {etcd: x}\n") == ["alpha", "aside", "root"]
    assert inside.told(lambda: run_coroutine(inside.values.replace([secret("tenant-root", text)], 3))) == [
        "alpha",
        "aside",
        "beta",
        "root",
    ]
    assert inside.values.get("tenant-alpha") is None
