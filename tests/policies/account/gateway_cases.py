"""Objects of TenantGateways, the status of routes, Events, Leases and APIServices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.meta.resource import Object
from tests.policies.account.case import (
    APISERVICES,
    EVENTS,
    GATEWAYS,
    HOME,
    HTTPROUTES,
    ISSUERS,
    LEASES,
    OTHER,
    TENANT,
    AccountCase,
    Content,
    Kind,
    case,
)

_OWNER = {"apiVersion": "gateway.cozystack.io/v1alpha1", "kind": "TenantGateway", "name": "cozystack", "uid": "u"}
_OWNED = {"metadata": {"ownerReferences": [_OWNER]}}


def gateways() -> Iterator[AccountCase]:
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    specs: Mapping[Kind, Content] = {
        GATEWAYS: {"spec": {"gatewayClassName": "cilium", "listeners": listeners}},
        HTTPROUTES: {"spec": {"hostnames": ["a.example.org"]}},
        ISSUERS: {"spec": {"selfSigned": {}}},
    }
    for kind, spec in specs.items():
        place, stays = "only so: objects that a TenantGateway owns", "its owner of kind TenantGateway must remain"
        owned = {**spec, **_OWNED}
        yield case(kind, "owned", OTHER, "limits", new=owned, in_process=True)
        yield case(kind, "of nobody", TENANT, "limits", new=dict(spec), refusal=place)
        for field, value in (("kind", "Gateway"), ("apiVersion", "example.org/v1")):
            other = {**spec, "metadata": {"ownerReferences": [{**_OWNER, field: value}]}}
            id = f"owned by another {field}"
            yield case(kind, id, TENANT, "limits", new=other, refusal=place, in_process=True)
        yield case(kind, "taken over", TENANT, "limits", old=dict(spec), new=owned, refusal=place)
        yield case(kind, "released", TENANT, "limits", old=owned, new=dict(spec), refusal=stays, in_process=True)
        for field, value in (("kind", "Gateway"), ("apiVersion", "example.org/v1")):
            other = {**spec, "metadata": {"ownerReferences": [{**_OWNER, field: value}]}}
            id = f"handed to another {field}"
            yield case(kind, id, TENANT, "limits", old=owned, new=other, refusal=stays, in_process=True)
        yield case(kind, "changed", TENANT, "limits", old=owned, new=owned, in_process=True)
    yield case(ISSUERS, "deleted", TENANT, "limits", old=dict(specs[ISSUERS]), refusal=place)
    yield case(ISSUERS, "owned, deleted", TENANT, "limits", old={**specs[ISSUERS], **_OWNED}, in_process=True)


def route_statuses() -> Iterator[AccountCase]:
    spec = {"hostnames": ["a.example.org"]}
    time = "2026-01-01T00:00:00Z"

    def status(*controllers: str, reason: str = "Accepted") -> Object:
        condition = {"type": "Accepted", "status": "True", "reason": reason, "message": "", "lastTransitionTime": time}
        parents = [
            {"controllerName": each, "parentRef": {"name": "a"}, "conditions": [condition]} for each in controllers
        ]
        return {"spec": spec, "status": {"parents": parents}}

    ours, cilium = "gateway.cozystack.io/tenantgateway-controller", "io.cilium/gateway-controller"
    limit = f"in the status of a route, only entries of {ours} may change"

    def change(id: str, old: Object, new: Object, refusal: str = "") -> AccountCase:
        fields: dict[str, Any] = {"old": old, "new": new, "refusal": refusal, "subresource": "status"}
        return case(HTTPROUTES, id, TENANT, "limits", **fields)

    yield change("our entry added", {"spec": spec}, status(ours))
    yield change("our entry beside another", status(cilium), status(cilium, ours))
    yield change("our entry removed", status(cilium, ours), status(cilium))
    yield change("another's entry added", {"spec": spec}, status(cilium), limit)
    yield change("another's entry changed", status(cilium), status(cilium, reason="Wrong"), limit)
    yield change("another's entry removed", status(cilium, ours), status(ours), limit)


def events_and_leases() -> Iterator[AccountCase]:
    event = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "apps.cozystack.io/tenant-controller",
        "reportingInstance": "x",
        "action": "x",
        "reason": "x",
        "type": "Normal",
        "regarding": {"kind": "Namespace", "name": TENANT, "namespace": TENANT},
    }
    other = {**event, "reportingController": "kubelet"}
    refusal = "may write events only so: of the reporting controller apps.cozystack.io/tenant-controller"
    yield case(EVENTS, "ours", TENANT, "limits", new=event)
    yield case(EVENTS, "of another controller", TENANT, "limits", new=other, refusal=refusal)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    for id, new, in_process in (("changed", {**other, "series": series}, False), ("taken over", event, True)):
        fields = {"old": other, "new": new, "refusal": refusal, "in_process": in_process}
        yield case(EVENTS, f"of another controller, {id}", TENANT, "limits", **fields)
    refusal = "may write leases only so: tenant-apiserver or tenant-apiserver-claims in the account's own namespace"
    spec = {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}
    yield case(LEASES, "of the election", HOME, "tenant-apiserver", new=spec)
    yield case(LEASES, "of the claims", HOME, "tenant-apiserver-claims", new={"spec": {}})
    yield case(LEASES, "of another component", HOME, "other", new=spec, refusal=refusal)
    yield case(LEASES, "elsewhere", OTHER, "tenant-apiserver", new=spec, refusal=refusal)
    yield case(LEASES, "elsewhere, deleted", OTHER, "tenant-apiserver", old=spec, refusal=refusal)


def api_services() -> Iterator[AccountCase]:
    name = "v1alpha1.apps.cozystack.io"

    def spec(service: Content | None = None, **fields: Any) -> Object:
        ours = {"namespace": HOME, "name": "tenant-apiserver"}
        base = {
            "group": "apps.cozystack.io",
            "version": "v1alpha1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
        }
        return {"spec": {**base, "service": dict(service or ours), **fields}}

    def change(id: str, old: Object, new: Object, refusal: str = "") -> AccountCase:
        return case(APISERVICES, id, "", name, old=old, new=new, refusal=refusal, in_process=True)

    place = "may write apiservices only so: those that lead to Service tenant-apiserver in the account's own namespace"
    limit = "of the spec of an APIService, only the CA may change"
    yield case(APISERVICES, "created", "", name, new=spec(), in_process=True)
    yield change("the CA", spec(), spec(caBundle="eA=="))
    yield change("the CA removed", spec(caBundle="eA=="), spec())
    yield change("with a further field", spec(), spec(further="x"), limit)
    yield change("verified from now on", spec(insecureSkipTLSVerify=True), spec(caBundle="eA=="))
    yield change("not verified", spec(), spec(insecureSkipTLSVerify=True), "must verify the server's certificate")
    yield change("taken over", spec({"namespace": HOME, "name": "cozystack-api"}), spec(), place)
    foreign = spec({"namespace": OTHER, "name": "tenant-apiserver"})
    yield change("of another namespace", foreign, {"spec": {**foreign["spec"], "caBundle": "eA=="}}, place)
    local = {"spec": {key: value for key, value in spec()["spec"].items() if key != "service"}}
    yield change("of kube-apiserver itself", local, spec(), place)
    yield change("led elsewhere", spec(), spec({"namespace": OTHER, "name": "x"}), limit)
    yield change("preferred", spec(), spec(groupPriorityMinimum=20000), limit)
    yield change("without a service", spec(), local, limit)
