"""A definition gets the names that it requests, unless another one of its group has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.meta.resource import GroupKind, GroupResource, Resource
from registry.embedded.custom.names import BuiltInNames, taken_names, with_accepted_names
from tests.registry.embedded.custom.definitions import definition

NAMES = {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"}
SINCE = "2026-01-01T00:00:00Z"


def accepted(plural: str = "widgets", kind: str = "Widget", **spec: Any) -> dict[str, Any]:
    """A definition whose names have been accepted."""
    return with_accepted_names(definition(plural, kind, **spec), ())


def named(**names: Any) -> dict[str, Any]:
    """The definition of Widgets, with these names instead of the usual ones."""
    crd = definition("widgets", "Widget")
    crd["spec"]["names"].update(names)
    return crd


def conditions(crd: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in crd["status"]["conditions"]}


def test_a_definition_without_rivals_gets_all_names_and_is_established() -> None:
    crd = with_accepted_names(named(shortNames=["wd"], categories=["all"]), [accepted("gadgets", "Gadget")])
    assert crd["status"]["acceptedNames"] == crd["spec"]["names"]
    assert conditions(crd) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }


@pytest.mark.parametrize(
    ("names", "other", "reason", "message"),
    [
        pytest.param({}, accepted("widgets", "Gizmo"), "PluralConflict", '"widgets" is already in use', id="plural"),
        pytest.param(
            {"singular": "gadgets"},
            accepted("gadgets", "Gadget"),
            "SingularConflict",
            '"gadgets" is already in use',
            id="a singular that is a plural",
        ),
        pytest.param(
            {}, accepted("gadgets", "Widget"), "ListKindConflict", '"WidgetList" is already in use', id="kind"
        ),
        pytest.param(
            {"kind": "GadgetList"},
            accepted("gadgets", "Gadget"),
            "KindConflict",
            '"GadgetList" is already in use',
            id="a kind that is a list kind",
        ),
        pytest.param(
            {"shortNames": ["gadget"]},
            accepted("gadgets", "Gadget"),
            "ShortNamesConflict",
            '"gadget" is already in use',
            id="a short name that is a singular",
        ),
        pytest.param(
            {"shortNames": ["gadget", "wd", "gadgets"]},
            accepted("gadgets", "Gadget"),
            "ShortNamesConflict",
            '["gadget" is already in use, "gadgets" is already in use]',
            id="several short names",
        ),
    ],
)
def test_a_name_of_another_definition_is_a_conflict(
    names: dict[str, Any], other: dict[str, Any], reason: str, message: str
) -> None:
    crd = with_accepted_names(named(**names), [other])
    assert conditions(crd) == {
        "NamesAccepted": ("False", reason, message),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([accepted(group="other.example.com")], id="another group"),
        pytest.param([definition("widgets", "Widget")], id="requested by another, but not accepted"),
    ],
)
def test_names_conflict_only_with_accepted_names_of_the_group(others: Sequence[dict[str, Any]]) -> None:
    crd = with_accepted_names(definition("widgets", "Widget"), others)
    assert conditions(crd)["NamesAccepted"][0] == "True"


def test_names_without_a_conflict_are_accepted_beside_those_with_one() -> None:
    crd = with_accepted_names(named(singular="gadget", categories=["all"]), [accepted("gadgets", "Gadget")])
    expected = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "categories": ["all"]}
    assert crd["status"]["acceptedNames"] == expected


def test_accepted_names_stay_in_use_while_a_conflict_lasts() -> None:
    before = accepted()
    before["spec"] = named(singular="gadget", shortNames=["gadget"])["spec"]
    crd = with_accepted_names(before, [accepted("gadgets", "Gadget")])
    assert crd["status"]["acceptedNames"]["singular"] == "widget"
    assert "shortNames" not in crd["status"]["acceptedNames"]


def test_a_name_that_is_no_longer_requested_is_not_accepted_any_more() -> None:
    before = with_accepted_names(named(shortNames=["wd"], categories=["all"]), ())
    before["spec"] = definition("widgets", "Widget")["spec"]
    assert with_accepted_names(before, ())["status"]["acceptedNames"] == before["spec"]["names"]


def test_an_unchanged_outcome_keeps_its_times_and_the_argument_is_not_changed() -> None:
    once = accepted()
    before = {**once, "status": {**once["status"], "conditions": [dict(each) for each in once["status"]["conditions"]]}}
    for each in once["status"]["conditions"]:
        each["lastTransitionTime"] = "2024-01-01T00:00:00Z"
    twice = with_accepted_names(once, ())
    assert [each["lastTransitionTime"] for each in twice["status"]["conditions"]] == ["2024-01-01T00:00:00Z"] * 2
    assert conditions(twice) == conditions(before)


def test_an_established_definition_loses_the_generation_that_an_older_server_recorded() -> None:
    conditions = [
        {
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": SINCE,
            "observedGeneration": 1,
        }
        for type_, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    crd = {
        "metadata": {"name": "boxes.example.com", "generation": 2},
        "spec": {"group": "example.com", "names": NAMES},
        "status": {"acceptedNames": NAMES, "conditions": conditions},
    }
    found = with_accepted_names(crd, ())["status"]["conditions"]
    assert found == [
        {name: value for name, value in each.items() if name != "observedGeneration"} for each in conditions
    ]


def test_names_that_another_definition_takes_later_leave_a_definition_established() -> None:
    other = {
        "metadata": {"name": "crates.example.com"},
        "spec": {"group": "example.com", "names": {**NAMES, "plural": "crates"}},
        "status": {
            "acceptedNames": {"plural": "crates", "kind": "Crate", "singular": "crate", "listKind": "CrateList"}
        },
    }
    crd = {"metadata": {"name": "boxes.example.com"}, "spec": {"group": "example.com", "names": NAMES}}
    established = with_accepted_names(crd, [other])
    renamed = {**established, "spec": {"group": "example.com", "names": {**NAMES, "kind": "Crate"}}}
    conditions = {
        each["type"]: each["status"] for each in with_accepted_names(renamed, [other])["status"]["conditions"]
    }
    assert conditions == {"NamesAccepted": "False", "Established": "True"}


GADGETS = Resource(
    group="example.com",
    version="v1",
    kind="Gadget",
    plural="gadgets",
    singular="gadget",
    short_names=("gd",),
    namespaced=True,
    description="",
)
BUILT_IN = BuiltInNames.of([GADGETS])


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        pytest.param({"plural": "gadgets"}, "PluralConflict", id="plural"),
        pytest.param({"singular": "gadget"}, "SingularConflict", id="singular"),
        pytest.param({"kind": "Gadget"}, "KindConflict", id="kind"),
        pytest.param({"listKind": "GadgetList"}, "ListKindConflict", id="list kind"),
        pytest.param({"shortNames": ["gd"]}, "ShortNamesConflict", id="short name"),
        pytest.param({"plural": "gd"}, "PluralConflict", id="a plural that is a short name"),
    ],
)
def test_a_name_of_a_built_in_kind_is_a_conflict(names: dict[str, Any], reason: str) -> None:
    found = conditions(with_accepted_names(named(**names), (), BUILT_IN))
    assert found["NamesAccepted"][:2] == ("False", reason)
    assert found["Established"][:2] == ("False", "NotAccepted")


def test_names_of_a_built_in_kind_are_free_in_other_groups() -> None:
    crd = with_accepted_names(definition("gadgets", "Gadget", group="other.example.com"), (), BUILT_IN)
    assert conditions(crd)["Established"][0] == "True"


@pytest.mark.parametrize("names", [{"plural": "gadgets"}, {"kind": "Gadget"}], ids=["plural", "kind"])
def test_a_definition_that_an_earlier_release_established_loses_the_name_of_a_built_in_kind(
    names: dict[str, str],
) -> None:
    earlier = with_accepted_names(named(**names), ())
    assert conditions(earlier)["Established"][0] == "True"
    crd = with_accepted_names(earlier, (), BUILT_IN)
    assert conditions(crd)["Established"][:2] == ("False", "NotAccepted")
    assert not set(names.items()) & set(crd["status"]["acceptedNames"].items())


def test_a_definition_that_an_earlier_release_established_loses_only_a_short_name() -> None:
    crd = with_accepted_names(with_accepted_names(named(shortNames=["gd", "wd"]), ()), (), BUILT_IN)
    assert crd["status"]["acceptedNames"]["shortNames"] == ["wd"]
    assert [conditions(crd)[each][0] for each in ("NamesAccepted", "Established")] == ["False", "True"]


def test_a_kind_without_a_definition_takes_its_names_as_one_with_a_definition_does() -> None:
    taken = taken_names(GroupResource("example.com", "widgets"), GroupKind("example.com", "Widget"))
    assert conditions(with_accepted_names(named(), [taken]))["Established"][0] == "False"
    assert conditions(with_accepted_names(accepted(), [taken]))["Established"][0] == "True"
