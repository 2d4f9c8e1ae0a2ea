from __future__ import annotations

from dataclasses import replace

import pytest

from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import ClusterNamespaces
from apiserver.admission import Operation
from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES
from tests.fake_cluster import FakeCluster
from tests.tenant_objects import FakeNamespaces, attributes, tenant


class RecordedSleep:
    """Records the requested durations, and fills the cache of `into` with `appearing` meanwhile."""

    def __init__(self, appearing: dict[str, str] | None = None, into: FakeNamespaces | None = None) -> None:
        self.seconds: list[float] = []
        self._appearing = appearing or {}
        self._into = into

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if self._into is not None:
            self._into.cached_phases |= self._appearing


async def test_a_create_in_an_active_namespace_needs_no_request_to_the_cluster() -> None:
    namespaces, sleep = FakeNamespaces({"tenant-root": "Active"}), RecordedSleep()
    new = tenant("alpha")

    admitted = await NamespaceLifecycle(namespaces=namespaces, sleep=sleep).admit(attributes("CREATE", new))

    assert (admitted, namespaces.live_calls, sleep.seconds) == (new, [], [])


def test_a_local_access_review_may_name_a_namespace_that_does_not_exist() -> None:
    request, plugin = attributes("CREATE", tenant("alpha")), NamespaceLifecycle(namespaces=FakeNamespaces())
    review = replace(request.resource, group="authorization.k8s.io", plural="localsubjectaccessreviews")
    assert plugin.handles(request)
    assert not plugin.handles(replace(request, resource=review))


async def test_a_create_in_a_terminating_namespace_fails_with_403_and_a_cause() -> None:
    plugin = NamespaceLifecycle(namespaces=FakeNamespaces({"tenant-root": "Terminating"}))

    with pytest.raises(errors.Forbidden) as caught:
        await plugin.admit(attributes("CREATE", tenant("alpha")))

    assert caught.value.message == (
        'tenants.apps.cozystack.io "alpha" is forbidden: unable to create new content in namespace tenant-root '
        "because it is being terminated"
    )
    assert caught.value.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace tenant-root is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def test_a_create_in_a_missing_namespace_fails_with_404_for_the_namespace() -> None:
    namespaces, sleep = FakeNamespaces(), RecordedSleep()

    with pytest.raises(errors.NotFound) as caught:
        await NamespaceLifecycle(namespaces=namespaces, sleep=sleep).admit(attributes("CREATE", tenant("alpha")))

    assert caught.value.message == 'namespaces "tenant-root" not found'
    assert caught.value.details == {"name": "tenant-root", "kind": "namespaces"}
    assert (sleep.seconds, namespaces.live_calls) == ([0.05], ["tenant-root"])


async def test_a_namespace_that_the_informer_sees_a_moment_later_needs_no_request() -> None:
    namespaces = FakeNamespaces()
    sleep = RecordedSleep({"tenant-root": "Active"}, namespaces)

    await NamespaceLifecycle(namespaces=namespaces, sleep=sleep).admit(attributes("CREATE", tenant("alpha")))

    assert namespaces.live_calls == []


async def test_a_namespace_that_is_not_cached_yet_is_read_from_the_cluster() -> None:
    namespaces = FakeNamespaces({}, {"tenant-root": "Active"})

    await NamespaceLifecycle(namespaces=namespaces, sleep=RecordedSleep()).admit(attributes("CREATE", tenant("alpha")))

    assert namespaces.live_calls == ["tenant-root"]


async def test_an_error_names_an_object_without_a_name_by_its_generate_name() -> None:
    new: Object = {"metadata": {"namespace": "tenant-root", "generateName": "alpha-"}}
    plugin = NamespaceLifecycle(namespaces=FakeNamespaces({"tenant-root": "Terminating"}))

    with pytest.raises(errors.Forbidden, match='"alpha-" is forbidden'):
        await plugin.admit(attributes("CREATE", new))


@pytest.mark.parametrize(
    ("operation", "handled"),
    [
        pytest.param("CREATE", True, id="create"),
        pytest.param("UPDATE", False, id="update in a terminating namespace is allowed"),
        pytest.param("DELETE", False, id="delete in a terminating namespace is allowed"),
    ],
)
def test_only_creates_are_checked(operation: Operation, handled: bool) -> None:
    plugin = NamespaceLifecycle(namespaces=FakeNamespaces())

    assert plugin.handles(attributes(operation, tenant("alpha"), tenant("alpha"))) is handled


class Store:
    def get(self, key: Key) -> Object | None:
        return {"metadata": {"name": key.name}} if key == Key("", "cached") else None


async def test_cluster_namespaces_reads_the_cache_or_the_cluster(cluster: FakeCluster) -> None:
    cluster.add(NAMESPACES, {"metadata": {"name": "uncached"}})
    namespaces = ClusterNamespaces(cluster=cluster, lister=Store())

    assert namespaces.get("cached") is not None
    assert namespaces.get("uncached") is None
    assert await namespaces.get_live("uncached") is not None
    assert await namespaces.get_live("missing") is None


async def test_an_unreachable_cluster_is_not_a_missing_namespace(cluster: FakeCluster) -> None:
    cluster.unreachable = True
    namespaces = ClusterNamespaces(cluster=cluster, lister=Store())

    with pytest.raises(errors.ServiceUnavailable):
        await namespaces.get_live("tenant-root")
