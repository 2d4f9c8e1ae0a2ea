"""Resolves the Service of a webhook to its ClusterIP or external name (WIRE-H42)."""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from admission.webhook.errors import Unroutable
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.interface import SERVICES, ClusterClient


class ServiceAddress(NamedTuple):
    """`host` is an IP address or a DNS name."""

    host: str
    port: int


class ServiceResolver(AbstractResolver):
    """Resolves hosts of the form <name>.<namespace>.svc; reads the Service for each new connection."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._names = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises Unroutable, OSError of name resolution, and the cluster's StatusError."""
        name, _, rest = host.partition(".")
        namespace = rest.removesuffix(".svc")
        try:
            service = await self._cluster.get(SERVICES, namespace, name)
        except StatusError as error:
            if error.code == 404:
                raise Unroutable(f'service "{name}" not found') from error
            raise
        route = service_address(service, port)
        try:
            address = ipaddress.ip_address(route.host)
        except ValueError:
            return await self._names.resolve(route.host, route.port, family)
        version = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        return [
            ResolveResult(
                hostname=host,
                host=route.host,
                port=route.port,
                family=version,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
        ]

    async def close(self) -> None:
        await self._names.close()


def service_address(service: Object, port: int) -> ServiceAddress:
    """The address at which a port of a Service is reached. Raises Unroutable."""
    spec = service.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    if kind == "ExternalName":
        return ServiceAddress(spec.get("externalName") or "", port)
    if kind not in ("ClusterIP", "NodePort", "LoadBalancer"):
        raise Unroutable(f'unsupported service type "{kind}"')
    address = spec.get("clusterIP") or ""
    if address == "None":
        raise Unroutable('cannot route to service with ClusterIP "None"')
    if all(each.get("port") != port for each in spec.get("ports") or ()):
        raise Unroutable(f'no service port {port} found for service "{service["metadata"]["name"]}"')
    if not address:
        # a cluster without controllers assigns no ClusterIP; connecting to an empty address would reach this machine
        raise Unroutable("cannot route to service without a ClusterIP")
    return ServiceAddress(address, port)
