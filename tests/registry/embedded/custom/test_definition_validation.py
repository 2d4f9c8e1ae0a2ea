"""The validation of CustomResourceDefinitions. The texts are those of apiextensions-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from registry.embedded.custom.definition_validation import definition_update_errors
from registry.embedded.custom.names import with_accepted_names
from tests.registry.embedded.custom.definitions import errors_of, version, widgets, with_schema

LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def named(**names: Any) -> dict[str, Any]:
    crd = widgets()
    crd["spec"]["names"].update(names)
    return crd


def test_a_valid_definition_has_no_errors() -> None:
    columns = [{"name": "Size", "type": "integer", "format": "int32", "jsonPath": ".spec.size"}]
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".spec.s"}
    first = version(
        additionalPrinterColumns=columns,
        selectableFields=[{"jsonPath": ".spec.size"}],
        subresources={"status": {}, "scale": scale},
    )
    other = version(
        "v2",
        deprecated=True,
        deprecationWarning="use v1",
        schema=with_schema(a={"type": "string"})["spec"]["versions"][0]["schema"],
    )
    assert errors_of(widgets(first, other, conversion={"strategy": "None"})) == []


@pytest.mark.parametrize(
    ("crd", "expected"),
    [
        pytest.param(widgets(group=""), ["spec.group: Required value"], id="no group"),
        pytest.param(
            widgets(group="example"),
            ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
            id="a group without a dot",
        ),
        pytest.param(widgets(scope=""), ["spec.scope: Required value"], id="no scope"),
        pytest.param(
            widgets(scope="Everywhere"),
            ['spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"'],
            id="an unknown scope",
        ),
        pytest.param(
            widgets(version("V1")),
            [f'spec.versions[0].name: Invalid value: "V1": {LABEL_RULE}'],
            id="a version that is no label",
        ),
        pytest.param(
            widgets(version(deprecationWarning="old")),
            ['spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'],
            id="a warning about a version that is not deprecated",
        ),
        pytest.param(
            widgets(conversion={"strategy": "Webhook"}),
            [
                (
                    'spec.conversion.strategy: Invalid value: "Webhook": webhooks are not called by this server: the '
                    "strategy must be None"
                )
            ],
            id="conversion by a webhook",
        ),
        pytest.param(
            widgets(conversion={"strategy": "Magic"}),
            ['spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"'],
            id="an unknown conversion",
        ),
        pytest.param(
            widgets(conversion={"strategy": "None", "webhook": {"clientConfig": {}}}),
            ["spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook"],
            id="a webhook without its strategy",
        ),
        pytest.param(
            widgets(preserveUnknownFields=True),
            [
                (
                    "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
                    "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                )
            ],
            id="unknown fields of whole objects",
        ),
        pytest.param(
            widgets(version(schema=None)),
            ["spec.versions[0].schema.openAPIV3Schema: Required value"],
            id="no schema",
        ),
        pytest.param(
            widgets(version(schema={"openAPIV3Schema": {}})),
            ["spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"],
            id="a schema that is not structural",
        ),
    ],
)
def test_an_invalid_definition_gets_an_error_of_the_field(crd: dict[str, Any], expected: list[str]) -> None:
    assert errors_of(crd) == expected


@pytest.mark.parametrize(
    ("versions", "problem"),
    [
        pytest.param([version(), version()], "must contain unique version names", id="a name twice"),
        pytest.param(
            [version(), version("v2", storage=True)],
            "must have exactly one version marked as storage version",
            id="two stored versions",
        ),
    ],
)
def test_versions_have_distinct_names_and_one_is_stored(versions: list[dict[str, Any]], problem: str) -> None:
    (found,) = errors_of(widgets(*versions))
    assert found.startswith("spec.versions: Invalid value: ")
    assert found.endswith(problem)


@pytest.mark.parametrize(
    ("crd", "expected"),
    [
        *(
            pytest.param(named(**{field: ""}), [f"spec.names.{field}: Required value"], id=f"no {field}")
            for field in ("plural", "singular", "kind", "listKind")
        ),
        pytest.param(
            named(plural="Widgets"), [f'spec.names.plural: Invalid value: "Widgets": {LABEL_RULE}'], id="case"
        ),
        pytest.param(
            named(singular="w" * 64),
            [f'spec.names.singular: Invalid value: "{"w" * 64}": must be no more than 63 characters'],
            id="a long name",
        ),
        pytest.param(
            named(kind="Wid.get"),
            [
                (
                    'spec.names.kind: Invalid value: "Wid.get": may have mixed case, but should otherwise match: '
                    f"{LABEL_RULE}"
                )
            ],
            id="a kind with a dot",
        ),
        pytest.param(
            named(shortNames=["wd", "W"]),
            [f'spec.names.shortNames[1]: Invalid value: "W": {LABEL_RULE}'],
            id="a short name",
        ),
        pytest.param(
            named(listKind="Widget"),
            ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
            id="a kind of objects and lists",
        ),
    ],
)
def test_names_are_labels(crd: dict[str, Any], expected: list[str]) -> None:
    assert errors_of(crd) == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        pytest.param({"type": "string", "jsonPath": ".a"}, ["name: Required value"], id="no name"),
        pytest.param(
            {"name": "A", "jsonPath": ".a"},
            ["type: Required value: must be one of boolean,date,integer,number,string"],
            id="no type",
        ),
        pytest.param(
            {"name": "A", "type": "object", "jsonPath": ".a"},
            ['type: Invalid value: "object": must be one of boolean,date,integer,number,string'],
            id="an unknown type",
        ),
        pytest.param(
            {"name": "A", "type": "string", "format": "uuid", "jsonPath": ".a"},
            ['format: Invalid value: "uuid": must be one of byte,date,date-time,double,float,int32,int64,password'],
            id="an unknown format",
        ),
        pytest.param({"name": "A", "type": "string"}, ["JSONPath: Required value"], id="no path"),
        pytest.param(
            {"name": "A", "type": "string", "jsonPath": "{.spec.a}"},
            ['JSONPath: Invalid value: "{.spec.a}": must be a simple json path starting with .'],
            id="a path in braces",
        ),
    ],
)
def test_a_column_has_a_name_a_type_and_a_path(column: dict[str, Any], expected: list[str]) -> None:
    found = errors_of(widgets(version(additionalPrinterColumns=[column])))
    assert found == [f"spec.additionalPrinterColumns[0].{each}" for each in expected]


def test_parts_that_differ_between_versions_are_reported_with_their_version() -> None:
    columns = [{"name": "A", "type": "string"}]
    found = errors_of(widgets(version(), version("v2", additionalPrinterColumns=columns)))
    assert found == ["spec.versions[1].additionalPrinterColumns[0].JSONPath: Required value"]


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        pytest.param({}, ["specReplicasPath: Required value", "statusReplicasPath: Required value"], id="no paths"),
        pytest.param(
            {"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"},
            ['specReplicasPath: Invalid value: ".status.n": should be a json path under .spec'],
            id="replicas of the spec in the status",
        ),
        pytest.param(
            {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".metadata.s"},
            ['labelSelectorPath: Invalid value: ".metadata.s": should be a json path under either .spec or .status'],
            id="a selector in the metadata",
        ),
    ],
)
def test_the_scale_subresource_reads_the_spec_and_the_status(scale: dict[str, Any], expected: list[str]) -> None:
    found = errors_of(widgets(version(subresources={"scale": scale})))
    assert found == [f"spec.subresources.scale.{each}" for each in expected]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("", "Required value", id="no path"),
        pytest.param(
            ".spec.other",
            'Invalid value: ".spec.other": is an invalid path: does not refer to a valid field',
            id="an undeclared field",
        ),
        pytest.param(
            ".spec",
            'Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and '
            "strings with formats are allowed.",
            id="an object",
        ),
    ],
)
def test_selectable_fields_are_declared_scalars(path: str, expected: str) -> None:
    found = errors_of(widgets(version(selectableFields=[{"jsonPath": path}])))
    assert found == [f"spec.selectableFields[0].jsonPath: {expected}"]


def test_selectable_fields_are_distinct() -> None:
    fields = [{"jsonPath": ".spec.size"}] * 2
    assert errors_of(widgets(version(selectableFields=fields))) == [
        'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.size"'
    ]


def test_a_version_has_at_most_eight_selectable_fields() -> None:
    crd = with_schema(**{f"f{number}": {"type": "string"} for number in range(9)})
    crd["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": f".spec.f{number}"} for number in range(9)]
    assert errors_of(crd) == ["spec.selectableFields: Too many: 9: must have at most 8 items"]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(["v1"], [], id="a declared version"),
        pytest.param([], ["storedVersions: Invalid value: []: must have at least one stored version"], id="none"),
        pytest.param(
            ["v0", "v1"], ['storedVersions[0]: Invalid value: "v0": missing from spec.versions; v0 was'], id="v0"
        ),
    ],
)
def test_a_stored_version_remains_declared(stored: list[str], expected: list[str]) -> None:
    crd = widgets()
    crd["status"]["storedVersions"] = stored
    found = errors_of(crd)
    assert len(found) == len(expected)
    assert all(one.startswith(f"status.{start}") for one, start in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("group", "annotation", "expected"),
    [
        pytest.param("example.com", None, "", id="a group of others"),
        pytest.param("x.k8s.io", "https://example.com/1", "", id="approved"),
        pytest.param("x.kubernetes.io", "unapproved, a test", "", id="explicitly unapproved"),
        pytest.param("x.k8s.io", None, "Required value: protected groups must have approval annotation", id="neither"),
        pytest.param("k8s.io", "yes", 'Invalid value: "yes": protected groups must have', id="another text"),
    ],
)
def test_groups_of_kubernetes_need_an_approval(group: str, annotation: str | None, expected: str) -> None:
    crd = widgets(group=group)
    if annotation is not None:
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
    found = [each for each in errors_of(crd) if not each.startswith("spec.group")]
    assert len(found) == bool(expected)
    assert all(f"metadata.annotations[api-approved.kubernetes.io]: {expected}" in each for each in found)


@pytest.mark.parametrize(
    ("change", "established", "expected"),
    [
        pytest.param({"group": "other.com"}, False, ["spec.group"], id="the group"),
        pytest.param({"scope": "Cluster"}, False, [], id="the scope before it is established"),
        pytest.param({"scope": "Cluster"}, True, ["spec.scope"], id="the scope"),
        pytest.param({"names": {"plural": "gizmos", "kind": "Widget"}}, False, ["spec.names.plural"], id="the plural"),
        pytest.param({"names": {"plural": "widgets", "kind": "W"}}, False, [], id="the kind before it is established"),
        pytest.param({"names": {"plural": "widgets", "kind": "W"}}, True, ["spec.names.kind"], id="the kind"),
        pytest.param({"versions": [version("v2", storage=True)]}, True, [], id="the versions"),
    ],
)
def test_the_identity_of_a_kind_cannot_be_changed(
    change: dict[str, Any], established: bool, expected: list[str]
) -> None:
    old = with_accepted_names(widgets(), ()) if established else widgets()
    found = definition_update_errors({**old, "spec": {**old["spec"], **change}}, old)
    assert [each.field for each in found] == expected
    assert all(each.detail == "field is immutable" for each in found)
