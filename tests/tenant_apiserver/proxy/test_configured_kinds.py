"""The kinds of --config against those that a cluster serves."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from apiserver.meta.resource import GroupResource, Object
from registry.cluster.interface import ServedResource
from tenant_apiserver.options.proxy_settings import parse_proxy_settings
from tenant_apiserver.proxy.configured_kinds import ConfiguredKinds, KindFinding, compare_kinds
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual

NETWORKING, GATEWAY = "networking.k8s.io", "gateway.networking.k8s.io"
POLICIES = f"networkpolicies.{NETWORKING}"
SERVED = [
    *(("", "v1", each) for each in ("pods", "services", "nodes")),
    ("apps", "v1", "deployments"),
    (NETWORKING, "v1", "networkpolicies"),
    (GATEWAY, "v1", "httproutes"),
    ("metrics.k8s.io", "v1beta1", "pods"),
]
SCOPES = {GroupResource(group, plural): plural != "nodes" for group, _, plural in SERVED}


def finding(key: str, name: str) -> KindFinding | None:
    plural, _, group = name.partition(".")
    found = compare_kinds([(key, GroupResource(group, plural))], SERVED, SCOPES)
    return found[0] if found else None


def absent(name: str, meant: str = "") -> str:
    plural, _, group = name.partition(".")
    where = f"the group {group}" if group else "the core group"
    return f"the cluster has no {plural} in {where}" + (f"; did you mean {meant}?" if meant else "")


@pytest.mark.parametrize(
    ("key", "name", "text"),
    [
        ("namespacedKinds", "Pod", "the cluster has no Pod in the core group; did you mean pods?"),
        ("namespacedKinds", "pod", absent("pod", "pods")),
        ("namespacedKinds", "deployments", absent("deployments", "deployments.apps")),
        ("namespacedKinds", "deployment.apps", absent("deployment.apps", "deployments.apps")),
        ("namespacedKinds", f"NetworkPolicy.{NETWORKING}", absent(f"NetworkPolicy.{NETWORKING}", POLICIES)),
        ("namespacedKinds", "po", absent("po")),
        ("namespacedKinds", "nodes", "nodes is cluster-scoped: name it in clusterKinds"),
        ("clusterKinds", "pods", "pods is namespaced: name it in namespacedKinds"),
        ("selectedKinds", "pods", "pods is namespaced, and selectedKinds are cluster-scoped"),
    ],
)
def test_a_kind_that_is_never_served_so_is_wrong(key: str, name: str, text: str) -> None:
    assert finding(key, name) == KindFinding(f"{key}: {text}", is_wrong=True)


@pytest.mark.parametrize(
    ("name", "meant"),
    [(f"tlsroutes.{GATEWAY}", ""), ("a.example.org", ""), ("httproutes.gw.example.org", f"httproutes.{GATEWAY}")],
)
def test_a_kind_whose_crd_may_come_is_information(name: str, meant: str) -> None:
    found = finding("namespacedKinds", name)
    assert found == KindFinding(f"namespacedKinds: {absent(name, meant)}", is_wrong=False)


@pytest.mark.parametrize(
    ("key", "name"), [("namespacedKinds", "pods"), ("namespacedKinds", "deployments.apps"), ("clusterKinds", "nodes")]
)
def test_a_kind_that_is_served_is_no_finding(key: str, name: str) -> None:
    assert finding(key, name) is None


async def test_a_cluster_without_aggregated_discovery_is_not_compared(caplog: pytest.LogCaptureFixture) -> None:
    settings = parse_proxy_settings({"namespacedKinds": ["configmaps"], "clusterKinds": ["namespaces"]})
    kinds = ConfiguredKinds(FakeCluster(), settings)
    await kinds.follow()
    assert kinds.describe() == ""
    assert caplog.messages == []


class _Discovery(FakeCluster):
    """Serves the resources of SERVED; `documents` are the APIResourceLists by their versions."""

    def __init__(self, documents: dict[str, Object], *, is_malformed: bool = False) -> None:
        super().__init__()
        self.documents = documents
        self.is_malformed = is_malformed

    async def served_resources(self) -> Collection[ServedResource] | None:
        if self.is_malformed:
            raise KeyError("items")
        return SERVED

    async def discover(self, api_version: str) -> Object:
        return self.documents[api_version]


MALFORMED = [{"resources": [{"kind": "X"}]}, {"resources": {"a": 1}}, {"resources": ["x"]}, {"resources": 5}, []]


@pytest.mark.parametrize("document", MALFORMED)
def test_a_malformed_document_of_a_group_is_not_known(document: Object, caplog: pytest.LogCaptureFixture) -> None:
    """Kinds of other groups are compared, and that of the group as soon as it can be."""

    @virtual
    async def main() -> None:
        cluster = _Discovery(
            {"metrics.k8s.io/v1beta1": document, "v1": {"resources": [{"name": "nodes", "namespaced": False}]}}
        )
        settings = parse_proxy_settings({"namespacedKinds": ["pods.metrics.k8s.io", "nodes"]})
        kinds = ConfiguredKinds(cluster, settings)
        task = asyncio.create_task(kinds.follow())
        await asyncio.sleep(200)
        assert kinds.describe() == "namespacedKinds: nodes is cluster-scoped: name it in clusterKinds"
        assert caplog.messages == [
            "--config: the cluster's discovery of metrics.k8s.io/v1beta1 is malformed: its kinds are not compared",
            "--config: namespacedKinds: nodes is cluster-scoped: name it in clusterKinds",
        ]
        cluster.documents = {each: {"resources": []} for each in cluster.documents}
        await asyncio.sleep(100)
        assert task.done()
        await task

    main()


@virtual
async def test_malformed_aggregated_discovery_does_not_end_the_task(caplog: pytest.LogCaptureFixture) -> None:
    cluster = _Discovery({"v1": {"resources": []}}, is_malformed=True)
    task = asyncio.create_task(ConfiguredKinds(cluster, parse_proxy_settings({"namespacedKinds": ["pods"]})).follow())
    await asyncio.sleep(200)
    assert not task.done()
    assert len(caplog.messages) == 1
    cluster.is_malformed = False
    await asyncio.sleep(100)
    assert task.done()
    await task


async def test_the_versions_of_configured_kinds_are_known() -> None:
    cluster = _Discovery({"v1": {"resources": [{"name": "pods", "namespaced": True}]}})
    kinds = ConfiguredKinds(cluster, parse_proxy_settings({"namespacedKinds": ["pods"]}))
    assert not kinds.is_served("", "v1", "pods")
    await kinds.follow()
    assert kinds.is_served("", "v1", "pods")
    assert not kinds.is_served("", "v777", "pods")
    assert not kinds.is_served("", "v1", "services")
