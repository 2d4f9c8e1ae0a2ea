from __future__ import annotations

import json
from typing import Any

import pytest

from admission.cel.library.regex import matches
from apiserver.meta.resource import Object
from registry.application.definition import ApplicationDefinition, UnusableDefinition, parse_definition
from tests.application_definitions.samples import definition as real_definition
from tests.application_definitions.samples import definition_names
from tests.registry.application.applications import definition_object


def parsed(**changes: Any) -> ApplicationDefinition:
    """A definition with other annotations, or another part of spec.release."""
    obj = definition_object()
    obj["metadata"]["annotations"] = changes.pop("annotations", None)
    obj["spec"]["release"] |= changes
    return parse_definition(obj, matches)


@pytest.mark.parametrize("name", definition_names())
def test_every_definition_of_cozystack_can_be_served(name: str) -> None:
    assert parse_definition(real_definition(name), matches).name == name


def test_timeouts_come_from_annotations() -> None:
    install, upgrade = "release.cozystack.io/helm-install-timeout", "release.cozystack.io/helm-upgrade-timeout"
    both = parsed(annotations={install: "15m", upgrade: "90s"})
    assert (both.install_timeout, both.upgrade_timeout) == ("15m0s", "1m30s")
    one = parsed(annotations={install: "15m"})
    assert (one.install_timeout, one.upgrade_timeout) == ("15m0s", "15m0s")
    other = parsed(annotations={upgrade: "15m"})
    assert (other.install_timeout, other.upgrade_timeout) == ("", "15m0s")
    assert parsed(annotations={install: "0s"}).install_timeout == ""


def test_expressions_imply_the_strategy_that_evaluates_them() -> None:
    expression = {"apiVersion": "v1", "kind": "Pod", "current": "true"}
    assert parsed(healthCheckExprs=[expression]).wait_strategy == "poller"
    assert parsed(healthCheckExprs=[expression], waitStrategy="legacy").wait_strategy == "legacy"
    assert parsed().wait_strategy == ""


def _change(path: str, value: object) -> Object:
    obj = definition_object()
    part: Any = obj
    *parents, last = path.split(".")
    for name in parents:
        part = part[name]
    part[last] = value
    return obj


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.application.kind", "redis"),
        ("spec.application.kind", "Redis/../x"),
        ("spec.application.kind", None),
        ("spec.application.plural", "Redises"),
        ("spec.application.plural", "a/b"),
        ("spec.application.plural", ""),
        ("spec.application.singular", 5),
        ("spec.application.openAPISchema", "{"),
        ("spec.application.openAPISchema", {"type": "object"}),
        ("spec.release.prefix", "Redis-"),
        ("spec.release.prefix", "-"),
        ("spec.release.prefix", "a" * 53),
        ("spec.release.chartRef", {"kind": "ExternalArtifact"}),
        ("spec.release.waitStrategy", "other"),
        ("spec.release.healthCheckExprs", ["true"]),
        ("spec.release", None),
        ("spec.application", "text"),
        ("spec", None),
        ("metadata.annotations", {"release.cozystack.io/helm-install-timeout": "10us"}),
        ("metadata.annotations", {"release.cozystack.io/helm-install-disable-wait": "yes"}),
    ],
)
def test_a_definition_that_cannot_be_served_says_why(path: str, value: object) -> None:
    with pytest.raises(UnusableDefinition, match=r"spec\.|annotation"):
        parse_definition(_change(path, value), matches)


def test_a_definition_that_differs_for_new_releases_only_is_served_alike() -> None:
    other = parsed(chartRef={"kind": "ExternalArtifact", "name": "other"}, labels={"a": "b"})
    assert parsed().is_served_like(other)
    assert not parsed().is_served_like(parsed(prefix="other-"))


@pytest.mark.parametrize(
    ("release", "why"),
    [
        ({"labels": {f"label{number}": "x" * 50 for number in range(2000)}}, "more than 64 KiB besides openAPISchema"),
        ({"healthCheckExprs": [json.loads('{"a":' * 300 + "1" + "}" * 300)]}, "nests too deeply"),
    ],
)
def test_what_no_configmap_could_keep_is_refused(release: Object, why: str) -> None:
    obj = definition_object()
    obj["spec"]["release"] |= release
    with pytest.raises(UnusableDefinition, match=why):
        parse_definition(obj, matches)
