"""Validation of Ingresses, with the messages of kube-apiserver. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.name_validation import dns1123_subdomain_errors
from apiserver.meta.resource import Object
from registry.embedded.kinds.kind import NoValidation

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


class IngressValidation(NoValidation):
    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        problems: list[FieldError] = []
        if not spec.get("rules") and "defaultBackend" not in spec:
            why = "either `defaultBackend` or `rules` must be specified"
            problems.append(errors.invalid("spec", spec.get("rules") or [], why))
        for index, rule in enumerate(spec.get("rules") or ()):
            problems += _rule_errors(rule, f"spec.rules[{index}]")
        if "defaultBackend" in spec:
            problems += _backend_errors(spec["defaultBackend"], "spec.defaultBackend")
        return problems


def _rule_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if host := rule.get("host"):
        yield from (errors.invalid(f"{path}.host", host, each) for each in _host_errors(host))
    if "http" not in rule:
        return
    paths = rule["http"].get("paths") or ()
    if not paths:
        yield errors.required(f"{path}.http.paths")
    for index, each in enumerate(paths):
        yield from _path_errors(each, f"{path}.http.paths[{index}]")


def _host_errors(host: str) -> list[str]:
    try:
        ip_address(host)
    except ValueError:
        return dns1123_subdomain_errors(host.removeprefix("*."))
    return ["must be a DNS name, not an IP address"]


def _path_errors(entry: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    type_, value = entry.get("pathType"), entry.get("path", "")
    if type_ is None:
        yield errors.required(f"{path}.pathType", "pathType must be specified")
    elif type_ not in _PATH_TYPES:
        yield errors.not_supported(f"{path}.pathType", type_, _PATH_TYPES)
    elif not value.startswith("/") and (value or type_ != "ImplementationSpecific"):
        yield errors.invalid(f"{path}.path", value, "must be an absolute path")
    yield from _backend_errors(entry.get("backend") or {}, f"{path}.backend")


def _backend_errors(backend: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    service = backend.get("service")
    if service is not None and "resource" in backend:
        yield errors.invalid(path, "", "cannot set both resource and service backends")
    elif service is not None:
        yield from _service_errors(service, f"{path}.service")
    elif "resource" not in backend:
        yield errors.required(path, "resource or service backend is required")


def _service_errors(service: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if not service.get("name"):
        yield errors.required(f"{path}.name")
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        yield errors.invalid(path, "", "cannot set both port name & port number")
    elif not port.get("name") and not port.get("number"):
        yield errors.required(path, "port name or number is required")
