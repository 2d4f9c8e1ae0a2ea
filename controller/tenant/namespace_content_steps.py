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
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.quota_step import ContainerLimits, QuotaStep
from controller.tenant.rbac_step import RbacStep
from controller.tenant.reconciler import Step
from controller.tenant.tenantgateway_step import TenantGatewayStep
from controller.tenant.values_secret_step import InheritedValues, ValuesStep
from controller.tenant.watches import TenantEnqueuer, TenantGatewayServedHandler
from registry.cluster.event_handlers import EventHandler
from registry.cluster.interface import ClusterResource


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSettings:
    """What the platform says of the contents, each as it is at present. `tenantgateway` gives the spec for an apex,
    `served` whether the host has TenantGateways."""

    chart: Callable[[], ChartMode]
    cluster: Callable[[], Mapping[str, str]]
    limits: Callable[[], ContainerLimits]
    tenantgateway: Callable[[str], Object]
    served: Callable[[], bool] = lambda: True


class AddHandler(Protocol):
    def __call__(self, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
        """Tell the handler of the objects of a kind, in all namespaces; with `name`, of those of that name alone."""
        ...


def content_steps(
    *, contents: ContentWriter, enqueuer: TenantEnqueuer, add_handler: AddHandler, settings: ContentSettings
) -> Sequence[Step]:
    """The steps in their order; their handlers are added with `listen`."""

    def marks(part: ManagedKind, name: str = "") -> ObjectDigests:
        made = ObjectDigests(part, concern=enqueuer.enqueue_owner)
        add_handler(part.resource, made, name=name)
        return made

    add_handler(
        tenantgateway.MANAGED_TENANTGATEWAY.resource,
        TenantGatewayServedHandler(tree=enqueuer.tree, enqueue=enqueuer.add),
    )
    secrets, inherited = (
        marks(values.MANAGED_VALUES_SECRET, values.SECRET_NAME),
        InheritedValues(enqueue_heirs=enqueuer.enqueue_heirs),
    )
    add_handler(values.MANAGED_VALUES_SECRET.resource, inherited, name=values.SECRET_NAME)
    return (
        ValuesStep(contents=contents, digests=secrets, inherited=inherited, cluster=settings.cluster),
        RbacStep(
            contents=contents,
            accounts=marks(access.MANAGED_SERVICE_ACCOUNT),
            bindings=marks(access.MANAGED_ROLE_BINDING),
        ),
        TenantGatewayStep(
            contents=contents,
            digests=marks(tenantgateway.MANAGED_TENANTGATEWAY),
            spec=settings.tenantgateway,
            served=settings.served,
        ),
        QuotaStep(
            contents=contents,
            quotas=marks(quota.MANAGED_QUOTA, quota.QUOTA),
            ranges=marks(quota.MANAGED_LIMIT_RANGE, quota.LIMITS),
            limits=settings.limits,
        ),
    )
