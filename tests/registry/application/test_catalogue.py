from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from admission.cel.library.regex import matches
from registry.application.catalogue import Catalogue, DefinitionState, UnreadableForm
from registry.application.catalogue import resolve as resolve_forms
from registry.application.definition import ApplicationDefinition, parse_definition
from tests.application_definitions.samples import definition as real_definition
from tests.application_definitions.samples import definition_names
from tests.registry.application.applications import definition

REDIS = definition()
OTHER = definition(name="other", kind="Other", plural="others", prefix="other-")


def resolve(definitions: Iterable[ApplicationDefinition]) -> Catalogue:
    return resolve_forms({each.name: each for each in definitions})


def later(before: ApplicationDefinition, **changes: Any) -> ApplicationDefinition:
    return replace(before, generation=before.generation + 1, **changes)


def forms(*definitions: ApplicationDefinition | UnreadableForm) -> dict[str, ApplicationDefinition | UnreadableForm]:
    return dict(zip(("redis", "other"), definitions, strict=False))


IN_FORCE = {"redis": REDIS, "other": OTHER}


def test_all_kinds_of_cozystack_are_served_beside_tenants() -> None:
    found = resolve(parse_definition(real_definition(name), matches) for name in definition_names())
    assert sorted(found.served) == [name for name in definition_names() if name != "tenant"]
    assert {each.state for each in found.states} == {"served"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"kind": "Redis", "plural": "others", "prefix": "o-"},
            'the kind Redis is that of ApplicationDefinition "redis"',
        ),
        ({"kind": "Other", "plural": "redises", "prefix": "o-"}, "the resource redises is that of"),
        ({"kind": "Other", "plural": "others", "prefix": "redis-"}, "the prefix redis- is that of"),
        ({"kind": "RedisList", "plural": "others", "prefix": "o-"}, "the kind RedisList is that of"),
        ({"kind": "Tenant", "plural": "others", "prefix": "o-"}, "the kind Tenant is that of Tenants"),
        ({"kind": "Other", "plural": "tenants", "prefix": "o-"}, "its resource name is that of Tenants"),
        ({"kind": "Other", "plural": "others", "prefix": "tenant-"}, "the prefix tenant- is that of Tenants"),
    ],
)
def test_of_two_that_claim_a_name_one_is_served(changes: dict[str, str], why: str) -> None:
    found = resolve([definition(), definition(name="z", **changes)])
    assert list(found.served) == ["redis"]
    (refused,) = [each for each in found.states if each.state != "served"]
    assert refused.name == "z"
    assert why in refused.why


def test_the_older_definition_wins_then_the_smaller_name() -> None:
    young, old = replace(definition(name="a"), created="2026-02-01T00:00:00Z"), definition(name="b")
    assert list(resolve([young, old]).served) == ["b"]
    assert list(resolve([definition(name="b"), definition(name="a")]).served) == ["a"]


def test_an_empty_prefix_and_overlapping_prefixes_can_be_shared() -> None:
    kinds = [
        definition(name="etcd", kind="Etcd", plural="etcds", prefix=""),
        definition(name="info", kind="Info", plural="infos", prefix=""),
        definition(name="kubernetes", kind="Kubernetes", plural="kuberneteses", prefix="kubernetes-"),
        definition(name="nodes", kind="Nodes", plural="nodeses", prefix="kubernetes-nodes-"),
    ]
    assert len(resolve(kinds).served) == 4


@pytest.mark.parametrize(
    ("latest", "served", "refused"),
    [
        pytest.param(forms(REDIS, later(OTHER, kind="Redis")), (1, 1), ["other"], id="kind of another"),
        pytest.param(forms(later(REDIS, plural="others"), OTHER), (1, 1), ["redis"], id="of a younger one"),
        pytest.param(forms(REDIS, later(OTHER, prefix="redis-")), (1, 1), ["other"], id="prefix of another"),
        pytest.param(forms(REDIS, later(OTHER, prefix="tenant-")), (1, 1), ["other"], id="prefix of tenants"),
        pytest.param(forms(REDIS, UnreadableForm(2, "bad")), (1, 1), ["other"], id="unreadable"),
        pytest.param(
            forms(REDIS, later(OTHER, kind="Tenant", plural="tenants")), (1, 1), ["other"], id="becomes that of tenants"
        ),
        pytest.param(
            forms(later(REDIS, prefix="cache-"), later(OTHER, prefix="redis-")), (2, 2), [], id="given up at once"
        ),
        pytest.param(
            forms(later(REDIS, prefix="other-"), later(OTHER, prefix="new-")), (2, 2), [], id="given up by a younger"
        ),
        pytest.param(
            forms(later(REDIS, prefix="other-"), later(OTHER, prefix="redis-")),
            (1, 1),
            ["other", "redis"],
            id="an exchange needs a step between",
        ),
        pytest.param(forms(later(REDIS, prefix="x-"), later(OTHER, prefix="x-")), (1, 2), ["redis"], id="both at once"),
    ],
)
def test_a_clash_by_an_update_leaves_the_forms_in_force(
    latest: dict[str, ApplicationDefinition | UnreadableForm], served: tuple[int, int], refused: list[str]
) -> None:
    found = resolve_forms(latest, IN_FORCE)
    assert tuple(found.served[name].generation for name in ("redis", "other")) == served
    assert [each.name for each in found.states if each.state == "kept"] == refused


def test_what_a_deleted_definition_had_is_free() -> None:
    other = later(OTHER, prefix="redis-")
    assert resolve_forms({"other": other}, IN_FORCE).served == {"other": other}


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (DefinitionState("x", 3, 3), "serves the form of generation 3"),
        (DefinitionState("x", 4, 3, "no"), "serves the form of generation 3; generation 4 is refused because no"),
        (DefinitionState("x", 1, None, "no"), "serves nothing; generation 1 is refused because no"),
        (DefinitionState("x", 3, 3, "no"), "serves an earlier form of generation 3; the latest is refused because no"),
    ],
)
def test_a_state_says_which_form_is_served(state: DefinitionState, text: str) -> None:
    assert str(state) == text
