"""The facts of a Tenant: where it is, from whom it has what, and what its conditions say. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apiserver.meta.resource import Object
from registry.explain.chains.quota import quota_facts
from registry.explain.known import TENANT, KnownQuota, KnownTenant
from registry.explain.reasons import condition_fact
from registry.explain.types import Fact, FactObject, explanation, fact_object

_INHERITANCE = "inheritance.md"
_SERVICES = ("etcd", "monitoring", "ingress", "seaweedfs")


def explain_tenant(known: KnownTenant, quota: KnownQuota, about: str) -> Object:
    """The answer about a Tenant; its condition Ready decides."""
    conditions = condition_facts(known)
    ready = [each for each in conditions if (each.object.field or "").endswith("[Ready]")]
    facts = [*place_facts(known), host_fact(known), gateway_fact(known), *_service_facts(known)]
    facts += [*quota_facts(known, quota), *conditions]
    summary = f"tenant {known.key.namespace}/{known.key.name} is ready"
    return explanation(known.key, about, facts, summary, deciding=ready, ratios=quota.ratios)


def place_facts(known: KnownTenant) -> Iterator[Fact]:
    """The parent, and the workload namespace."""
    yield Fact(
        object=tenant_object(known, "metadata.namespace"),
        status="True",
        value=_from(known, known.key.namespace),
        rule="A tenant lies in the workload namespace of its parent.",
        link="tenants.md",
    )
    yield Fact(
        object=tenant_object(known, "status.namespace"),
        status="True" if known.namespace else "Unknown",
        value=known.namespace or None,
        rule="A tenant has a workload namespace, which also contains its children.",
        link="tenants.md#status",
    )


def host_fact(known: KnownTenant) -> Fact:
    """The domain, and the tenant that defines it."""
    host = known.status.get("host") or {}
    own = bool(known.spec.get("host"))
    if not host:
        return Fact(
            object=tenant_object(known, "status.host"),
            status="Unknown",
            rule="A tenant without spec.host has the domain <name>.<domain of its parent>.",
            link="tenants.md#spec",
            remedy="wait for a controller; if it lasts, set spec.host, or publishing.host of the platform settings",
        )
    if own:
        return Fact(
            object=tenant_object(known, "spec.host"),
            status="True",
            value=host["value"],
            rule="The domain of a tenant is its spec.host.",
            link="tenants.md#spec",
        )
    return Fact(
        object=tenant_object(known, "status.host"),
        status="True",
        value=f"{host['value']}, from {_from(known, host['namespace'])}",
        rule="A tenant without spec.host has the domain <name>.<domain of its parent>.",
        link="tenants.md#spec",
    )


def gateway_fact(known: KnownTenant) -> Fact:
    """The tenant whose Gateway serves this one."""
    namespace = (known.status.get("gateway") or {}).get("namespace") or ""
    rule = "The nearest of a tenant and its ancestors with spec.gateway: true serves it."
    if not namespace:
        return Fact(
            object=tenant_object(known, "status.gateway"),
            status="True",
            value="none",
            rule=rule,
            link=_INHERITANCE,
        )
    value = "its own" if namespace == known.namespace else f"from {_from(known, namespace)}"
    return Fact(object=tenant_object(known, "status.gateway"), status="True", value=value, rule=rule, link=_INHERITANCE)


def condition_facts(known: KnownTenant) -> Sequence[Fact]:
    """Ready first, and the others by type."""
    conditions = [each for each in known.status.get("conditions") or () if isinstance(each, dict)]
    ordered = sorted(conditions, key=lambda each: (each.get("type") != "Ready", str(each.get("type"))))
    return [with_class(condition_fact(tenant_object(known), each), known.gateway_class) for each in ordered]


def with_class(fact: Fact, name: str) -> Fact:
    """The fact with the name of the GatewayClass in its remedy, if it is known."""
    if not name or not fact.remedy:
        return fact
    return fact.model_copy(update={"remedy": fact.remedy.replace("its GatewayClass", f"GatewayClass {name}")})


def tenant_object(known: KnownTenant, field: str = "") -> FactObject:
    return fact_object(*TENANT, known.key, field)


def _service_facts(known: KnownTenant) -> Iterator[Fact]:
    services = known.status.get("services") or {}
    for name in _SERVICES:
        namespace = services.get(name)
        if namespace:
            value = "its own" if namespace == known.namespace else f"from {_from(known, namespace)}"
            yield Fact(
                object=tenant_object(known, f"status.services.{name}"),
                status="True",
                value=value,
                rule=f"The nearest of a tenant and its ancestors with spec.{name}: true runs {name}, or the root.",
                link=_INHERITANCE,
            )


def _from(known: KnownTenant, namespace: str) -> str:
    """The namespace, which the status of the Tenant names anyway, with its Tenant if the user may get it."""
    if namespace == known.namespace:
        return f"{namespace}, its own"
    owner = known.owners.get(namespace)
    return (
        f"{namespace}, of tenant {owner.namespace}/{owner.name}"
        if owner
        else f"{namespace}, of a tenant that you may not see"
    )
