"""Objects of TenantGateways, the status of routes, Events, Leases and APIServices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.meta.resource import Object
from tests.policies.account.case import (
    APISERVICES,
    CERTIFICATES,
    EVENTS,
    GATEWAYS,
    GRPCROUTES,
    HOME,
    HTTPROUTES,
    ISSUERS,
    LEASES,
    LISTENERSETS,
    OTHER,
    TENANT,
    AccountCase,
    Content,
    Kind,
    case,
)

_OWNER = {"apiVersion": "gateway.cozystack.io/v1alpha1", "kind": "TenantGateway", "name": "cozystack", "uid": "u"}
_OWNED = {"metadata": {"ownerReferences": [_OWNER]}}
_ACME = {
    "server": "https://acme.example.org",
    "email": "a@example.org",
    "caBundle": "eA==",
    "privateKeySecretRef": {"name": "cozystack-acme-account"},
    "solvers": [{"http01": {"gatewayHTTPRoute": {"parentRefs": [{"name": "cozystack"}]}}}],
}
_CERTIFICATE = {
    "secretName": "limits-tls",
    "dnsNames": ["a.example.org"],
    "issuerRef": {"group": "cert-manager.io", "kind": "Issuer", "name": "cozystack-gateway"},
}


def gateways() -> Iterator[AccountCase]:
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    specs: Mapping[Kind, Content] = {
        GATEWAYS: {"spec": {"gatewayClassName": "cilium", "listeners": listeners}},
        LISTENERSETS: {"spec": {"parentRef": {"name": "cozystack"}, "listeners": listeners}},
        HTTPROUTES: {"spec": {"hostnames": ["a.example.org"]}},
        ISSUERS: {"spec": {"acme": _ACME}},
        CERTIFICATES: {"spec": _CERTIFICATE},
    }
    for kind, spec in specs.items():
        place, stays = "objects that a TenantGateway owns", "its owner of kind TenantGateway must remain"
        owned = {**spec, **_OWNED}
        yield case(kind, "owned", OTHER, "limits-tls", new=owned, in_process=True)
        yield case(kind, "of nobody", TENANT, "limits-tls", new=dict(spec), refusal=place)
        for field, value in (("kind", "Gateway"), ("apiVersion", "example.org/v1")):
            other = {**spec, "metadata": {"ownerReferences": [{**_OWNER, field: value}]}}
            id = f"owned by another {field}"
            yield case(kind, id, TENANT, "limits-tls", new=other, refusal=place, in_process=True)
        yield case(kind, "taken over", TENANT, "limits-tls", old=dict(spec), new=owned, refusal=place)
        yield case(kind, "released", TENANT, "limits-tls", old=owned, new=dict(spec), refusal=stays, in_process=True)
        for field, value in (("kind", "Gateway"), ("apiVersion", "example.org/v1")):
            other = {**spec, "metadata": {"ownerReferences": [{**_OWNER, field: value}]}}
            id = f"handed to another {field}"
            yield case(kind, id, TENANT, "limits-tls", old=owned, new=other, refusal=stays, in_process=True)
        yield case(kind, "changed", TENANT, "limits-tls", old=owned, new=owned, in_process=True)
    for kind in (GATEWAYS, LISTENERSETS, HTTPROUTES):
        refusal = "annotations of Gateways and routes stay as they are"
        for key, value in (
            ("cert-manager.io/cluster-issuer", "ca"),
            ("external-dns.alpha.kubernetes.io/target", "evil.example"),
        ):
            plain = {**specs[kind], **_OWNED}
            annotated = {**specs[kind], "metadata": {**_OWNED["metadata"], "annotations": {key: value}}}
            fields: dict[str, Any] = {"in_process": True}
            yield case(kind, f"created with {key}", TENANT, "limits-tls", new=annotated, refusal=refusal, **fields)
            yield case(kind, f"gets {key}", TENANT, "limits-tls", old=plain, new=annotated, refusal=refusal, **fields)
            yield case(kind, f"loses {key}", TENANT, "limits-tls", old=annotated, new=plain, refusal=refusal, **fields)
            changed = {**specs[kind], "metadata": {**_OWNED["metadata"], "annotations": {key: "other"}}}
            fields |= {"old": annotated, "new": changed, "refusal": refusal}
            yield case(kind, f"changes {key}", TENANT, "limits-tls", **fields)
            yield case(kind, f"keeps {key}", TENANT, "limits-tls", **{**fields, "new": annotated, "refusal": ""})
    redirect = {"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]}
    yield case(
        HTTPROUTES, "a redirect", TENANT, "limits-tls", new={"spec": {"rules": [redirect]}, **_OWNED}, in_process=True
    )
    for kind in (ISSUERS, LISTENERSETS):
        yield case(kind, "deleted", TENANT, "limits-tls", old=dict(specs[kind]), refusal=place)
        yield case(kind, "owned, deleted", TENANT, "limits-tls", old={**specs[kind], **_OWNED}, in_process=True)


def issuers() -> Iterator[AccountCase]:
    """All in the test process: the garbage collector would delete an object whose owner does not exist."""

    def change(id: str, spec: Content, refusal: str = "", *, old: Content | None = None) -> AccountCase:
        before = None if old is None else {"spec": old, **_OWNED}
        name = "cozystack-gateway"
        return case(
            ISSUERS, id, TENANT, name, old=before, new={"spec": spec, **_OWNED}, refusal=refusal, in_process=True
        )

    def solving(**solver: Any) -> Object:
        return {"acme": {**_ACME, "solvers": [solver]}}

    types = {
        "ca": {"secretName": "cluster-ca"},
        "vault": {"server": "https://evil.example", "auth": {"tokenSecretRef": {"name": "token", "key": "token"}}},
        "selfSigned": {},
        "venafi": {"zone": "x", "tpp": {"url": "https://evil.example", "credentialsRef": {"name": "x"}}},
    }
    wrong, ours = "an Issuer is of type acme", {"acme": _ACME}
    for type_, fields in types.items():
        yield change(f"of type {type_}", {type_: fields}, wrong)
        yield change(f"becomes of type {type_}", {type_: fields}, wrong, old=ours)
        yield change(f"still of type {type_}", {type_: fields}, old={type_: fields})
    yield change("of another type than before", {"ca": {"secretName": "b"}}, wrong, old={"ca": {"secretName": "a"}})
    wrong, binding = "spec.acme of an Issuer has only the fields", {"externalAccountBinding": {"keyID": "x"}}
    yield change("with another field of acme", {"acme": {**_ACME, **binding}}, wrong)
    yield change("keeps another field of acme", {"acme": {**_ACME, **binding}}, old={"acme": {**_ACME, **binding}})
    other = {"acme": {**_ACME, "externalAccountBinding": {"keyID": "y"}}}
    yield change("changes another field of acme", {"acme": {**_ACME, **binding}}, wrong, old=other)
    for provider in ("cloudflare", "route53", "digitalocean", "rfc2136"):
        yield change(f"with {provider}", solving(dns01={provider: {}}))
    wrong = "the solvers of an Issuer are http01.gatewayHTTPRoute"
    host = {"acmeDNS": {"host": "https://evil.example", "accountSecretRef": {"name": "token", "key": "token"}}}
    yield change("with a host of its own", solving(dns01=host), wrong)
    yield change("with a host as before", solving(dns01=host), old=solving(dns01=host))
    yield change("with Pods", solving(http01={"ingress": {}}), wrong)
    pods = {"podTemplate": {"spec": {"serviceAccountName": "x"}}}
    yield change("with Pods for a route", solving(http01={"gatewayHTTPRoute": pods}), wrong)
    yield change("with a selector", solving(selector={}, http01={"gatewayHTTPRoute": {}}), wrong)


def certificates() -> Iterator[AccountCase]:
    def change(
        id: str, spec: Content, refusal: str = "", *, name: str = "limits-tls", old: Content | None = None
    ) -> AccountCase:
        before = None if old is None else {"spec": {**_CERTIFICATE, **old}, **_OWNED}
        new = {"spec": {**_CERTIFICATE, **spec}, **_OWNED}
        return case(CERTIFICATES, id, TENANT, name, old=before, new=new, refusal=refusal, in_process=True)

    wrong = "a Certificate has only the fields"
    further: Content = {"isCA": True, "commonName": "x", "subject": {"organizations": ["system:masters"]}}
    for field, value in further.items():
        yield change(f"with {field}", {field: value}, wrong)
        yield change(f"keeps {field}", {field: value}, old={field: value})
    yield change("another common name", {"commonName": "x"}, wrong, old={"commonName": "y"})
    yield change("another hostname", {"dnsNames": ["b.example.org"]}, old={})
    wrong = "the Secret of a Certificate has its name"
    # the account may read this Secret, wherever it is
    secret = {"secretName": "cozystack-values"}
    yield change("of a Secret that the account reads", secret, wrong, name="cozystack-values")
    yield change("of another Secret", {"secretName": "other-tls"}, wrong)
    yield change("of the same Secret as before", secret, old=secret)
    wrong = "the issuer of a Certificate is an Issuer whose name"
    for id, reference in {
        "of a ClusterIssuer": {"kind": "ClusterIssuer", "name": "cozystack-gateway"},
        "of another Issuer": {"kind": "Issuer", "name": "cluster-ca"},
    }.items():
        yield change(id, {"issuerRef": reference}, wrong)
        yield change(f"{id} as before", {"issuerRef": reference}, old={"issuerRef": reference})
    yield change("of an Issuer by default", {"issuerRef": {"name": "cozystack-gateway"}})


def route_statuses() -> Iterator[AccountCase]:
    for kind in (HTTPROUTES, GRPCROUTES):
        yield from _statuses_of(kind)


def _statuses_of(kind: Kind) -> Iterator[AccountCase]:
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
        return case(kind, id, TENANT, "limits-tls", **fields)

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
    yield case(EVENTS, "ours", TENANT, "limits-tls", new=event)
    yield case(EVENTS, "of another controller", TENANT, "limits-tls", new=other, refusal=refusal)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    for id, new, in_process in (("changed", {**other, "series": series}, False), ("taken over", event, True)):
        fields = {"old": other, "new": new, "refusal": refusal, "in_process": in_process}
        yield case(EVENTS, f"of another controller, {id}", TENANT, "limits-tls", **fields)
    refusal = (
        "may write leases only so: tenant-apiserver or tenant-apiserver-claims or tenant-apiserver-application-kinds "
        "in the account's own namespace"
    )
    spec = {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}
    yield case(LEASES, "of the election", HOME, "tenant-apiserver", new=spec)
    yield case(LEASES, "of the claims", HOME, "tenant-apiserver-claims", new={"spec": {}})
    yield case(LEASES, "of the forms of kinds", HOME, "tenant-apiserver-application-kinds", new=spec)
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
