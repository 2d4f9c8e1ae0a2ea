"""Converts a CiliumNetworkPolicy to a SecurityGroup, and back. Pure; malformed parts are omitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from apiserver.json.values import deep_copy
from apiserver.meta.resource import Object
from registry.application.release_metadata import parse_json_annotation, string_entries
from registry.cluster.interface import ClusterResource
from registry.names import APPLICATION_GROUP_LABEL, APPLICATION_KIND_LABEL, APPLICATION_NAME_LABEL
from registry.names import GROUP as APPLICATION_GROUP
from registry.projection.metadata import Hidden, shown_metadata, stored_metadata

GROUP = "sdn.cozystack.io"
VERSION = "v1alpha1"
KIND = "SecurityGroup"
PLURAL = "securitygroups"
POLICIES = ClusterResource("cilium.io", "v2", "ciliumnetworkpolicies", "CiliumNetworkPolicy")
GROUP_LABEL = "sdn.cozystack.io/securitygroup"
GROUP_SELECTOR = f"{GROUP_LABEL}=true"
ATTACHMENTS_ANNOTATION = "sdn.cozystack.io/attachments"
MEMBERSHIP_PREFIX = "securitygroup.sdn.cozystack.io/"
"""With the name of a group, the label of the Pods that belong to it, which securitygroup-controller sets."""
MEMBERSHIP_FINALIZER = "sdn.cozystack.io/securitygroup-membership"
"""Of securitygroup-controller, which removes these labels from the Pods."""

_HIDDEN = Hidden(
    label=GROUP_LABEL, annotations=frozenset((ATTACHMENTS_ANNOTATION,)), kept_finalizer=MEMBERSHIP_FINALIZER
)
_APPLICATION_LABELS = {
    APPLICATION_GROUP_LABEL: "apiGroup",
    APPLICATION_KIND_LABEL: "kind",
    APPLICATION_NAME_LABEL: "name",
}
# the fields of a rule for applications, for groups, and for both in a policy; then those that are the same in both
_DIRECTIONS: Mapping[str, tuple[str, str, str, Sequence[str]]] = {
    "ingress": ("fromApp", "fromSG", "fromEndpoints", ("fromCIDR", "toPorts")),
    "egress": ("toApp", "toSG", "toEndpoints", ("toCIDR", "toFQDNs", "toPorts")),
}


class GroupConversion:
    """The Conversion of SecurityGroups."""

    def shows(self, stored: Object) -> bool:
        return string_entries(stored["metadata"].get("labels")).get(GROUP_LABEL) == "true"

    def to_object(self, stored: Object) -> Object:
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "metadata": shown_metadata(stored["metadata"], _HIDDEN),
            "spec": to_shown_spec(stored),
        }

    def to_new(self, obj: Object) -> Object:
        return {
            "apiVersion": POLICIES.api_version,
            "kind": POLICIES.kind,
            "metadata": _metadata(obj, {}),
            "spec": to_policy_spec(obj["metadata"]["name"], obj.get("spec") or {}),
        }

    def to_changed(self, obj: Object, current: Object) -> Object:
        """The rules are written only if they change, so that what others have added to the policy stays until then."""
        changed = {**deep_copy(current), "metadata": _metadata(obj, current["metadata"])}
        name, wanted = obj["metadata"]["name"], obj.get("spec") or {}
        if wanted != to_shown_spec(current):
            changed["spec"] = to_policy_spec(name, wanted)
        else:
            changed["spec"] = {**_mapping(current.get("spec")), "endpointSelector": member_selector(name)}
        same = {**current, "metadata": {**current["metadata"]}}
        same["metadata"].pop("managedFields", None)
        return current if changed == same else changed


def member_selector(name: str) -> Object:
    """Selects the Pods of a group."""
    return {"matchLabels": {f"{MEMBERSHIP_PREFIX}{name}": ""}}


def to_policy_spec(name: str, spec: Mapping[str, Any]) -> Object:
    """`ingress` is always written: without it, Cilium would not deny what no rule allows."""
    policy: Object = {"endpointSelector": member_selector(name), "ingress": []}
    for direction in _DIRECTIONS:
        if isinstance(spec.get(direction), list):
            policy[direction] = [_to_policy_rule(rule, direction) for rule in spec[direction]]
    return policy


def to_shown_spec(policy: Object) -> Object:
    spec: Object = {}
    annotations = string_entries(policy["metadata"].get("annotations"))
    attachments = parse_json_annotation(annotations, ATTACHMENTS_ANNOTATION)
    if isinstance(attachments, list) and attachments:
        spec["attachments"] = attachments
    stored = _mapping(policy.get("spec"))
    for direction in _DIRECTIONS:
        rules = stored.get(direction)
        # an empty ingress may not have been sent; an empty egress was, and denies everything
        if isinstance(rules, list) and (rules or direction == "egress"):
            spec[direction] = [_to_shown_rule(_mapping(rule), direction) for rule in rules]
    return spec


def default_group(obj: Object) -> None:
    """Completes references to applications, and spells protocols as Cilium does, in place."""
    spec = _mapping(obj.get("spec"))
    for reference in _objects(spec.get("attachments")):
        reference["apiGroup"] = reference.get("apiGroup") or APPLICATION_GROUP
    for direction, (applications, *_) in _DIRECTIONS.items():
        for rule in _objects(spec.get(direction)):
            for reference in _objects(rule.get(applications)):
                reference["apiGroup"] = reference.get("apiGroup") or APPLICATION_GROUP
            _spell_protocols(rule)


def _spell_protocols(rule: Object) -> None:
    for ports in _objects(rule.get("toPorts")):
        for port in _objects(ports.get("ports")):
            if isinstance(port.get("protocol"), str):
                port["protocol"] = port["protocol"].upper()


def _metadata(obj: Object, current: Mapping[str, Any]) -> Object:
    metadata = stored_metadata(obj["metadata"], current, _HIDDEN)
    annotations = {key: text for key, text in metadata.get("annotations", {}).items() if key != ATTACHMENTS_ANNOTATION}
    if attachments := (obj.get("spec") or {}).get("attachments"):
        annotations[ATTACHMENTS_ANNOTATION] = orjson.dumps(attachments).decode()
    metadata.pop("annotations", None)
    return metadata | ({"annotations": annotations} if annotations else {})


def _to_policy_rule(rule: Mapping[str, Any], direction: str) -> Object:
    applications, groups, endpoints, others = _DIRECTIONS[direction]
    selectors = [_application_selector(each) for each in _objects(rule.get(applications))]
    selectors += [member_selector(each) for each in rule.get(groups) or ()]
    policy: Object = {endpoints: selectors} if selectors else {}
    return policy | {field: deep_copy(rule[field]) for field in others if rule.get(field)}


def _to_shown_rule(rule: Mapping[str, Any], direction: str) -> Object:
    """Selectors of another form are somebody else's, and not shown."""
    applications, groups, endpoints, others = _DIRECTIONS[direction]
    labels = [string_entries(each.get("matchLabels")) for each in _objects(rule.get(endpoints))]
    shown: Object = {}
    if found := [_application(each) for each in labels if each.keys() == _APPLICATION_LABELS.keys()]:
        shown[applications] = found
    keys = [next(iter(each)) for each in labels if len(each) == 1]
    if names := [key.removeprefix(MEMBERSHIP_PREFIX) for key in keys if key.startswith(MEMBERSHIP_PREFIX)]:
        shown[groups] = names
    return shown | {field: deep_copy(rule[field]) for field in others if rule.get(field)}


def _application_selector(reference: Mapping[str, Any]) -> Object:
    labels = {label: reference.get(field) or "" for label, field in _APPLICATION_LABELS.items()}
    return {"matchLabels": labels | {APPLICATION_GROUP_LABEL: reference.get("apiGroup") or APPLICATION_GROUP}}


def _application(labels: Mapping[str, str]) -> Object:
    return {field: labels[label] for label, field in _APPLICATION_LABELS.items()}


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> Sequence[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()
