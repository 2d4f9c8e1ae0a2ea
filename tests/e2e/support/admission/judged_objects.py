"""Objects of custom kinds, good and bad, on which the embedded cluster and a kube-apiserver must agree."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GATEWAY_API = "gateway.networking.k8s.io"
STRING = {"type": "string"}


@dataclass(frozen=True)
class Judged:
    """An object and the version that is updated, if it is an update."""

    name: str
    obj: dict[str, Any]
    old: dict[str, Any] | None = None
    plural: str = field(default="")


def build(api_version: str, kind: str, plural: str, spec: Any, **more: Any) -> dict[str, Any]:
    metadata = {"name": "judged", "namespace": "default", **more.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "_plural": plural, **more}


def gateway(*listeners: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    body = {"gatewayClassName": "x", "listeners": list(listeners), **spec}
    return build(f"{GATEWAY_API}/v1", "Gateway", "gateways", body)


def listener(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "port": 80, "protocol": "HTTP", **more}


def http_route(*rules: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    return build(f"{GATEWAY_API}/v1", "HTTPRoute", "httproutes", {"rules": list(rules), **spec})


def grant(spec: Any) -> dict[str, Any]:
    return build(f"{GATEWAY_API}/v1beta1", "ReferenceGrant", "referencegrants", spec)


def certificate(**spec: Any) -> dict[str, Any]:
    body = {"secretName": "tls", "issuerRef": {"name": "ca"}, "dnsNames": ["a.example.org"], **spec}
    return build("cert-manager.io/v1", "Certificate", "certificates", body)


def release(**spec: Any) -> dict[str, Any]:
    body = {"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": "chart"}, **spec}
    return build("helm.toolkit.fluxcd.io/v2", "HelmRelease", "helmreleases", body)


def issuer(**spec: Any) -> dict[str, Any]:
    return build("cert-manager.io/v1", "Issuer", "issuers", spec)


def gadget(*, status: Any = None, **spec: Any) -> dict[str, Any]:
    more = {} if status is None else {"status": status}
    return build("judged.example.com/v1", "Gadget", "gadgets", {"name": "ab", **spec}, **more)


_MATCH = {"path": {"type": "PathPrefix", "value": "/"}}
_FROM = [{"group": GATEWAY_API, "kind": "HTTPRoute", "namespace": "other"}]

SHIPPED = (
    Judged("a valid gateway", gateway(listener())),
    Judged("an upper-case hostname", gateway(listener(hostname="A.example.org"))),
    Judged("an underscore and an exclamation mark", gateway(listener(hostname="bad_host!"))),
    Judged("a long hostname", gateway(listener(hostname="a" * 254))),
    Judged("65 listeners", gateway(*(listener(f"l{index}", port=1 + index) for index in range(65)))),
    Judged("no listener", gateway()),
    Judged("two equal listeners", gateway(listener("a"), listener("b"))),
    Judged("two listeners of one name", gateway(listener("a"), listener("a", port=81))),
    Judged("a listener without a protocol", gateway({"name": "a", "port": 80})),
    Judged("a listener without anything", gateway({})),
    Judged("a port that is text", gateway(listener(port="80"))),
    Judged("a port that is too big", gateway(listener(port=70000))),
    Judged("tls on HTTP", gateway(listener(tls={"certificateRefs": [{"name": "a"}]}))),
    Judged("HTTPS without certificates", gateway(listener(protocol="HTTPS", port=443, tls={"mode": "Terminate"}))),
    Judged("HTTPS with a certificate", gateway(listener(protocol="HTTPS", tls={"certificateRefs": [{"name": "a"}]}))),
    Judged("an unknown field", gateway(listener(), bogus={"a": 1})),
    Judged("no class", build(f"{GATEWAY_API}/v1", "Gateway", "gateways", {"listeners": [listener()]})),
    Judged("no spec", {key: each for key, each in gateway(listener()).items() if key != "spec"}),
    Judged("a spec that is a list", build(f"{GATEWAY_API}/v1", "Gateway", "gateways", [])),
    Judged("an address without a value", gateway(listener(), addresses=[{"type": "Hostname", "value": ""}])),
    Judged("null listeners", gateway(listener(), listeners=None)),
    Judged("a valid route", http_route({"backendRefs": [{"name": "web", "port": 80}]}, hostnames=["a.example.org"])),
    Judged("a route with defaults", http_route({"matches": [{}]})),
    Judged("17 hostnames", http_route({}, hostnames=[f"h{index}.example.org" for index in range(17)])),
    Judged("a hostname that is an address", http_route({}, hostnames=["10.0.0.1", "a..b"])),
    Judged("a backend without a port", http_route({"backendRefs": [{"name": "web"}]})),
    Judged("a negative weight", http_route({"backendRefs": [{"name": "web", "port": 80, "weight": -1}]})),
    Judged("a path without a slash", http_route({"matches": [{"path": {"type": "PathPrefix", "value": "a"}}]})),
    Judged("a path with two slashes", http_route({"matches": [{"path": {"type": "Exact", "value": "/a//b"}}]})),
    Judged("an unknown match", http_route({"matches": [{"path": {"type": "Glob", "value": "/"}}]})),
    Judged(
        "a filter of another type",
        http_route({"matches": [_MATCH], "filters": [{"type": "RequestRedirect", "urlRewrite": {}}]}),
    ),
    Judged("two equal parents", http_route({}, parentRefs=[{"name": "a"}, {"name": "a"}])),
    Judged("a timeout", http_route({"timeouts": {"request": "1s", "backendRequest": "2s"}})),
    Judged("a valid grant", grant({"from": _FROM, "to": [{"group": "", "kind": "Secret"}]})),
    Judged("a grant without a source", grant({"from": [], "to": [{"group": "", "kind": "Secret"}]})),
    Judged("a grant without a target", grant({"from": _FROM})),
    Judged("a valid certificate", certificate()),
    Judged("an unknown field of a certificate", certificate(bogus=1, privateKey={"bogus": 2})),
    Judged("an unknown algorithm", certificate(privateKey={"algorithm": "XYZ", "size": "big"})),
    Judged("a certificate without a secret", build("cert-manager.io/v1", "Certificate", "certificates", {})),
    Judged("a duration that is a number", certificate(duration=5)),
    Judged("an empty issuer", issuer()),
    Judged("an issuer", issuer(selfSigned={})),
    Judged("an acme issuer without a server", issuer(acme={"privateKeySecretRef": {"name": "a"}})),
    Judged("a valid release", release(values={"a": None, "b": [1]})),
    Judged("a release with chart and chartRef", release(chart={"spec": {"chart": "a"}})),
    Judged("a release without a chart", build("helm.toolkit.fluxcd.io/v2", "HelmRelease", "helmreleases", {})),
    Judged("an interval without a unit", release(interval="5")),
    Judged("a negative history", release(maxHistory=-1, timeout="x")),
    Judged("an unknown action", release(upgrade={"crds": "Maybe", "remediation": {"retries": "1"}})),
)

GADGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.judged.example.com"},
    "spec": {
        "group": "judged.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {**STRING, "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
                                    "ratio": {"type": "number", "maximum": 1, "exclusiveMaximum": True},
                                    "replicas": {"type": "integer", "format": "int32"},
                                    "step": {"type": "integer", "multipleOf": 5, "minimum": 5, "maximum": 50},
                                    "port": {
                                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                                        "x-kubernetes-int-or-string": True,
                                        "pattern": "^[0-9]+%?$",
                                    },
                                    "since": {**STRING, "format": "date-time"},
                                    "wait": {**STRING, "format": "duration"},
                                    "address": {**STRING, "format": "ipv4"},
                                    "data": {**STRING, "format": "byte"},
                                    "id": {**STRING, "format": "uuid"},
                                    "mode": {**STRING, "enum": ["a", "b"], "default": "a"},
                                    "level": {"type": "integer", "enum": [1, 2]},
                                    "maybe": {**STRING, "nullable": True},
                                    "tags": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                                    "ports": {
                                        "type": "array",
                                        "maxItems": 3,
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                                        "items": {
                                            "type": "object",
                                            "required": ["port"],
                                            "properties": {
                                                "port": {"type": "integer"},
                                                "protocol": {**STRING, "default": "TCP"},
                                                "limit": {"type": "integer", "maximum": 9},
                                            },
                                            "x-kubernetes-validations": [
                                                {
                                                    "rule": "!has(oldSelf.limit) || (has(self.limit) && "
                                                    "self.limit >= oldSelf.limit)",
                                                    "message": "the limit never shrinks",
                                                    "reason": "FieldValueForbidden",
                                                    "fieldPath": ".limit",
                                                }
                                            ],
                                        },
                                    },
                                    "labels": {
                                        "type": "object",
                                        "maxProperties": 2,
                                        "additionalProperties": {**STRING, "maxLength": 3},
                                    },
                                    "source": {
                                        "type": "object",
                                        "properties": {"git": STRING, "helm": STRING, "oci": STRING},
                                        "oneOf": [{"required": ["git"]}, {"required": ["helm"]}],
                                        "not": {"required": ["oci"]},
                                    },
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "template": {
                                        "type": "object",
                                        "x-kubernetes-embedded-resource": True,
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                    "namespace": STRING,
                                    "foo-bar": STRING,
                                },
                                "x-kubernetes-validations": [
                                    {"rule": "!has(self.__namespace__) || self.__namespace__ != 'kube-system'"},
                                    {
                                        "rule": "!has(self.foo__dash__bar) || self.foo__dash__bar == 'x'",
                                        "messageExpression": "'not x but ' + self.foo__dash__bar",
                                    },
                                    {
                                        "rule": "!has(self.step) || !has(self.level) || self.step > self.level * 10",
                                        "message": "the step must exceed the level",
                                        "reason": "FieldValueRequired",
                                    },
                                    {"rule": "self.name == oldSelf.name", "message": "the name is immutable"},
                                    {"rule": "!has(self.tags) || self.tags[5] == 'x'", "message": "six tags"},
                                ],
                            },
                            "status": {
                                "type": "object",
                                "properties": {"replicas": {"type": "integer"}, "phase": {**STRING, "enum": ["Up"]}},
                            },
                        },
                    }
                },
            }
        ],
    },
}

_PORTS = [{"port": 1, "limit": 5}]
_TOO_LIMITED = [{"port": 1, "limit": 10}]


def _untyped(obj: dict[str, Any], **spec: Any) -> dict[str, Any]:
    changed = copy.deepcopy(obj)
    changed["spec"].update(spec)
    return changed


CUSTOM = (
    Judged("defaults", gadget(ports=[{"port": 1}])),
    Judged("too short", gadget(name="a")),
    Judged("too long", gadget(name="abcdef")),
    Judged("a pattern", gadget(name="AB")),
    Judged("a trailing line break", gadget(name="ab\n")),
    Judged("an exclusive maximum", gadget(ratio=1)),
    Judged("a number that is text", gadget(ratio="x")),
    Judged("more than 32 bits", gadget(replicas=2**31)),
    Judged("negative replicas", gadget(replicas=-1)),
    Judged("no multiple", gadget(step=7)),
    Judged("a fraction", gadget(step=5.5)),
    Judged("a port that is no port", gadget(port="x")),
    Judged("a port that is true", gadget(port=True)),
    Judged("an invalid time", gadget(since="yesterday")),
    Judged("a time that is a number", gadget(since=5)),
    Judged("a valid time", gadget(since="2026-01-02T03:04:05Z", wait="1h5m", address="10.0.0.1", data="YWI=")),
    Judged("invalid formats", gadget(wait="soon", address="10.0.0.256", data="?", id="no")),
    Judged("an unknown mode", gadget(mode="c")),
    Judged("a mode that is a number", gadget(mode=1)),
    Judged("an unknown level", gadget(level=3)),
    Judged("null where it may be", gadget(maybe=None)),
    Judged("null where it may not be", gadget(step=None)),
    Judged("null in a list", gadget(tags=[None])),
    Judged("a repeated tag", gadget(tags=["a", "b", "a", "a"])),
    Judged("a repeated port", gadget(ports=[{"port": 1}, {"port": 1, "protocol": "TCP"}])),
    Judged("too many ports", gadget(ports=[{"port": index} for index in range(4)])),
    Judged("a port that is a number", gadget(ports=[1])),
    Judged("an object for a list", gadget(ports={})),
    Judged("labels", gadget(labels={"a": "abcd", "b": "x", "c": "y"})),
    Judged("no source", gadget(source={})),
    Judged("two sources", gadget(source={"git": "a", "helm": "b"})),
    Judged("a forbidden source", gadget(source={"git": "a", "oci": "b"})),
    Judged("one source", gadget(source={"git": "a", "svn": "b"})),
    Judged("anything", gadget(free={"a": [{"b": None}]})),
    Judged("an embedded object", gadget(template={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})),
    Judged("an embedded object without a kind", gadget(template={"apiVersion": "a/b/c"})),
    Judged("a namespace", gadget(namespace="kube-system")),
    Judged("a composed message", gadget(**{"foo-bar": "y"})),
    Judged("a reason", gadget(step=5, level=2)),
    Judged("an evaluation that fails", gadget(tags=["a"])),
    Judged("many errors", gadget(name="AB", step=7, mode="c", ports=[{}], labels={"a": "abcd"})),
    Judged("a changed name", gadget(name="cd"), old=gadget()),
    Judged("a limit that shrinks", gadget(ports=[{"port": 1, "limit": 4}]), old=gadget(ports=_PORTS)),
    Judged("a limit that grows", gadget(ports=[{"port": 1, "limit": 6}]), old=gadget(ports=_PORTS)),
    Judged("a limit that is too big", gadget(ports=_TOO_LIMITED), old=gadget(ports=_PORTS)),
    Judged("a status through the object", gadget(status={"phase": "Down"}), old=gadget()),
)
