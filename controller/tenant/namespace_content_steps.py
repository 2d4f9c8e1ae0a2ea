"""The steps that write into a Tenant's Namespace, put together with what they watch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from apiserver.meta.resource import Object
from controller.tenant import quota_step as quota
from controller.tenant import rbac_step as access
from controller.tenant import tenantgateway_step as tenantgateway
from controller.tenant import values_secret_step as values
from controller.tenant.helm_ownership import Chart
from controller.tenant.managed_objects import ContentWriter, Marks, Part
from controller.tenant.quota_step import Limits, QuotaStep
from controller.tenant.rbac_step import AccessStep
from controller.tenant.reconciler import Step
from controller.tenant.tenantgateway_step import TenantGatewayStep
from controller.tenant.values_secret_step import ClusterValues, ValuesStep
from controller.tenant.watches import ContentEvents, GatewayOwners
from registry.cluster.event_handlers import EventHandler
from registry.cluster.interface import ClusterResource


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
    def __call__(self, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
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
