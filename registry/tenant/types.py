"""Tenant as pydantic models, and the Resource that the API server serves.

The schema for validation and for `kubectl explain` is generated from the models.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from apiserver.meta.resource import Resource
from registry.application.schema import decoding_schema, published_schema
from registry.application.values import reject_internal_keys
from registry.names import GROUP, KIND
from registry.structural_schema import structural_schema
from registry.tenant.table import TENANT_COLUMNS, tenant_cells


class _Model(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="ignore", strict=True, frozen=True)


class TenantSpec(_Model):
    """The desired state of a tenant."""

    host: str = Field(
        "",
        description="Domain of the tenant. If empty, the domain is <name>.<domain of the parent>.",
    )
    etcd: bool = Field(
        False, description="Run the tenant's own etcd. If false, the nearest ancestor's etcd serves the tenant."
    )
    monitoring: bool = Field(
        False,
        description="Run the tenant's own monitoring. If false, the nearest ancestor's monitoring serves the tenant.",
    )
    ingress: bool = Field(
        False,
        description="Run the tenant's own ingress controller. If false, the nearest ancestor's serves the tenant.",
    )
    gateway: bool | None = Field(
        None,
        description="Run the tenant's own Gateway. If unset or false, the nearest ancestor's serves the tenant.",
    )
    seaweedfs: bool = Field(
        False,
        description="Run the tenant's own SeaweedFS. If false, the nearest ancestor's SeaweedFS serves the tenant.",
    )
    computeplane: bool = Field(False, description="Run the tenant's own compute plane.")
    scheduling_class: str = Field("", alias="schedulingClass", description="SchedulingClass of the tenant's workloads.")
    resource_quotas: dict[str, int | str] = Field(
        default_factory=dict,
        alias="resourceQuotas",
        description="Resource limits of the tenant by name, such as cpu, memory or count/services.",
        json_schema_extra={"default": {}},
    )


class Condition(_Model):
    """One aspect of the observed state."""

    type: str = Field(description="Type of the condition.", min_length=1, max_length=316)
    status: Literal["True", "False", "Unknown"] = Field(description="Status of the condition.")
    observed_generation: int | None = Field(
        None, alias="observedGeneration", description="The metadata.generation that the condition is based on.", ge=0
    )
    last_transition_time: str | None = Field(
        None,
        alias="lastTransitionTime",
        description="The time of the last change of the status.",
        json_schema_extra={"format": "date-time"},
    )
    reason: str | None = Field(None, description="The reason of the last change, in CamelCase.")
    message: str | None = Field(None, description="A human-readable explanation.")


class HostStatus(_Model):
    """The effective domain."""

    value: str = Field(description="The domain.")
    namespace: str = Field(description="Workload namespace of the tenant that defines it.")


class GatewayStatus(_Model):
    """The effective Gateway."""

    value: bool = Field(description="True if a Gateway serves the tenant.")
    namespace: str = Field(description="Workload namespace of the tenant that provides it; empty if none does.")


class ServicesStatus(_Model):
    """For each service, the workload namespace of the tenant that runs it for this one."""

    etcd: str | None = Field(None, description="Workload namespace of the tenant that runs etcd.")
    ingress: str | None = Field(None, description="Workload namespace of the tenant that runs the ingress controller.")
    monitoring: str | None = Field(None, description="Workload namespace of the tenant that runs the monitoring.")
    seaweedfs: str | None = Field(None, description="Workload namespace of the tenant that runs SeaweedFS.")
    computeplane: str | None = Field(None, description="Workload namespace of the tenant that runs a compute plane.")


Conditions = Annotated[
    list[Condition],
    Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
]


class TenantStatus(_Model):
    """The observed state of a tenant."""

    namespace: str | None = Field(
        None, description="The tenant's workload namespace, which also contains its child tenants."
    )
    observed_generation: int | None = Field(
        None,
        alias="observedGeneration",
        description="The metadata.generation that the conditions are about; -1 before a controller has looked.",
        json_schema_extra={"format": "int64"},
    )
    version: str | None = Field(None, description="Revision of the last attempted chart release.")
    host: HostStatus | None = Field(None, description="The effective domain, and the tenant that defines it.")
    gateway: GatewayStatus | None = Field(None, description="The effective Gateway, and the tenant that provides it.")
    services: ServicesStatus | None = Field(
        None, description="The effective services, each with the tenant that provides it."
    )
    conditions: Conditions | None = Field(None, description="The condition Ready, and the conditions it depends on.")
    external_ips_count: int | None = Field(
        None,
        alias="externalIPsCount",
        description="Number of IP addresses of the load balancers in the tenant's namespace.",
        ge=0,
    )


TENANT_SPEC = structural_schema(TenantSpec)
"""The documented part of the spec. Other keys are values of the chart, too."""


def tenant_resource() -> Resource:
    """The served resource (R-001, R-005 to R-011, WIRE-D98, WIRE-D99).

    As for every application, the spec is open at the top, and what a client sends is stored without defaults."""
    return Resource(
        group=GROUP,
        version="v1alpha1",
        kind=KIND,
        plural="tenants",
        singular="tenant",
        namespaced=True,
        description=(
            "Tenant is an isolated part of the platform with a namespace, a domain and services of its own or of its "
            "ancestors. It lives in the workload namespace of its parent."
        ),
        properties={
            "appVersion": {"type": "string", "description": "Version of the tenant application that is wanted."},
            "spec": decoding_schema(published_schema(TENANT_SPEC)),
            "status": structural_schema(TenantStatus),
        },
        published={"spec": published_schema(TENANT_SPEC)},
        columns=TENANT_COLUMNS,
        cells=tenant_cells,
        precheck=reject_internal_keys,
    )
