from __future__ import annotations

import socket
from typing import Any

import pytest

from admission.webhook.errors import Unroutable
from admission.webhook.service_resolver import ServiceAddress, ServiceResolver, service_address
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.interface import SERVICES
from tests.fake_cluster import FakeCluster


def service(**spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"}, "spec": spec}


PORTS = [{"port": 443}, {"port": 8443}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"clusterIP": "10.0.0.1", "ports": PORTS}, ServiceAddress("10.0.0.1", 8443), id="without a type"),
        pytest.param(
            {"type": "ClusterIP", "clusterIP": "fd::1", "ports": PORTS}, ServiceAddress("fd::1", 8443), id="IPv6"
        ),
        pytest.param(
            {"type": "NodePort", "clusterIP": "10.0.0.1", "ports": PORTS},
            ServiceAddress("10.0.0.1", 8443),
            id="a NodePort",
        ),
        pytest.param(
            {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": PORTS},
            ServiceAddress("10.0.0.1", 8443),
            id="a LoadBalancer",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "a.example"}, ServiceAddress("a.example", 8443), id="a name"
        ),
    ],
)
def test_a_service_port_has_an_address(spec: dict[str, Any], expected: ServiceAddress) -> None:
    assert service_address(service(**spec), 8443) == expected


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"clusterIP": "None"}, 'cannot route to service with ClusterIP "None"', id="headless"),
        pytest.param(
            {"clusterIP": "10.0.0.1", "ports": PORTS}, 'no service port 80 found for service "s"', id="no such port"
        ),
        pytest.param({"ports": [{"port": 80}]}, "cannot route to service without a ClusterIP", id="an empty clusterIP"),
        pytest.param({"type": "Odd"}, 'unsupported service type "Odd"', id="unknown type"),
    ],
)
def test_a_service_without_an_address_for_the_port_is_unroutable(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(Unroutable) as caught:
        service_address(service(**spec), 80)
    assert str(caught.value) == why


async def test_a_service_name_is_resolved_to_its_cluster_ip(cluster: FakeCluster) -> None:
    cluster.add(SERVICES, service(clusterIP="10.0.0.7", ports=PORTS))
    [found] = await ServiceResolver(cluster).resolve("s.n.svc", 443, socket.AF_UNSPEC)
    assert (found["host"], found["port"], found["family"]) == ("10.0.0.7", 443, socket.AF_INET)
    with pytest.raises(Unroutable, match='service "t" not found'):
        await ServiceResolver(cluster).resolve("t.n.svc", 443)


async def test_an_external_name_is_resolved_by_dns(cluster: FakeCluster) -> None:
    cluster.add(SERVICES, service(type="ExternalName", externalName="localhost"))
    found = await ServiceResolver(cluster).resolve("s.n.svc", 443, socket.AF_INET)
    assert {each["host"] for each in found} == {"127.0.0.1"}


async def test_an_unreachable_cluster_fails_the_resolution(cluster: FakeCluster) -> None:
    cluster.unreachable = True
    with pytest.raises(StatusError):
        await ServiceResolver(cluster).resolve("s.n.svc", 443)
