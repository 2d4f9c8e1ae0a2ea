from __future__ import annotations

from typing import Any

from apiserver.meta.resource import Age
from registry.embedded.custom.definition import parse_definition, version_priority


def definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    body = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions), **spec}
    return {"metadata": {"name": "widgets.example.com"}, "spec": body}


def version(name: str = "v1", **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "description": "A widget.", "properties": {"spec": {"type": "object"}}}
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}, **more}


def test_versions_have_the_order_of_kubernetes() -> None:
    names = ["foo10", "v11alpha2", "v3beta1", "v10", "v1", "foo1", "v11beta2", "v2", "v12alpha1", "v10beta3"]
    ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(names, key=version_priority, reverse=True) == ordered


def test_only_served_versions_are_parsed_besides_the_stored_one() -> None:
    parsed = parse_definition(definition(version("v1beta1"), version("v1", served=False, storage=True)))
    assert ([each.name for each in parsed.versions], parsed.storage.name) == (["v1beta1"], "v1")


def test_accepted_names_take_precedence_over_requested_ones() -> None:
    crd = definition(version(storage=True))
    crd["status"] = {"acceptedNames": {**crd["spec"]["names"], "shortNames": ["wd"]}}
    crd["spec"]["names"]["shortNames"] = ["taken"]
    parsed = parse_definition(crd)
    assert parsed.resource(parsed.versions[0]).short_names == ("wd",)


def test_a_table_has_the_declared_columns_after_the_name() -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Hosts", "type": "string", "jsonPath": ".spec.hosts", "priority": 1},
        {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
    ]
    parsed = parse_definition(definition(version(storage=True, additionalPrinterColumns=columns)))
    resource = parsed.resource(parsed.versions[0])
    assert [(each.name, each.priority) for each in resource.columns] == [
        ("Name", 0),
        ("Size", 0),
        ("Hosts", 1),
        ("Since", 0),
        ("On", 0),
    ]
    spec = {"size": 3, "hosts": ["a"], "since": "1970-01-01T00:00:09Z", "on": "yes"}
    assert list(resource.cells({"metadata": {"name": "a"}, "spec": spec})) == ["a", 3, '["a"]', Age(9), None]
    assert list(resource.cells({"metadata": {"name": "a"}})) == ["a", None, None, None, None]


def test_columns_end_before_the_first_one_with_an_unrecognized_path() -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Odd", "type": "string", "jsonPath": ".spec["},
        {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
    ]
    parsed = parse_definition(definition(version(storage=True, additionalPrinterColumns=columns)))
    resource = parsed.resource(parsed.versions[0])
    assert [each.name for each in resource.columns] == ["Name", "Size"]
    assert list(resource.cells({"metadata": {"name": "a"}, "spec": {"size": 3}})) == ["a", 3]


def test_a_version_without_columns_shows_the_age() -> None:
    parsed = parse_definition(definition(version(storage=True)))
    assert [each.name for each in parsed.resource(parsed.versions[0]).columns] == ["Name", "Age"]


def test_a_deprecated_version_has_a_warning() -> None:
    parsed = parse_definition(definition(version(storage=True, deprecated=True)))
    assert parsed.versions[0].deprecation == "example.com/v1 Widget is deprecated"
