"""Tenant as pydantic models, and the Resource that the API server serves.

The schema for validation and for `kubectl explain` is generated from the models.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Column, Object, Resource
from registry.names import GROUP, KIND
from registry.structural_schema import structural_schema
from registry.tenant.table import cells


class _Model(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="ignore", strict=True, frozen=True)


class TenantSpec(_Model):
    """What is wanted of a tenant."""

    host: str = Field(
        "",
        description="Domain of the tenant. Empty, the tenant has <name>.<domain of its parent>.",
    )
    etcd: bool = Field(False, description="Run an etcd of the tenant's own, and not the nearest ancestor's.")
    monitoring: bool = Field(False, description="Run monitoring of the tenant's own.")
    ingress: bool = Field(False, description="Run an ingress controller of the tenant's own.")
    gateway: bool | None = Field(
        None, description="Run a Gateway of the tenant's own. Absent, the nearest ancestor's serves the tenant."
    )
    seaweedfs: bool = Field(False, description="Run a SeaweedFS of the tenant's own.")
    computeplane: bool = Field(False, description="Run a compute plane of the tenant's own.")
    scheduling_class: str = Field(
        "", alias="schedulingClass", description="SchedulingClass that the tenant's workloads run under."
    )
    resource_quotas: dict[str, int | str] = Field(
        default_factory=dict,
        alias="resourceQuotas",
        description="What the tenant may use, by resource: cpu, memory, count/services and so on.",
        json_schema_extra={"default": {}},
    )


class Condition(_Model):
    """One aspect of the current state."""

    type: str = Field(description="Type of the condition.", min_length=1, max_length=316)
    status: Literal["True", "False", "Unknown"] = Field(description="Status of the condition.")
    observed_generation: int | None = Field(
        None, alias="observedGeneration", description="The metadata.generation that the condition was set for.", ge=0
    )
    last_transition_time: str | None = Field(
        None,
        alias="lastTransitionTime",
        description="When the status last changed.",
        json_schema_extra={"format": "date-time"},
    )
    reason: str | None = Field(None, description="Why, in one CamelCase word.")
    message: str | None = Field(None, description="Why, for people.")


class EffectiveHost(_Model):
    """The domain in effect."""

    value: str = Field(description="The domain.")
    namespace: str = Field(description="Workload namespace of the tenant whose setting it comes from.")


class EffectiveGateway(_Model):
    """The Gateway in effect."""

    value: bool = Field(description="Whether a Gateway serves the tenant.")
    namespace: str = Field(description="Workload namespace of the tenant that provides it, empty if none does.")


Conditions = Annotated[
    list[Condition],
    Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
]


class TenantStatus(_Model):
    """What was found of a tenant."""

    namespace: str | None = Field(None, description="The tenant's workload namespace; its child tenants live in it.")
    version: str | None = Field(None, description="Revision of the chart that was last tried.")
    host: EffectiveHost | None = Field(None, description="The domain in effect, and where it comes from.")
    gateway: EffectiveGateway | None = Field(None, description="The Gateway in effect, and where it comes from.")
    conditions: Conditions | None = Field(None, description="Ready, and what it depends on.")
    external_ips_count: int | None = Field(
        None, alias="externalIPsCount", description="External addresses that the tenant's Services hold.", ge=0
    )


def reject_internal_keys(tenant: Object) -> None:
    """Raises BadRequest for spec keys with a leading underscore, which are Helm values of the platform (WIRE-D98)."""
    spec = tenant.get("spec")
    internal = sorted(key for key in spec if key.startswith("_")) if isinstance(spec, dict) else []
    if internal:
        quoted = ", ".join(f'"{key}"' for key in internal)
        raise BadRequest(f"spec must not contain keys that start with an underscore: {quoted}")


def tenant_resource() -> Resource:
    """The served resource (R-001, R-005 to R-011, WIRE-D98, WIRE-D99)."""
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
            "spec": {**structural_schema(TenantSpec), "default": {}},
            "status": structural_schema(TenantStatus),
        },
        columns=(
            Column("Ready", description="Whether the tenant is as wanted."),
            Column("Namespace", description="The tenant's workload namespace."),
            Column("Host", description="The domain in effect."),
            Column("Gateway", description="Workload namespace of the tenant whose Gateway serves this one."),
            Column("Version", description="Revision of the chart that was last tried.", priority=1),
            Column("Etcd", "boolean", description="Whether the tenant runs its own etcd.", priority=1),
            Column("Monitoring", "boolean", description="Whether the tenant runs its own monitoring.", priority=1),
            Column("Ingress", "boolean", description="Whether the tenant runs its own ingress.", priority=1),
            Column("SeaweedFS", "boolean", description="Whether the tenant runs its own SeaweedFS.", priority=1),
            Column("Computeplane", "boolean", description="Whether the tenant runs its own compute plane.", priority=1),
        ),
        cells=cells,
        precheck=reject_internal_keys,
    )
