"""The rules of SecurityGroups: what Cilium would not enforce is refused, all errors at once."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.securitygroup.strategy import SecurityGroupStrategy

STRATEGY = SecurityGroupStrategy(reserved=["tenant-isolation"])
APP = {"kind": "Postgres", "name": "db"}


def group(spec: Object, name: str = "web") -> Object:
    return {"metadata": {"name": name, "namespace": "tenant-a"}, "spec": spec}


def ports(**port: str) -> Object:
    return {"ingress": [{"toPorts": [{"ports": [port]}]}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="empty"),
        pytest.param({"attachments": [APP], "ingress": [{"fromApp": [APP], "fromSG": ["a"]}]}, [], id="valid peers"),
        pytest.param(
            {"attachments": [{}]}, ["spec.attachments[0].kind", "spec.attachments[0].name"], id="no kind, no name"
        ),
        pytest.param({"attachments": [{**APP, "kind": "a b"}]}, ["spec.attachments[0].kind"], id="no label value"),
        pytest.param({"attachments": [{**APP, "apiGroup": "-"}]}, ["spec.attachments[0].apiGroup"], id="bad group"),
        pytest.param(
            {"egress": [{"toApp": [{**APP, "name": "World"}]}]}, ["spec.egress[0].toApp[0].name"], id="entity"
        ),
        pytest.param({"ingress": [{"fromSG": ["ALL"]}]}, ["spec.ingress[0].fromSG[0]"], id="entity as group"),
        pytest.param({"ingress": [{"fromSG": [""]}]}, ["spec.ingress[0].fromSG[0]"], id="group without name"),
        pytest.param({"egress": [{"toSG": ["x" * 64]}]}, ["spec.egress[0].toSG[0]"], id="group with a long name"),
        pytest.param(
            {"ingress": [{"fromCIDR": ["10.0.0.0/8", "::/0", "10.0.0.1", "10.1.2.3/16"]}]}, [], id="valid networks"
        ),
        pytest.param(
            {"egress": [{"toCIDR": ["10.0.0.0/33", "x", "", "10.0.0.0/255.0.0.0", "fe80::1%eth0/64"]}]},
            [f"spec.egress[0].toCIDR[{number}]" for number in range(5)],
            id="bad networks",
        ),
        pytest.param(ports(port="1"), [], id="first port"),
        pytest.param(ports(port="65535", protocol="ANY"), [], id="last port"),
        pytest.param(ports(port="https"), [], id="name of a port"),
        pytest.param(ports(), [], id="every port"),
        pytest.param(ports(port="0"), ["spec.ingress[0].toPorts[0].ports[0].port"], id="port 0"),
        pytest.param(ports(port="65536"), ["spec.ingress[0].toPorts[0].ports[0].port"], id="port too large"),
        pytest.param(ports(port="9" * 5000), ["spec.ingress[0].toPorts[0].ports[0].port"], id="port far too large"),
        pytest.param(ports(port="a--b"), ["spec.ingress[0].toPorts[0].ports[0].port"], id="bad name of a port"),
        pytest.param(ports(port="x" * 16), ["spec.ingress[0].toPorts[0].ports[0].port"], id="long name of a port"),
        pytest.param(ports(protocol="ICMP"), ["spec.ingress[0].toPorts[0].ports[0].protocol"], id="protocol"),
        pytest.param(
            {"egress": [{"toFQDNs": [{}, {"matchPattern": "*.a"}]}]}, ["spec.egress[0].toFQDNs[0]"], id="FQDN"
        ),
        pytest.param(
            {"attachments": [{"kind": "A"}], "ingress": [{"fromCIDR": ["x"]}], "egress": [{"toSG": [""]}]},
            ["spec.attachments[0].name", "spec.ingress[0].fromCIDR[0]", "spec.egress[0].toSG[0]"],
            id="all at once",
        ),
    ],
)
def test_a_spec(spec: Object, expected: list[str]) -> None:
    assert [each.field for each in STRATEGY.validate(group(spec))] == expected


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [("web", True), ("a.b", True), ("x" * 64, False), ("Web", False), ("a/b", False), ("tenant-isolation", False)],
)
def test_a_name_is_a_part_of_a_label_and_not_that_of_a_policy_of_the_platform(name: str, is_valid: bool) -> None:
    assert (STRATEGY.name_errors(group({}, name)) == []) == is_valid


def test_invalid_rules_that_do_not_change_are_no_error() -> None:
    bad: Any = {"ingress": [{"fromCIDR": ["x"]}]}
    assert STRATEGY.validate_update(group(bad), group(bad)) == []
    assert STRATEGY.validate_update(group({**bad, "egress": []}), group(bad)) != []
