"""The steps that write into a Tenant's Namespace, put together with what they watch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from apiserver.resource import Object
from controller.follow import EventHandler
from controller.tenant import access, quota, tenantgateway, values
from controller.tenant.access import AccessStep
from controller.tenant.chart import Chart
from controller.tenant.contents import ContentWriter, Marks, Part
from controller.tenant.events import ContentEvents, GatewayOwners
from controller.tenant.quota import Limits, QuotaStep
from controller.tenant.reconciler import Step
from controller.tenant.tenantgateway import TenantGatewayStep
from controller.tenant.values import ClusterValues, ValuesStep
from registry.host import HostResource


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSettings:
    """What the platform says of the contents, each as it is at present. `tenantgateway` gives the spec for an apex,
    `served` whether the host has TenantGateways."""

    chart: Callable[[], Chart]
    cluster: Callable[[], Mapping[str, str]]
    limits: Callable[[], Limits]
    tenantgateway: Callable[[str], Object]
    served: Callable[[], bool] = lambda: True


class Listen(Protocol):
    def __call__(self, resource: HostResource, handler: EventHandler, *, name: str = "") -> None:
        """Tell the handler of the objects of a kind, in all namespaces; with `name`, of those of that name alone."""
        ...


def inside(
    *, writer: ContentWriter, events: ContentEvents, listen: Listen, settings: ContentSettings
) -> Sequence[Step]:
    """The steps in their order; their handlers are added with `listen`."""

    def marks(part: Part, name: str = "") -> Marks:
        made = Marks(part, concern=events.concern)
        listen(part.resource, made, name=name)
        return made

    listen(tenantgateway.PART.resource, GatewayOwners(tree=events.tree, enqueue=events.enqueue))
    secrets, inherited = marks(values.PART, values.NAME), ClusterValues(heirs=events.concern_heirs)
    listen(values.PART.resource, inherited, name=values.NAME)
    return (
        ValuesStep(writer=writer, marks=secrets, inherited=inherited, cluster=settings.cluster),
        AccessStep(writer=writer, accounts=marks(access.ACCOUNT_PART), bindings=marks(access.BINDING_PART)),
        TenantGatewayStep(
            writer=writer,
            marks=marks(tenantgateway.PART),
            spec=settings.tenantgateway,
            served=settings.served,
        ),
        QuotaStep(
            writer=writer,
            quotas=marks(quota.QUOTA_PART, quota.QUOTA),
            ranges=marks(quota.LIMITS_PART, quota.LIMITS),
            limits=settings.limits,
        ),
    )
