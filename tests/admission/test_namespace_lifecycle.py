from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from admission.namespace_lifecycle import NamespaceLifecycle
from admission.namespace_source import ClusterNamespaces
from apiserver.admission import Operation
from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from registry.cluster.interface import NAMESPACES
from tests.fakes import FakeCluster
from tests.tenant_objects import FakeNamespaces, attributes, tenant


class Naps:
    def __init__(self, wake: dict[str, str] | None = None, into: FakeNamespaces | None = None) -> None:
        self.seconds: list[float] = []
        self._wake = wake or {}
        self._into = into

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if self._into is not None:
            self._into.cached |= self._wake


async def test_an_active_namespace_is_admitted_without_asking_the_host() -> None:
    namespaces, naps = FakeNamespaces({"tenant-root": "Active"}), Naps()
    given = tenant("alpha")

    admitted = await NamespaceLifecycle(namespaces=namespaces, sleep=naps).admit(attributes("CREATE", given))

    assert (admitted, namespaces.live_calls, naps.seconds) == (given, [], [])


def test_what_would_be_allowed_may_be_asked_of_a_namespace_to_come() -> None:
    request, plugin = attributes("CREATE", tenant("alpha")), NamespaceLifecycle(namespaces=FakeNamespaces())
    review = replace(request.resource, group="authorization.k8s.io", plural="localsubjectaccessreviews")
    assert plugin.handles(request)
    assert not plugin.handles(replace(request, resource=review))


async def test_a_terminating_namespace_is_a_403_with_a_cause() -> None:
    plugin = NamespaceLifecycle(namespaces=FakeNamespaces({"tenant-root": "Terminating"}))

    with pytest.raises(errors.Forbidden) as refused:
        await plugin.admit(attributes("CREATE", tenant("alpha")))

    assert refused.value.message == (
        'tenants.apps.cozystack.io "alpha" is forbidden: unable to create new content in namespace tenant-root '
        "because it is being terminated"
    )
    assert refused.value.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace tenant-root is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def test_a_missing_namespace_is_a_404_of_the_namespace() -> None:
    namespaces, naps = FakeNamespaces(), Naps()

    with pytest.raises(errors.NotFound) as refused:
        await NamespaceLifecycle(namespaces=namespaces, sleep=naps).admit(attributes("CREATE", tenant("alpha")))

    assert refused.value.message == 'namespaces "tenant-root" not found'
    assert refused.value.details == {"name": "tenant-root", "kind": "namespaces"}
    assert (naps.seconds, namespaces.live_calls) == ([0.05], ["tenant-root"])


async def test_a_namespace_that_the_informer_sees_a_moment_later_needs_no_call() -> None:
    namespaces = FakeNamespaces()
    naps = Naps({"tenant-root": "Active"}, namespaces)

    await NamespaceLifecycle(namespaces=namespaces, sleep=naps).admit(attributes("CREATE", tenant("alpha")))

    assert namespaces.live_calls == []


async def test_a_namespace_that_only_the_host_knows_is_found() -> None:
    namespaces = FakeNamespaces({}, {"tenant-root": "Active"})

    await NamespaceLifecycle(namespaces=namespaces, sleep=Naps()).admit(attributes("CREATE", tenant("alpha")))

    assert namespaces.live_calls == ["tenant-root"]


async def test_before_namespaces_are_known_nothing_is_created() -> None:
    namespaces = FakeNamespaces({"tenant-root": "Active"})
    namespaces.ready = False

    with pytest.raises(errors.Forbidden, match="not yet ready to handle request"):
        await NamespaceLifecycle(namespaces=namespaces).admit(attributes("CREATE", tenant("alpha")))


async def test_a_refused_object_without_a_name_is_called_by_its_generate_name() -> None:
    given: Object = {"metadata": {"namespace": "tenant-root", "generateName": "alpha-"}}
    plugin = NamespaceLifecycle(namespaces=FakeNamespaces({"tenant-root": "Terminating"}))

    with pytest.raises(errors.Forbidden, match='"alpha-" is forbidden'):
        await plugin.admit(attributes("CREATE", given))


@pytest.mark.parametrize(
    ("operation", "handled"),
    [
        pytest.param("CREATE", True, id="create"),
        pytest.param("UPDATE", False, id="update in a terminating namespace is allowed"),
        pytest.param("DELETE", False, id="delete in a terminating namespace is allowed"),
    ],
)
def test_only_creates_are_looked_at(operation: Operation, handled: bool) -> None:
    plugin = NamespaceLifecycle(namespaces=FakeNamespaces())

    assert plugin.handles(attributes(operation, tenant("alpha"), tenant("alpha"))) is handled


class Store:
    def get(self, key: Key) -> Object | None:
        return {"metadata": {"name": key.name}} if key == Key("", "cached") else None


async def test_host_namespaces_reads_the_store_and_asks_the_host(cluster: FakeCluster) -> None:
    cluster.add(NAMESPACES, {"metadata": {"name": "made"}})
    synced = asyncio.Event()
    namespaces = ClusterNamespaces(cluster=cluster, lister=Store(), synced=synced)

    assert namespaces.get("cached") is not None
    assert namespaces.get("made") is None
    assert await namespaces.get_live("made") is not None
    assert await namespaces.get_live("missing") is None
    assert await namespaces.wait_until_synced(0) is False
    synced.set()
    assert await namespaces.wait_until_synced(1) is True


async def test_an_unreachable_host_is_not_a_missing_namespace(cluster: FakeCluster) -> None:
    cluster.unreachable = True
    namespaces = ClusterNamespaces(cluster=cluster, lister=Store(), synced=asyncio.Event())

    with pytest.raises(errors.ServiceUnavailable):
        await namespaces.get_live("tenant-root")
