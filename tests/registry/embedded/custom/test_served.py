"""The storages of a definition."""

from __future__ import annotations

from pathlib import Path

from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver.storage.watch_cache import WatchCache
from registry.embedded.custom.definition import CustomDefinition, parse_definition
from registry.embedded.custom.served import ServedCustomKind, serve_definition
from registry.sqlite.database import Database
from tests.cpu_time import least_ratio
from tests.registry.embedded.custom.definitions import version, widgets


def definition_with(versions: int, *, schemas: int) -> CustomDefinition:
    """The last fields differ in `schemas` versions."""
    found = []
    for number in range(versions):
        lengths = {f"f{field}": {"type": "string", "maxLength": 10} for field in range(30)}
        lengths["last"] = {"type": "string", "maxLength": 1 + number % schemas}
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": lengths}}}
        found.append(version(f"v{number + 1}", schema={"openAPIV3Schema": schema}))
    crd = widgets(*found)
    crd["metadata"]["resourceVersion"] = "5"
    crd["status"]["acceptedNames"] = crd["spec"]["names"]
    return parse_definition(crd)


def serve(definition: CustomDefinition) -> ServedCustomKind:
    return serve_definition(
        definition,
        database=Database(Path("never-opened.db")),
        caches=WatchCache,
        compiler=SchemaRuleCompiler(),
        stored_since=5,
        is_terminating=lambda: False,
    )


def test_versions_with_one_schema_share_their_validation() -> None:
    validations = [each.validation for each in serve(definition_with(6, schemas=2)).versions]
    assert len(set(map(id, validations))) == 2


def test_the_time_to_serve_a_definition_is_linear_in_its_versions() -> None:
    """The event loop waits meanwhile."""
    few, many = definition_with(50, schemas=50), definition_with(200, schemas=200)
    assert least_ratio(lambda: serve(many), lambda: serve(few), below=7) < 7
