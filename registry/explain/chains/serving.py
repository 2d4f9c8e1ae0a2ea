"""The facts of a hostname's listener and certificate, from what the user may get of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.meta.resource import Key, Object
from registry.explain.chains.tenant import tenant_object, with_class
from registry.explain.hostnames import hostname_matches, mappings
from registry.explain.known import KnownGateway, KnownHost
from registry.explain.reasons import condition_fact, rule_of
from registry.explain.types import HIDDEN, Fact, fact_object, hidden_object

_GATEWAYS = "gateways.md"
_GATEWAY_API, _OURS, _CERTIFICATES = (
    "gateway.networking.k8s.io/v1",
    "gateway.cozystack.io/v1alpha1",
    "cert-manager.io/v1",
)
_GATEWAY_READY, _LISTENERS_NOT_READY = "GatewayReady", "ListenersNotReady"
# the end of the message of GatewayReady, as controller/tenant/gateway_ready_step.py writes it
_NOT_READY = re.compile(r"listeners not ready: (?P<hosts>[^;]*)")
_NOT_READY_HOST = re.compile(r"(?P<host>\S+)(?: \((?P<reason>\w+)\))?(?P<more> and \d+ more)?")


def gateway_state_facts(gateway: KnownGateway) -> Iterator[Fact]:
    """The state of the Gateway itself."""
    if gateway.tenantgateway is not None:
        subject = fact_object(_OURS, "TenantGateway", _key(gateway.tenantgateway))
        for each in mappings((gateway.tenantgateway.get("status") or {}).get("conditions")):
            # listeners of other hosts do not matter
            if each.get("type") == "Ready" and each.get("reason") != _LISTENERS_NOT_READY:
                yield with_class(condition_fact(subject, each), gateway.class_name)
    elif gateway.gateway is None:
        yield Fact(
            object=hidden_object(),
            status="True",
            rule="The status of the routes tells whether a Gateway that you may not see serves them.",
            link=_GATEWAYS,
        )


def serving_facts(known: KnownHost, *, has_route: bool, remedy: str) -> Iterator[Fact]:
    """The listener of the host, and its certificate. `remedy` is for a host without a route."""
    gateway = known.gateway
    if gateway is None:
        return
    missing = _no_listener(known.host, has_route=has_route, remedy=remedy)
    if gateway.tenantgateway is not None:
        yield from _tenantgateway_facts(known, gateway.tenantgateway, missing)
    else:
        if gateway.gateway is not None:
            yield from _listener_facts(known, gateway.gateway, missing)
        yield from _tenant_condition_facts(known, gateway)
    if known.certificate is not None:
        yield from _certificate_facts(known.certificate)


def _tenant_condition_facts(known: KnownHost, gateway: KnownGateway) -> Iterator[Fact]:
    """The state of a Gateway whose TenantGateway and Certificates are hidden, from the condition GatewayReady of the
    Tenant, which names those of its hostnames that are not ready."""
    conditions = mappings(known.tenant.status.get("conditions"))
    found = next((each for each in conditions if each.get("type") == _GATEWAY_READY), None)
    if found is None:
        if known.certificate is None:
            yield _hidden_certificate(known)
        return
    fact = with_class(condition_fact(tenant_object(known.tenant), found), gateway.class_name)
    if fact.reason != _LISTENERS_NOT_READY:
        yield fact
        return
    reason, listed = _reason_in(fact.message or "", known.host)
    if reason is not None:
        rule = rule_of(reason)
        message = f"the listener of {known.host} is not ready: {reason}" if reason else f"{known.host} is not ready"
        told = {"reason": reason or None, "message": message, "rule": rule.text, "link": rule.link}
        yield fact.model_copy(update={**told, "remedy": rule.remedy or None})
    elif listed:
        # others are not ready
        yield fact.model_copy(update={"status": "True", "remedy": None, "message": None})
    else:
        yield _hidden_certificate(known)


def _reason_in(message: str, host: str) -> tuple[str | None, bool]:
    """The reason that the message of GatewayReady gives for a host, None if it does not name it; and whether it names
    all hosts that are not ready."""
    found = _NOT_READY.search(message)
    listed = True
    for entry in found["hosts"].split(", ") if found else ():
        parsed = _NOT_READY_HOST.fullmatch(entry.strip())
        if parsed is None:
            listed = False
        elif hostname_matches(parsed["host"], host):
            return parsed["reason"] or "", True
        elif parsed["more"]:
            listed = False
    return None, listed and found is not None


def _hidden_certificate(known: KnownHost) -> Fact:
    return Fact(
        object=hidden_object(),
        status="Unknown",
        rule=rule_of("CertificateNotReady").text,
        link=_GATEWAYS,
        message=f"the certificate of {known.host} is {HIDDEN}",
        remedy="ask those who administer the Gateway, or for the right to get tenantgateways and certificates there",
    )


def _tenantgateway_facts(known: KnownHost, obj: Object, missing: Fact) -> Iterator[Fact]:
    """The listener of the host as the TenantGateway tells."""
    subject = fact_object(_OURS, "TenantGateway", _key(obj))
    listeners = mappings((obj.get("status") or {}).get("listeners"))
    matching = [each for each in listeners if _serves(each.get("hostname"), known.host)]
    if not matching:
        yield missing.model_copy(update={"object": subject.model_copy(update={"field": "status.listeners"})})
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


def _listener_facts(known: KnownHost, obj: Object, missing: Fact) -> Iterator[Fact]:
    """The listeners of a Gateway whose TenantGateway the user may not get."""
    subject = fact_object(_GATEWAY_API, "Gateway", _key(obj))
    listeners = mappings((obj.get("spec") or {}).get("listeners"))
    names = [str(each.get("name")) for each in listeners if _serves(each.get("hostname"), known.host)]
    if not names:
        yield missing.model_copy(update={"object": subject.model_copy(update={"field": "spec.listeners"})})
    for each in mappings((obj.get("status") or {}).get("listeners")):
        if each.get("name") in names:
            for condition in mappings(each.get("conditions")):
                fact = condition_fact(subject, condition)
                field = f"status.listeners[{each['name']}].conditions[{condition.get('type')}]"
                yield fact.model_copy(update={"object": subject.model_copy(update={"field": field})})


def _no_listener(host: str, *, has_route: bool, remedy: str) -> Fact:
    return Fact(
        object=hidden_object(),
        status="False" if has_route else "Unknown",
        rule="A Gateway has a listener for each hostname that a route uses.",
        link=_GATEWAYS,
        message=f"the Gateway has no listener for {host}",
        remedy="the status of the route says why" if has_route else remedy,
    )


def _certificate_facts(obj: Object) -> Iterator[Fact]:
    subject = fact_object(_CERTIFICATES, "Certificate", _key(obj))
    status = obj.get("status") or {}
    for each in mappings(status.get("conditions")):
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


def _serves(hostname: object, host: str) -> bool:
    return isinstance(hostname, str) and bool(hostname) and hostname_matches(hostname, host)


def _key(obj: Mapping[str, Any]) -> Key:
    return Key(obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
