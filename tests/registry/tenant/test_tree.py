from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.resource import Key
from apiserver.storage.watch_cache import WatchCache, encode
from registry.names import workload_namespace
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import ChangedTree, TenantTree, effective_gateway, effective_host
from registry.tenant.types import tenant_resource

ROOT_HOST = "example.org"


def summary(namespace: str, name: str, /, **changes: Any) -> TenantSummary:
    changes.setdefault("namespace", workload_namespace(namespace, name))
    return TenantSummary(key=Key(namespace, name), **changes)


ROOT = summary("tenant-root", "root")
ALPHA = summary("tenant-root", "alpha", host="alpha.example")
BETA = summary("tenant-alpha", "beta", gateway=True)
GAMMA = summary("tenant-alpha-beta", "gamma", gateway=False)
DELTA = summary("tenant-root", "delta")
ALL = [ROOT, ALPHA, BETA, GAMMA, DELTA]


def tree(*tenants: TenantSummary) -> TenantTree:
    return TenantTree(tenants or ALL, root_host=ROOT_HOST)


def test_the_parent_of_a_tenant_owns_its_namespace() -> None:
    assert tree().ancestors(GAMMA) == (BETA, ALPHA, ROOT)
    assert tree().parent(ROOT) is None


@pytest.mark.parametrize("length", [256, 300_000])
def test_a_host_that_is_too_long_is_cut_before_descendants_derive_theirs(length: int) -> None:
    """ATTACK-16: it stays too long for a domain."""
    odd, child = summary("tenant-root", "odd", host="a" * length), summary("tenant-odd", "child")
    for each in (odd, child):
        found = effective_host(tree(*ALL, odd, child), each)
        assert found is not None
        assert 253 < len(found.value) < 320


def test_children_are_sorted_by_name_and_exclude_the_root() -> None:
    assert tree().children("tenant-root") == (ALPHA, DELTA)
    assert tree().children("nowhere") == ()


def test_descendants_are_ordered_parents_first() -> None:
    assert tree().descendants(ROOT) == (ALPHA, BETA, GAMMA, DELTA)


def test_parents_are_found_by_namespace_and_not_by_parsing_names() -> None:
    """R-050."""
    odd = summary("tenant-root", "odd", namespace="somewhere-else", host="odd.example")
    child = summary("somewhere-else", "kid", namespace="tenant-alpha-kid")
    assert tree(*ALL, odd, child).ancestors(child) == (odd, ROOT)
    found = effective_host(tree(*ALL, odd, child), child)
    assert found is not None
    assert found.value == "kid.odd.example"


@pytest.mark.parametrize(
    ("tenant", "value", "namespace"),
    [
        pytest.param(ROOT, "example.org", "tenant-root", id="the domain of the platform for the root"),
        pytest.param(DELTA, "delta.example.org", "tenant-root", id="the name before the parent's domain"),
        pytest.param(ALPHA, "alpha.example", "tenant-alpha", id="its own domain"),
        pytest.param(GAMMA, "gamma.beta.alpha.example", "tenant-alpha", id="two levels below a tenant with a domain"),
    ],
)
def test_the_effective_host(tenant: TenantSummary, value: str, namespace: str) -> None:
    found = effective_host(tree(), tenant)
    assert found is not None
    assert (found.value, found.namespace) == (value, namespace)


def test_a_stored_host_is_used_in_canonical_form() -> None:
    odd = summary("tenant-root", "odd", host="Odd.Example.")
    found = effective_host(tree(*ALL, odd), odd)
    assert found is not None
    assert found.value == "odd.example"
    assert tree(*ALL, odd).tenants_with_host("oDD.example") == (odd,)


def test_a_tenant_outside_the_tree_has_only_its_own_host() -> None:
    orphan = summary("default", "x")
    assert effective_host(tree(*ALL, orphan), orphan) is None
    assert effective_host(tree(), summary("default", "y", host="y.example")) is not None


