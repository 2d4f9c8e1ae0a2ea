"""The facts of a hostname: whose domain it is in, the Gateway, the listener, the certificate and the routes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Key, Object
from registry.explain.chains.route import route_facts
from registry.explain.chains.tenant import gateway_fact, host_fact, tenant_object
from registry.explain.known import TENANT, KnownHost
from registry.explain.reasons import condition_fact, rule_of
from registry.explain.types import Fact, FactObject, explanation, fact_object, hidden_object
from registry.tenant.cluster_roles import TENANT_ROUTES

_GATEWAYS, _SPEC = "gateways.md", "tenants.md#spec"
_GATEWAY_API, _OURS, _CERTIFICATES = (
    "gateway.networking.k8s.io/v1",
    "gateway.cozystack.io/v1alpha1",
    "cert-manager.io/v1",
)
_HOST_POLICY = "Only the groups that the platform trusts set spec.host of a tenant."


def explain_host(known: KnownHost, about: str) -> Object:
    """The answer about a hostname, asked of a Tenant."""
    facts = [host_fact(known.tenant)]
    outside = _domain_facts(known)
    facts += outside
    if all(each.status == "True" for each in outside):
        facts += [*_gateway_facts(known), *_route_facts(known), *_serving_facts(known)]
    return explanation(known.tenant.key, about, facts, f"{known.host} is served")


def within(domain: str, host: str) -> bool:
    """True if the host, possibly a wildcard, is the domain or below it."""
    host = host.removeprefix("*.")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def hostname_matches(pattern: str, host: str) -> bool:
    """True if a hostname of a route or listener, which may be a wildcard, includes the host; empty includes all."""
    pattern = pattern.lower()
    return not pattern or pattern == host or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def _domain_facts(known: KnownHost) -> list[Fact]:
    """States if the host is in the domain of the Tenant, and not in that of another one."""
    tenant, owner = known.tenant, known.owner
    inside = within(tenant.host, known.host)
    if inside and owner is None:
        return [
            Fact(
                object=tenant_object(tenant, "status.host"),
                status="True",
                value=known.host if known.host == tenant.host else f"{tenant.host} contains {known.host}",
                rule="A tenant serves its domain and the names below it.",
                link=_GATEWAYS,
            )
        ]
    found = []
    if owner is not None:
        found.append(
            Fact(
                object=fact_object(*TENANT, owner.key, "status.host"),
                status="False",
                value=owner.host,
                rule="A name belongs to the tenant with the longest domain around it.",
                link=_GATEWAYS,
                message=f"{known.host} belongs to tenant {owner.key.namespace}/{owner.key.name}",
                remedy=f"ask about it there: kubectl tenant explain host {known.host} "
                f"--tenant {owner.key.name} -n {owner.key.namespace}",
            )
        )
    return found if inside else [*found, *_outside_facts(known)]


def _outside_facts(known: KnownHost) -> list[Fact]:
    """The domain that the host is not in, and who may change it."""
    tenant = known.tenant
    domain = tenant.host or "its domain"
    return [
        Fact(
            object=tenant_object(tenant, "status.host"),
            status="False",
            value=tenant.host or None,
            rule="A tenant serves its domain and the names below it.",
            link=_GATEWAYS,
            message=f"{known.host} is not below {domain}",
            remedy=f"use a name below {domain}, or {_host_remedy(known)}",
        ),
        Fact(
            object=tenant_object(tenant, "spec.host"),
            status="True",
            value="you may set it" if known.may_set_host else "you may not set it",
            rule=_HOST_POLICY,
            link=_SPEC,
        ),
    ]


def _host_remedy(known: KnownHost) -> str:
    return "set spec.host" if known.may_set_host else "ask a platform administrator to set spec.host"


def _gateway_facts(known: KnownHost) -> Iterator[Fact]:
    yield gateway_fact(known.tenant)
    gateway = known.gateway
    if gateway is None:
        yield Fact(
            object=tenant_object(known.tenant, "spec.gateway"),
            status="False",
            value=str(known.tenant.spec.get("gateway") or False).lower(),
            rule="A hostname is served by a Gateway of the tenant or of an ancestor.",
            link=_GATEWAYS,
            message="no Gateway serves the tenant",
            remedy="set spec.gateway: true on the tenant, or have an ancestor's set",
        )
    elif gateway.tenantgateway is not None:
        subject = fact_object(_OURS, "TenantGateway", _key(gateway.tenantgateway))
        for each in _mappings((gateway.tenantgateway.get("status") or {}).get("conditions")):
            # listeners of other hosts do not matter
            if each.get("type") == "Ready" and each.get("reason") != "ListenersNotReady":
                yield condition_fact(subject, each)
    elif gateway.gateway is None:
        yield Fact(
            object=hidden_object(),
            status="True",
            rule="The status of the routes tells whether a Gateway that you may not see serves them.",
            link=_GATEWAYS,
        )


def _serving_facts(known: KnownHost) -> Iterator[Fact]:
    """The listener of the host, and its certificate."""
    if known.gateway is None:
        return
    if known.gateway.tenantgateway is not None:
        yield from _tenantgateway_facts(known, known.gateway.tenantgateway)
    elif known.gateway.gateway is not None:
        yield from _listener_facts(known, known.gateway.gateway)
    if known.certificate is not None:
        yield from _certificate_facts(known.certificate)


def _tenantgateway_facts(known: KnownHost, obj: Object) -> Iterator[Fact]:
    """The listener of the host as the TenantGateway tells."""
    subject = fact_object(_OURS, "TenantGateway", _key(obj))
    listeners = _mappings((obj.get("status") or {}).get("listeners"))
    matching = [each for each in listeners if _serves(each.get("hostname"), known.host)]
    if not matching:
        yield _no_listener(known, subject.model_copy(update={"field": "status.listeners"}))
    for each in matching:
        ready, reason = each.get("ready") is True, str(each.get("reason") or "")
        rule = rule_of(reason or "Programmed")
        yield Fact(
            object=subject.model_copy(update={"field": f"status.listeners[{each.get('name')}]"}),
            status="True" if ready else "False",
            value=str(each.get("hostname") or ""),
            rule=rule.text,
            link=rule.link,
            reason=reason or None,
            message=None if ready else f"the listener {each.get('name')} is not ready",
            remedy=None if ready else rule.remedy or None,
        )


def _listener_facts(known: KnownHost, obj: Object) -> Iterator[Fact]:
    """The listeners of a Gateway whose TenantGateway the user may not get."""
    subject = fact_object(_GATEWAY_API, "Gateway", _key(obj))
    listeners = _mappings((obj.get("spec") or {}).get("listeners"))
    names = [str(each.get("name")) for each in listeners if _serves(each.get("hostname"), known.host)]
    if not names:
        yield _no_listener(known, subject.model_copy(update={"field": "spec.listeners"}))
    for each in _mappings((obj.get("status") or {}).get("listeners")):
        if each.get("name") in names:
            for condition in _mappings(each.get("conditions")):
                fact = condition_fact(subject, condition)
                field = f"status.listeners[{each['name']}].conditions[{condition.get('type')}]"
                yield fact.model_copy(update={"object": subject.model_copy(update={"field": field})})


def _no_listener(known: KnownHost, subject: FactObject) -> Fact:
    return Fact(
        object=subject,
        status="False" if known.routes else "Unknown",
        rule="A Gateway has a listener for each hostname that a route uses.",
        link=_GATEWAYS,
        message=f"the Gateway has no listener for {known.host}",
        remedy="the status of the route says why" if known.routes else _create_remedy(known),
    )


def _certificate_facts(obj: Object) -> Iterator[Fact]:
    subject = fact_object(_CERTIFICATES, "Certificate", _key(obj))
    status = obj.get("status") or {}
    for each in _mappings(status.get("conditions")):
        if each.get("type") == "Ready":
            yield condition_fact(subject, each)
    if status.get("notAfter"):
        yield Fact(
            object=subject.model_copy(update={"field": "status.notAfter"}),
            status="True",
            value=str(status["notAfter"]),
            rule="cert-manager renews a certificate before this time.",
            link=_GATEWAYS,
        )


def _route_facts(known: KnownHost) -> Iterator[Fact]:
    for each in known.routes:
        yield from route_facts(each)
    if not known.routes:
        where = known.tenant.namespace
        if set(known.searched) != {where}:
            where = f"{where} and the attached namespaces, as far as you may list routes there,"
        yield Fact(
            object=tenant_object(known.tenant, "status.namespace"),
            status="False" if known.searched and not known.truncated else "Unknown",
            rule="A route says which backend a hostname has.",
            link=_GATEWAYS,
            message=f"no route in {where} has the hostname {known.host}",
            remedy=_create_remedy(known),
        )


def _create_remedy(known: KnownHost) -> str:
    """Tenants' people may not create routes by default: the platform does that for the services that it publishes."""
    namespace = known.tenant.namespace
    if known.may_create_routes:
        return f"create an HTTPRoute with this hostname in {namespace}"
    return (
        f"ask a platform administrator for the right to create httproutes in {namespace}, which the ClusterRole "
        f"{TENANT_ROUTES} has (docs/delegation.md)"
    )


def _serves(hostname: object, host: str) -> bool:
    return isinstance(hostname, str) and bool(hostname) and hostname_matches(hostname, host)


def _mappings(value: object) -> Sequence[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()


def _key(obj: Object) -> Key:
    return Key(obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
