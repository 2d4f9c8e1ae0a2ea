"""Defaulting and validation of the core group's kinds, as far as clients can observe it. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object
from registry.embedded.kinds.kind import NoValidation

SERVICE_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
SERVICE_ACCOUNT_UID = "kubernetes.io/service-account.uid"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
NAMESPACE_FINALIZER = "kubernetes"

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_MESSAGE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MAX_KEY = 253
_MAX_DATA = 1024 * 1024
_PORTS = range(1, 65536)
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_BASIC_AUTH = "kubernetes.io/basic-auth"
# one of these keys is enough
_BASIC_AUTH_KEYS = ("username", "password")
_REQUIRED_KEYS: Mapping[str, Sequence[str]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_IMMUTABLE_MESSAGE = "field is immutable when `immutable` is set"


class SecretValidation(NoValidation):
    def default(self, obj: Object) -> None:
        obj["type"] = obj.get("type") or "Opaque"
        written = obj.pop("stringData", None)
        if written:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in written.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}

    def validate(self, obj: Object) -> list[FieldError]:
        data = obj.get("data") or {}
        problems = [*_key_errors("data", data), *_base64_errors("data", data)]
        if sum(len(value) * 3 // 4 for value in data.values()) > _MAX_DATA:
            problems.append(errors.too_long("data", _MAX_DATA))
        if obj["type"] == SERVICE_ACCOUNT_TOKEN:
            annotations = obj["metadata"].get("annotations") or {}
            if not annotations.get(SERVICE_ACCOUNT_NAME):
                problems.append(errors.required(f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]"))
        if obj["type"] == _BASIC_AUTH and any(key in data for key in _BASIC_AUTH_KEYS):
            return problems
        wanted = _BASIC_AUTH_KEYS if obj["type"] == _BASIC_AUTH else _REQUIRED_KEYS.get(obj["type"], ())
        return problems + [errors.required(f"data[{key}]") for key in wanted if key not in data]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        problems = _immutable_errors(new, old, ("data",))
        if new["type"] != old.get("type"):
            problems.append(errors.invalid("type", new["type"], "field is immutable"))
        return problems


class ConfigMapValidation(NoValidation):
    def validate(self, obj: Object) -> list[FieldError]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        problems = [
            *_key_errors("data", data),
            *_key_errors("binaryData", binary),
            *_base64_errors("binaryData", binary),
        ]
        for key in sorted(data.keys() & binary.keys()):
            problems.append(errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size = sum(len(value.encode()) for value in data.values()) + sum(
            len(value) * 3 // 4 for value in binary.values()
        )
        if size > _MAX_DATA:
            problems.append(errors.too_long("", _MAX_DATA))
        return problems

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return _immutable_errors(new, old, ("data", "binaryData"))


class NamespaceValidation(NoValidation):
    """Every Namespace starts with the finalizer `kubernetes` in spec; only the subresource `finalize` can remove it."""

    def initialize(self, obj: Object) -> None:
        spec = obj.get("spec") or {}
        finalizers = [each for each in spec.get("finalizers") or () if each != NAMESPACE_FINALIZER]
        obj["spec"] = {**spec, "finalizers": [*finalizers, NAMESPACE_FINALIZER]}

    def default(self, obj: Object) -> None:
        labels = obj["metadata"].get("labels") or {}
        obj["metadata"]["labels"] = {**labels, NAMESPACE_NAME: obj["metadata"].get("name", "")}


class NamespaceFinalization:
    """spec.finalizers block the removal of a Namespace, too: the finalizer `kubernetes` stands for its contents."""

    def has_finalizers(self, obj: Object) -> bool:
        return bool(obj["metadata"].get("finalizers") or (obj.get("spec") or {}).get("finalizers"))

    def mark_terminating(self, obj: Object) -> None:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}


class ServiceValidation(NoValidation):
    def default(self, obj: Object) -> None:
        spec = obj["spec"] = dict(obj.get("spec") or {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
            spec.setdefault("ipFamilyPolicy", "SingleStack")
            spec.setdefault("ipFamilies", ["IPv4"])
        if spec["type"] in ("LoadBalancer", "NodePort"):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        spec["ports"] = [_port(port) for port in spec.get("ports") or ()]
        if not spec["ports"]:
            del spec["ports"]

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        problems: list[FieldError] = []
        if spec["type"] not in _SERVICE_TYPES:
            problems.append(errors.not_supported("spec.type", spec["type"], _SERVICE_TYPES))
        ports = spec.get("ports") or []
        if spec["type"] == "ExternalName":
            if not spec.get("externalName"):
                problems.append(errors.required("spec.externalName"))
        elif not ports and spec.get("clusterIP") != "None":
            problems.append(errors.required("spec.ports"))
        return problems + _port_errors(ports)


def _port(port: Mapping[str, Any]) -> dict[str, Any]:
    port = {"protocol": "TCP", **port}
    if "port" in port:
        port.setdefault("targetPort", port["port"])
    return port


def _port_errors(ports: list[dict[str, Any]]) -> list[FieldError]:
    problems: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            problems.append(errors.required(f"{path}.name"))
        elif name in names:
            problems.append(FieldError("FieldValueDuplicate", f"{path}.name", name))
        names.add(name)
        if port.get("port") not in _PORTS:
            problems.append(errors.invalid(f"{path}.port", port.get("port"), "must be between 1 and 65535, inclusive"))
    return problems


def _key_errors(field: str, keys: Iterable[str]) -> list[FieldError]:
    problems = []
    for key in keys:
        path = f"{field}[{key}]"
        if len(key) > _MAX_KEY:
            problems.append(errors.invalid(path, key, f"must be no more than {_MAX_KEY} characters"))
        if not _KEY.fullmatch(key):
            problems.append(errors.invalid(path, key, _KEY_MESSAGE))
        if key in (".", ".."):
            problems.append(errors.invalid(path, key, f"must not be '{key}'"))
    return problems


def _base64_errors(field: str, data: Mapping[str, str]) -> list[FieldError]:
    problems = []
    for key, value in data.items():
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            # the message omits the value: it may be a password that was meant for stringData
            problems.append(errors.invalid(f"{field}[{key}]", "<value>", "must be base64-encoded"))
    return problems


def _immutable_errors(new: Object, old: Object, fields: Iterable[str]) -> list[FieldError]:
    if old.get("immutable") is not True:
        return []
    problems = []
    if new.get("immutable") is not True:
        problems.append(errors.forbidden("immutable", _IMMUTABLE_MESSAGE))
    problems += [
        errors.forbidden(field, _IMMUTABLE_MESSAGE)
        for field in fields
        if (new.get(field) or {}) != (old.get(field) or {})
    ]
    return problems