@pytest.mark.parametrize(
    ("tenant", "namespace"),
    [
        pytest.param(BETA, "tenant-alpha-beta", id="its own"),
        pytest.param(GAMMA, "tenant-alpha-beta", id="false inherits like absent"),
        pytest.param(ALPHA, "", id="none"),
    ],
)
def test_the_effective_gateway_is_that_of_the_nearest_ancestor(tenant: TenantSummary, namespace: str) -> None:
    found = effective_gateway(tree(), tenant)
    assert (found.value, found.namespace) == (bool(namespace), namespace)


def test_traversals_of_a_cycle_end() -> None:
    one = summary("b", "one", namespace="a")
    two = summary("a", "two", namespace="b")
    cyclic_tree = tree(one, two)
    assert cyclic_tree.ancestors(one) == (two,)
    assert cyclic_tree.descendants(one) == (two,)
    assert effective_host(cyclic_tree, one) is None


def test_the_older_of_two_tenants_owns_a_shared_namespace() -> None:
    dashed = summary("tenant-root", "alpha-beta", created="2020-01-01T00:00:00Z")
    newer = summary("tenant-alpha", "beta", created="2026-01-01T00:00:00Z")
    assert tree(ROOT, newer, dashed).by_namespace("tenant-alpha-beta") == dashed


def test_a_changed_tree_is_the_tree_after_a_write() -> None:
    moved = summary("tenant-root", "alpha", host="new.example")
    changed = ChangedTree(tree(), moved)
    found = effective_host(changed, GAMMA)
    assert found is not None
    assert found.value == "gamma.beta.new.example"
    added = ChangedTree(tree(), summary("tenant-root", "beta"))
    assert [each.key.name for each in added.children("tenant-root")] == ["alpha", "beta", "delta"]
    assert [each.key.name for each in ChangedTree(tree(), ROOT).children("tenant-root")] == ["alpha", "delta"]


def test_the_host_index_is_updated_for_all_descendants() -> None:
    index = tree()
    index.put(summary("tenant-root", "alpha"))
    assert index.tenants_with_host("gamma.beta.alpha.example") == ()
    assert index.tenants_with_host("gamma.beta.alpha.example.org") == (GAMMA,)
    index.remove(ALPHA.key)
    assert index.tenants_with_host("gamma.beta.alpha.example.org") == ()
    assert len(index) == 4


_NAMES = ("a", "b")
_CHAINS = [chain for length in (1, 2, 3) for chain in itertools.product(_NAMES, repeat=length)]


def _key(chain: tuple[str, ...]) -> Key:
    namespace = "tenant-root"
    for name in chain[:-1]:
        namespace = workload_namespace(namespace, name)
    return Key(namespace, chain[-1])


_STEPS = st.lists(
    st.tuples(
        st.sampled_from([*(_key(chain) for chain in _CHAINS), ROOT.key]), st.sampled_from([None, "", "x.example"])
    ),
    max_size=30,
)


@given(_STEPS)
def test_the_host_index_agrees_with_effective_host_after_random_changes(steps: list[tuple[Key, str | None]]) -> None:
    index = TenantTree(root_host=ROOT_HOST)
    for key, host in steps:
        if host is None:
            index.remove(key)
        else:
            index.put(summary(*key, host=host))
    expected: dict[str, set[Key]] = {}
    for each in index:
        if found := effective_host(index, each):
            expected.setdefault(found.value, set()).add(each.key)
    hosts = {*expected, "a.x.example", "a.example.org", "b.a.example.org"}
    assert {host: {each.key for each in index.tenants_with_host(host)} for host in hosts} == {
        host: expected.get(host, set()) for host in hosts
    }


@given(_STEPS)
def test_children_are_sorted_after_random_changes(steps: list[tuple[Key, str | None]]) -> None:
    index = TenantTree()
    for key, host in steps:
        if host is None:
            index.remove(key)
        else:
            # the same Tenant may become one without a parent
            index.put(summary(*key, **({"namespace": key.namespace} if host else {})))
    for namespace in {key.namespace for key, _ in steps}:
        expected = (each for each in index if each.key.namespace == namespace != each.namespace)
        assert index.children(namespace) == tuple(sorted(expected, key=lambda each: each.key))


