"""Defaulting and validation of NetworkPolicies, with the messages of kube-apiserver. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object
from registry.embedded.kinds.kind import NoValidation
from registry.embedded.kinds.label_selector_validation import label_selector_errors

_DIRECTIONS = {"ingress": "from", "egress": "to"}
_TYPES = ("Ingress", "Egress")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_MAX_PORT = 65535
_NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


class NetworkPolicyValidation(NoValidation):
    def default(self, obj: Object) -> None:
        """Without policyTypes, a policy is about ingress, and about egress if it has such rules."""
        spec = dict(obj.get("spec") or {})
        spec.setdefault("podSelector", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        obj["spec"] = {field: value for field, value in spec.items() if field not in _DIRECTIONS or value}

    def validate_create(self, obj: Object) -> list[FieldError]:
        return _spec_errors(obj["spec"])

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        # what an earlier version has stored can still be labelled and deleted
        return [] if new["spec"] == old.get("spec") else _spec_errors(new["spec"])


def _spec_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    problems = [*label_selector_errors(spec.get("podSelector") or {}, "spec.podSelector")]
    for direction, side in _DIRECTIONS.items():
        for index, rule in enumerate(spec.get(direction) or ()):
            problems += _rule_errors(rule, side, f"spec.{direction}[{index}]")
    types = spec["policyTypes"]
    if len(types) > len(_TYPES):
        why = "may not specify more than two policyTypes"
        return [*problems, errors.invalid("spec.policyTypes", types, why)]
    for index, each in enumerate(types):
        if each not in _TYPES:
            problems.append(errors.not_supported(f"spec.policyTypes[{index}]", each, _TYPES))
    return problems


def _rule_errors(rule: Mapping[str, Any], side: str, path: str) -> Iterator[FieldError]:
    for index, port in enumerate(rule.get("ports") or ()):
        yield from _port_errors(port, f"{path}.ports[{index}]")
    for index, peer in enumerate(rule.get(side) or ()):
        yield from _peer_errors(peer, f"{path}.{side}[{index}]")


def _port_errors(port: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    protocol, number = port.get("protocol", "TCP"), port.get("port")
    if protocol not in _PROTOCOLS:
        yield errors.not_supported(f"{path}.protocol", protocol, _PROTOCOLS)
    if isinstance(number, int) and not 0 < number <= _MAX_PORT:
        yield errors.invalid(f"{path}.port", number, f"must be between 1 and {_MAX_PORT}, inclusive")


def _peer_errors(peer: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    selectors = [field for field in ("podSelector", "namespaceSelector") if field in peer]
    for field in selectors:
        yield from label_selector_errors(peer[field], f"{path}.{field}")
    block = peer.get("ipBlock")
    if block is not None:
        yield from _block_errors(block, f"{path}.ipBlock")
    if not selectors and block is None:
        yield errors.required(path, "must specify a peer")
    elif selectors and block is not None:
        yield errors.forbidden(path, "may not specify both ipBlock and another peer")


def _block_errors(block: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    cidr = block.get("cidr", "")
    outer = _network(cidr)
    if outer is None:
        yield errors.invalid(f"{path}.cidr", cidr, _NO_CIDR)
        return
    for index, each in enumerate(block.get("except") or ()):
        inner = _network(each)
        if inner is None:
            yield errors.invalid(f"{path}.except[{index}]", each, _NO_CIDR)
        elif inner.version != outer.version or inner == outer or not _contains(outer, inner):
            yield errors.invalid(f"{path}.except[{index}]", each, "must be a strict subset of `cidr`")


def _network(text: object) -> Any:
    try:
        return ip_network(text, strict=False) if isinstance(text, str) and "/" in text else None
    except ValueError:
        return None


def _contains(outer: Any, inner: Any) -> bool:
    return bool(inner.subnet_of(outer))
