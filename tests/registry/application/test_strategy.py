from __future__ import annotations

from typing import Any

import pytest

from admission.cel.library.regex import matches
from admission.cel.schema_rules import SchemaRuleCompiler
from apiserver.meta.resource import Object
from registry.application.defaulting import with_defaults
from registry.application.strategy import ApplicationStrategy, name_errors
from registry.application.types import application_resource
from registry.application.validation import ApplicationValidation, undocumented_warnings
from tests.registry.application.applications import SCHEMA, application, definition

FOUND = definition()


@pytest.fixture(scope="module")
def strategy() -> ApplicationStrategy:
    validation = ApplicationValidation(FOUND.schema, compiler=SchemaRuleCompiler(), matches=matches)
    return ApplicationStrategy(application_resource(FOUND), FOUND, validation)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param(None, [], id="no spec"),
        pytest.param({}, [], id="an empty spec"),
        pytest.param({"undocumented": 1, "tls": {"other": 1}}, [], id="undocumented keys"),
        pytest.param({"replicas": None, "tls": None}, [], id="null stands for the default"),
        pytest.param({"size": 5}, [], id="an integer for a quantity"),
        pytest.param({"replicas": "three"}, ["spec.replicas"], id="a wrong type"),
        pytest.param({"replicas": 0}, ["spec.replicas"], id="below the minimum"),
        pytest.param({"size": "five"}, ["spec.size"], id="a wrong pattern"),
        pytest.param({"resourcesPreset": "giant"}, ["spec.resourcesPreset"], id="not in the enum"),
        pytest.param({"hosts": [{}]}, ["spec.hosts[0].name"], id="a required field is missing"),
        pytest.param({"users": {"a": {"admin": 1}}}, ["spec.users.a.admin"], id="in a map"),
        pytest.param([], ["spec"], id="a list"),
        pytest.param("text", ["spec"], id="a text"),
    ],
)
def test_a_new_application_is_validated_with_its_defaults(
    strategy: ApplicationStrategy, spec: Any, fields: list[str]
) -> None:
    obj = application(spec=spec) if spec is not None else application()
    assert [each.field for each in strategy.validate(obj)] == fields


def updated(strategy: ApplicationStrategy, stored: Object, spec: Object) -> list[str]:
    old = {"spec": with_defaults(SCHEMA, stored)}
    return [each.field for each in strategy.validate_update(application(spec=spec), old)]


def test_an_update_is_judged_by_what_it_changes(strategy: ApplicationStrategy) -> None:
    invalid = {"replicas": "three", "hosts": [{}]}
    assert updated(strategy, invalid, {**invalid, "size": "2Gi"}) == []
    assert updated(strategy, invalid, {**invalid, "replicas": "four"}) == ["spec.replicas"]
    assert updated(strategy, invalid, {}) == []


def test_the_rules_of_the_schema_compare_with_the_stored_value(strategy: ApplicationStrategy) -> None:
    assert updated(strategy, {"storageClass": "a"}, {"storageClass": "a"}) == []
    assert updated(strategy, {"storageClass": "a"}, {"storageClass": "b"}) == ["spec.storageClass"]
    assert updated(strategy, {"storageClass": "a"}, {}) == ["spec.storageClass"]
    assert not strategy.is_slow()


def test_a_small_spec_that_needs_many_checks_is_validated_in_a_thread_and_within_bounds() -> None:
    choices = {"type": "array", "items": {"anyOf": [{"pattern": f"^a{number}$"} for number in range(100)]}}
    validation = ApplicationValidation(
        {"type": "object", "properties": {"list": choices}}, compiler=SchemaRuleCompiler(), matches=matches
    )
    assert ApplicationStrategy(application_resource(FOUND), FOUND, validation).is_slow()
    assert validation.create_errors({"list": ["a99"] * 200}) == []
    [error] = validation.create_errors({"list": ["a99"] * 201})
    assert error.field == "spec"
    assert "take more than 20000 checks" in error.message


def test_status_and_app_version_are_not_the_clients(strategy: ApplicationStrategy) -> None:
    new = {**application(spec={}), "status": {"version": "fake"}, "appVersion": "1"}
    strategy.prepare_for_create(new)
    assert new == application(spec={})
    strategy.prepare_for_update(new, {"status": {"version": "real"}})
    assert new["status"] == {"version": "real"}


def test_clients_are_warned_of_undocumented_keys_and_earlier_presets(strategy: ApplicationStrategy) -> None:
    found = strategy.warnings(application(spec={"other": 1, "resourcesPreset": "nano", "tls": {"x": 1}}))
    assert found == [
        'unknown field "spec.other": it is kept, and the chart decides',
        'unknown field "spec.tls.x": it is kept, and the chart decides',
        'spec.resourcesPreset: "nano" is an earlier name of "t1.nano"',
    ]
    assert len(strategy.warnings(application(spec={f"a{n}": 1 for n in range(100)}))) == 20
    assert strategy.warnings(application()) == []


def test_a_misspelt_name_is_not_compared_with_thousands_of_names() -> None:
    def hint(number: int) -> str:
        properties: Object = {f"replicas{each}": {} for each in range(number)}
        return undocumented_warnings({"properties": properties}, {"replicsa7": 1})[0]

    assert hint(100).endswith('; did you mean "spec.replicas7"?')
    assert hint(5_000).endswith("the chart decides")


def test_a_long_misspelt_name_is_not_compared_with_hundreds_of_long_names() -> None:
    """Twenty such names took eight seconds."""

    def hint(number: int) -> str:
        properties: Object = {f"{'ab' * 28}{each:03}": {} for each in range(number)}
        return undocumented_warnings({"properties": properties}, {f"{'ab' * 28}00x": 1})[0]

    assert "did you mean" in hint(10)
    assert hint(500).endswith("the chart decides")


@pytest.mark.parametrize(
    ("name", "prefix", "problems"),
    [
        ("cache", "redis-", 0),
        ("a" * 47, "redis-", 0),
        ("a" * 48, "redis-", 1),
        ("a" * 53, "", 0),
        ("a" * 54, "", 1),
        ("1a", "", 1),
        ("a.b", "", 1),
        ("A", "", 1),
        ("a-", "", 1),
        ("A" * 54, "", 2),
    ],
)
def test_names_fit_into_those_of_helm_releases(name: str, prefix: str, problems: int) -> None:
    found = name_errors(name, prefix)
    assert [each.field for each in found] == ["metadata.name"] * problems