def test_adding_a_sibling_takes_logarithmic_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = tree(ROOT, *(summary("tenant-root", f"n{number:04}") for number in range(4096)))
    compared: list[Key] = []

    def counting(each: TenantSummary) -> Key:
        compared.append(each.key)
        return each.key

    monkeypatch.setattr("registry.tenant.tree._by_key", counting)
    index.put(summary("tenant-root", "n2048", host="n.example"))
    new = summary("tenant-root", "n2048-and-a-half")
    assert ChangedTree(index, new).children("tenant-root")[2049] == new
    index.put(new)
    assert index.children("tenant-root")[2048:2050] == (summary("tenant-root", "n2048", host="n.example"), new)
    assert 0 < len(compared) < 100


def test_a_stored_or_new_tenant_is_summarized() -> None:
    spec = {"host": "a.example", "gateway": False, "etcd": True, "resourceQuotas": {"cpu": 1}, "schedulingClass": "s"}
    new = {"metadata": {"namespace": "tenant-root", "name": "a"}, "spec": spec}
    assert summarize(new) == summary(
        "tenant-root",
        "a",
        host="a.example",
        gateway=False,
        quotas={"cpu": 1},
        flags=frozenset(["etcd"]),
        scheduling_class="s",
    )
    stored = {
        "metadata": {
            "namespace": "tenant-root",
            "name": "a",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-02T00:00:00Z",
            "annotations": {"tenant.cozystack.io/allow-cascading-deletion": "true"},
            "finalizers": ["foregroundDeletion"],
        },
        "status": {"namespace": "elsewhere"},
    }
    found = summarize(stored)
    assert (found.namespace, found.uid, found.rv) == ("elsewhere", "u", 7)
    assert (found.terminating, found.allow_cascade, found.foreground) == (True, True, True)


def test_events_of_a_watch_cache_update_the_tree() -> None:
    resource = tenant_resource()
    cache, index = WatchCache(resource), TenantTree(root_host=ROOT_HOST)
    cache.subscribe(index.on_event)

    def state(rv: int, host: str) -> Any:
        metadata = {"namespace": "tenant-root", "name": "a", "uid": "u", "resourceVersion": str(rv)}
        return encode(resource, {"metadata": metadata, "spec": {"host": host}})

    cache.replace([state(1, "")], 1)
    cache.apply("MODIFIED", state(2, "b.example"))
    assert [each.rv for each in index.tenants_with_host("b.example")] == [2]
    cache.apply("DELETED", state(3, "b.example"))
    assert len(index) == 0


@pytest.mark.parametrize(
    ("later", "foreground"),
    [
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, True, id="the finalizer is removed"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z", "uid": "other"}, False, id="another tenant"),
        pytest.param({}, False, id="a finalizer that was removed before the deletion"),
    ],
)
def test_a_deletion_in_the_foreground_stays_so(later: dict[str, str], foreground: bool) -> None:
    """The garbage collector removes its finalizer when no dependent object blocks it; child Tenants do not."""
    resource = tenant_resource()
    cache, index = WatchCache(resource), TenantTree(root_host=ROOT_HOST)
    cache.subscribe(index.on_event)

    def state(rv: int, **metadata: Any) -> Any:
        identity = {"namespace": "tenant-root", "name": "a", "uid": "u", "resourceVersion": str(rv)}
        return encode(resource, {"metadata": identity | metadata, "spec": {}})

    cache.replace([state(1)], 1)
    cache.apply("MODIFIED", state(2, finalizers=["foregroundDeletion"]))
    cache.apply("MODIFIED", state(3, **later))
    cache.apply("MODIFIED", state(4, **later))
    assert [each.foreground for each in index] == [foreground]
