"""Ingresses on the embedded cluster: what a kube-apiserver refuses is refused, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from registry.embedded.kinds.networking import INGRESS

BACKEND = {"service": {"name": "dashboard", "port": {"number": 80}}}


def rule(host: str = "dashboard.example.org", **path: Any) -> dict[str, Any]:
    return {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND, **path}]}}


def problems(spec: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in INGRESS.validation.validate({"spec": spec})]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"rules": [rule()]}, id="a rule"),
        pytest.param({"rules": [rule("*.example.org")]}, id="a wildcard"),
        pytest.param({"rules": [{"host": "dashboard.example.org"}]}, id="a host alone"),
        pytest.param({"defaultBackend": BACKEND}, id="a default backend"),
        pytest.param({"rules": [rule(path="", pathType="ImplementationSpecific")]}, id="any path"),
        pytest.param({"rules": [rule(backend={"resource": {"kind": "Bucket", "name": "x"}})]}, id="a resource"),
    ],
)
def test_a_valid_ingress_is_accepted(spec: dict[str, Any]) -> None:
    assert problems(spec) == []


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        pytest.param({}, "spec", "either `defaultBackend` or `rules` must be specified", id="nothing"),
        pytest.param(
            {"rules": [rule("10.0.0.1")]},
            "spec.rules[0].host",
            "must be a DNS name, not an IP address",
            id="an address",
        ),
        pytest.param(
            {"rules": [rule("Upper.example")]}, "spec.rules[0].host", "lowercase RFC 1123 subdomain", id="host"
        ),
        pytest.param({"rules": [{"http": {"paths": []}}]}, "spec.rules[0].http.paths", "Required value", id="no paths"),
        pytest.param(
            {"rules": [rule(path="x")]}, "spec.rules[0].http.paths[0].path", "must be an absolute path", id="a path"
        ),
        pytest.param(
            {"rules": [rule(pathType="Regex")]},
            "spec.rules[0].http.paths[0].pathType",
            "Unsupported value",
            id="a type",
        ),
        pytest.param(
            {"rules": [rule(pathType=None)]}, "spec.rules[0].http.paths[0].pathType", "must be specified", id="no type"
        ),
        pytest.param({"defaultBackend": {}}, "spec.defaultBackend", "backend is required", id="no backend"),
        pytest.param(
            {"defaultBackend": {**BACKEND, "resource": {"kind": "x", "name": "x"}}},
            "spec.defaultBackend",
            "cannot set both resource and service backends",
            id="two backends",
        ),
        pytest.param(
            {"defaultBackend": {"service": {"name": "x"}}},
            "spec.defaultBackend.service",
            "port name or number is required",
            id="no port",
        ),
        pytest.param(
            {"defaultBackend": {"service": {"name": "x", "port": {"name": "x", "number": 1}}}},
            "spec.defaultBackend.service",
            "cannot set both port name & port number",
            id="two ports",
        ),
        pytest.param(
            {"defaultBackend": {"service": {"name": "", "port": {"number": 1}}}},
            "spec.defaultBackend.service.name",
            "Required value",
            id="no name",
        ),
    ],
)
def test_an_invalid_ingress_is_refused_in_kubernetes_words(spec: dict[str, Any], field: str, message: str) -> None:
    [(found, text)] = problems(spec)
    assert found == field
    assert message in text


def test_the_table_has_the_columns_of_kubernetes() -> None:
    spec = {"ingressClassName": "tenant-root", "rules": [rule()], "tls": [{}]}
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example"}]}}
    assert [each.name for each in INGRESS.columns] == ["Class", "Hosts", "Address", "Ports"]
    assert INGRESS.cells({"spec": spec, "status": status}) == [
        "tenant-root",
        "dashboard.example.org",
        "192.0.2.1,lb.example",
        "80, 443",
    ]
    assert INGRESS.cells({"spec": {"defaultBackend": BACKEND}}) == ["<none>", "*", "", "80"]
