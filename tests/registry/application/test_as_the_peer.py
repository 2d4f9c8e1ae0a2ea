"""The HelmRelease that we store for each kind, and what we show of it, equal those of cozystack-api.

golden/peer.json was written by its own conversion and defaulting (pkg/registry/apps/application), for specs that have
every second documented key.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from admission.cel.library.regex import matches
from apiserver.meta.resource import Object
from registry.application.convert import ReleaseDefaults, to_application, to_new_release
from registry.application.definition import ApplicationDefinition, parse_definition
from registry.tenant.convert import to_release, to_tenant
from registry.tenant.release_settings import ReleaseSettings
from tests.application_definitions.samples import definition, definition_names

GOLDEN = {each["definition"]: each for each in json.loads((Path(__file__).parent / "golden" / "peer.json").read_text())}
METADATA = {
    "name": "example",
    "namespace": "tenant-acme",
    "labels": {"team": "x", "example.org/stage": "test"},
    "annotations": {"example.org/note": "hello"},
}


def parsed(name: str) -> ApplicationDefinition:
    return parse_definition(definition(name), matches)


def stored(name: str) -> Object:
    obj = {"metadata": METADATA, "spec": GOLDEN[name]["spec"]}
    return to_new_release(obj, parsed(name), ReleaseDefaults())


def test_every_kind_has_a_golden_release() -> None:
    assert sorted(GOLDEN) == definition_names()


@pytest.mark.parametrize("name", definition_names())
def test_the_stored_release_is_that_of_the_peer(name: str) -> None:
    assert stored(name) == GOLDEN[name]["release"]


@pytest.mark.parametrize("name", definition_names())
def test_the_shown_spec_is_that_of_the_peer(name: str) -> None:
    assert to_application(stored(name), parsed(name))["spec"] == GOLDEN[name]["shown"]


def test_a_tenant_is_stored_and_shown_as_by_the_peer_although_it_has_a_conversion_of_its_own() -> None:
    obj = {"metadata": METADATA, "spec": GOLDEN["tenant"]["spec"]}
    release = to_release(obj, None, ReleaseSettings())
    assert release == GOLDEN["tenant"]["release"]
    assert to_tenant(release)["spec"] == GOLDEN["tenant"]["shown"]
