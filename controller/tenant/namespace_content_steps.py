"""Constructs the steps that write into a Tenant's Namespace, with the handlers that watch what they write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from apiserver.meta.resource import Object
from controller.tenant import quota_step as quota
from controller.tenant import rbac_step as rbac
from controller.tenant import self_access as self_roles
from controller.tenant import tenantgateway_step as tenantgateway
from controller.tenant import values_secret_step as values
from controller.tenant.bound_roles import BoundRoles
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.quota_step import ContainerLimits, QuotaStep
from controller.tenant.rbac_step import RbacStep
from controller.tenant.reconciler import Step
from controller.tenant.self_access import SelfAccess
from controller.tenant.tenantgateway_step import TenantGatewayStep
from controller.tenant.values_secret_step import InheritedValues, ValuesStep
from controller.tenant.watches import TenantEnqueuer, TenantGatewayServedHandler
from registry.cluster.event_handlers import EventHandler
from registry.cluster.interface import CLUSTERROLES, ClusterResource


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSettings:
    """The current settings of the contents, each read on demand. `tenantgateway` returns the spec for an apex domain,
    `served` whether the cluster serves TenantGateways."""

    chart: Callable[[], ChartMode]
    cluster: Callable[[], Mapping[str, str]]
    limits: Callable[[], ContainerLimits]
    tenantgateway: Callable[[str], Object]
    served: Callable[[], bool] = lambda: True


class AddHandler(Protocol):
    def __call__(self, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
        """Add the handler to an informer of the kind in all namespaces; with `name`, of objects of that name only."""
        ...


def self_access(*, contents: ContentWriter, enqueuer: TenantEnqueuer, add_handler: AddHandler) -> SelfAccess:
    """The writer of the objects in the parent's Namespace. Its event handlers are registered with `add_handler`."""

    def digests_of(kind: ManagedKind) -> ObjectDigests:
        digests = ObjectDigests(kind, on_change=self_roles.enqueue_tenant_of(enqueuer.add))
        add_handler(kind.resource, digests)
        return digests

    return SelfAccess(
        contents=contents,
        roles=digests_of(self_roles.MANAGED_SELF_ROLE),
        bindings=digests_of(self_roles.MANAGED_SELF_ROLE_BINDING),
    )


def content_steps(
    *,
    contents: ContentWriter,
    enqueuer: TenantEnqueuer,
    add_handler: AddHandler,
    settings: ContentSettings,
    self_access: SelfAccess,
) -> Sequence[Step]:
    """The steps in run order. Their event handlers are registered with `add_handler`."""

    def digests_of(kind: ManagedKind, name: str = "") -> ObjectDigests:
        digests = ObjectDigests(kind, on_change=enqueuer.enqueue_owner)
        add_handler(kind.resource, digests, name=name)
        return digests

    add_handler(
        tenantgateway.MANAGED_TENANTGATEWAY.resource,
        TenantGatewayServedHandler(tree=enqueuer.tree, enqueue=enqueuer.add),
    )
    secrets = digests_of(values.MANAGED_VALUES_SECRET, values.SECRET_NAME)
    inherited = InheritedValues(enqueue_heirs=enqueuer.enqueue_heirs)
    add_handler(values.MANAGED_VALUES_SECRET.resource, inherited, name=values.SECRET_NAME)
    bound_roles = BoundRoles(rbac.ROLES, on_change=enqueuer.enqueue_all)
    add_handler(CLUSTERROLES, bound_roles)
    return (
        ValuesStep(contents=contents, digests=secrets, inherited=inherited, cluster=settings.cluster),
        RbacStep(
            contents=contents,
            accounts=digests_of(rbac.MANAGED_SERVICE_ACCOUNT),
            bindings=digests_of(rbac.MANAGED_ROLE_BINDING),
            self_access=self_access,
            missing_roles=lambda: bound_roles.missing,
        ),
        TenantGatewayStep(
            contents=contents,
            digests=digests_of(tenantgateway.MANAGED_TENANTGATEWAY),
            spec=settings.tenantgateway,
            served=settings.served,
        ),
        QuotaStep(
            contents=contents,
            quotas=digests_of(quota.MANAGED_QUOTA, quota.QUOTA_NAME),
            ranges=digests_of(quota.MANAGED_LIMIT_RANGE, quota.LIMIT_RANGE_NAME),
            limits=settings.limits,
        ),
    )
