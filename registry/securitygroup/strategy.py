"""The Strategy of SecurityGroups. Rules that Cilium would accept and then not enforce are refused, all errors
at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from ipaddress import ip_network
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.label_validation import label_value_errors, qualified_name_errors
from apiserver.meta.name_validation import dns1123_subdomain_errors
from apiserver.meta.resource import Object, Resource
from registry.securitygroup.convert import MEMBERSHIP_PREFIX, default_group
from registry.securitygroup.types import security_group_resource

# Cilium's names for peers that are no Pods of a tenant
_ENTITIES = frozenset(
    ("world", "cluster", "kube-apiserver", "host", "remote-node", "health", "init", "unmanaged", "all")
)
_PROTOCOLS = ("TCP", "UDP", "SCTP", "ANY")
_PORT_NAME = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
_MAX_PORT = 65535


class SecurityGroupStrategy:
    """`reserved` are names of the platform's own policies, which a group would keep from being written."""

    def __init__(self, *, reserved: Collection[str] = ()) -> None:
        self._resource = security_group_resource()
        self._reserved = frozenset(reserved)

    @property
    def resource(self) -> Resource:
        return self._resource

    def prepare_for_create(self, obj: Object) -> None:
        default_group(obj)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        default_group(new)

    def name_errors(self, obj: Object) -> list[FieldError]:
        name = obj["metadata"]["name"]
        problems = [*dns1123_subdomain_errors(name), *qualified_name_errors(f"{MEMBERSHIP_PREFIX}{name}")]
        if name in self._reserved:
            problems.append("is the name of a policy of the platform")
        return [errors.invalid("metadata.name", name, why) for why in problems]

    def validate(self, obj: Object) -> list[FieldError]:
        return list(spec_errors(obj.get("spec") or {}))

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new.get("spec") == old.get("spec"):
            return []
        return self.validate(new)

    def is_slow(self) -> bool:
        return False

    def warnings(self, obj: Object) -> list[str]:
        return []


def spec_errors(spec: Object) -> Iterator[FieldError]:
    for number, reference in enumerate(spec.get("attachments") or ()):
        yield from _application_errors(f"spec.attachments[{number}]", reference)
    for number, rule in enumerate(spec.get("ingress") or ()):
        yield from _rule_errors(f"spec.ingress[{number}]", rule, "from")
    for number, rule in enumerate(spec.get("egress") or ()):
        yield from _rule_errors(f"spec.egress[{number}]", rule, "to")
        for index, names in enumerate(rule.get("toFQDNs") or ()):
            if not names.get("matchName") and not names.get("matchPattern"):
                yield errors.required(f"spec.egress[{number}].toFQDNs[{index}]", "must set matchName or matchPattern")


def _rule_errors(path: str, rule: Object, preposition: str) -> Iterator[FieldError]:
    for index, reference in enumerate(rule.get(f"{preposition}App") or ()):
        yield from _application_errors(f"{path}.{preposition}App[{index}]", reference)
    for index, name in enumerate(rule.get(f"{preposition}SG") or ()):
        yield from _group_errors(f"{path}.{preposition}SG[{index}]", name)
    for index, network in enumerate(rule.get(f"{preposition}CIDR") or ()):
        if not _is_network(network):
            yield errors.invalid(f"{path}.{preposition}CIDR[{index}]", network, "must be a valid CIDR or IP address")
    for index, ports in enumerate(rule.get("toPorts") or ()):
        for at, port in enumerate(ports.get("ports") or ()):
            yield from _port_errors(f"{path}.toPorts[{index}].ports[{at}]", port)


def _application_errors(path: str, reference: Object) -> Iterator[FieldError]:
    for field in ("kind", "name"):
        if not reference.get(field):
            yield errors.required(f"{path}.{field}", f"must reference an application {field}")
    for field in ("apiGroup", "kind", "name"):
        value = reference.get(field) or ""
        yield from (errors.invalid(f"{path}.{field}", value, why) for why in label_value_errors(value))
    yield from _entity_errors(f"{path}.name", reference.get("name") or "")


def _group_errors(path: str, name: str) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path, "must name a SecurityGroup")
        return
    yield from (errors.invalid(path, name, why) for why in qualified_name_errors(f"{MEMBERSHIP_PREFIX}{name}"))
    yield from _entity_errors(path, name)


def _entity_errors(path: str, name: str) -> Iterator[FieldError]:
    if name.lower() in _ENTITIES:
        yield errors.invalid(path, name, "must not name a reserved Cilium entity")


def _port_errors(path: str, port: Object) -> Iterator[FieldError]:
    number, protocol = port.get("port") or "", port.get("protocol") or ""
    if number.isascii() and number.isdigit():
        if not 1 <= int(number[:6]) <= _MAX_PORT or len(number) > len(str(_MAX_PORT)):
            yield errors.invalid(f"{path}.port", number, f"port number must be between 1 and {_MAX_PORT}")
    elif number and not _PORT_NAME.fullmatch(number):
        yield errors.invalid(
            f"{path}.port",
            number,
            "must be a port number, or a port name: at most 15 lower case letters, digits and '-', with a letter",
        )
    if protocol and protocol not in _PROTOCOLS:
        yield errors.not_supported(f"{path}.protocol", protocol, _PROTOCOLS)


def _is_network(value: Any) -> bool:
    """As Go's net/netip, which Cilium reads them by: no masks in dotted form."""
    text = str(value)
    address, slash, bits = text.partition("/")
    if slash and not (bits.isascii() and bits.isdigit()):
        return False
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "%" not in address
