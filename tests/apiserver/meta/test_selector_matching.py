"""Requirements of one key act together as each of them alone, and their number hardly costs time (ATTACK-19)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.selector_matching import Matcher, Requirement, int64
from apiserver.meta.selectors import LabelSelector, parse_field_selector, parse_label_selector
from tests.cpu_time import least_ratio

_VALUES = ("", "a", "1", "2", "3", "-4", str(2**63 - 1), str(2**63))
_NUMBERS = ("1", "2", "3", str(2**63 - 1), str(-(2**63)))
_keys = st.sampled_from("klm")
_labels = st.dictionaries(_keys, st.sampled_from(_VALUES))
_sets = st.lists(st.sampled_from(_VALUES), min_size=1, max_size=3).map(tuple)
_requirements = st.one_of(
    st.builds(Requirement, _keys, st.sampled_from(("In", "NotIn")), _sets),
    st.builds(Requirement, _keys, st.sampled_from(("Exists", "DoesNotExist"))),
    st.builds(Requirement, _keys, st.sampled_from(("Gt", "Lt")), st.sampled_from(_NUMBERS).map(lambda each: (each,))),
)


@dataclass(frozen=True)
class LabelledObject:
    labels: Mapping[str, str]


def _meets(labels: Mapping[str, str], requirement: Requirement) -> bool:
    """As the documentation of Kubernetes' selectors describes each operator."""
    value, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        number = int(value or "")
    except ValueError:
        return False
    is_met = number > int(values[0]) if requirement.operator == "Gt" else number < int(values[0])
    return is_met and -(2**63) <= number < 2**63


@given(st.lists(_requirements, max_size=6), st.lists(_labels, max_size=4))
def test_all_requirements_match_if_each_of_them_does(
    requirements: list[Requirement], labels: list[Mapping[str, str]]
) -> None:
    expected = [all(_meets(each, requirement) for requirement in requirements) for each in labels]
    objects = [LabelledObject(each) for each in labels]
    matcher = Matcher(requirements)
    assert [matcher.matches(each) for each in labels] == expected
    assert matcher.select(objects) == [obj for obj, matches in zip(objects, expected, strict=True) if matches]


def test_an_operator_gt_without_an_integer_matches_nothing() -> None:
    """Kinds whose selectors are structures may have one."""
    assert not Matcher([Requirement("k", "Gt", ("x",))]).matches({"k": "1"})
    assert not Matcher([Requirement("k", "Lt", ("x",)), Requirement("k", "Gt", ("0",))]).matches({"k": "1"})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("-0", 0, id="negative zero"),
        pytest.param("+12", 12, id="a plus sign"),
        pytest.param("0" * 5000 + "7", 7, id="thousands of zeros"),
        pytest.param("1" * 5000, None, id="thousands of digits"),
        pytest.param(str(2**63 - 1), 2**63 - 1, id="the greatest"),
        pytest.param(str(2**63), None, id="beyond the greatest"),
        pytest.param(str(-(2**63)), -(2**63), id="the least"),
        pytest.param(str(-(2**63) - 1), None, id="below the least"),
        pytest.param("", None, id="empty"),
        pytest.param("-", None, id="a sign"),
        pytest.param("1.5", None, id="a fraction"),
        pytest.param("1_0", None, id="an underscore"),
        pytest.param("²", None, id="another digit"),
    ],
)
def test_integers_are_those_of_64_bits(text: str, number: int | None) -> None:
    assert int64(text) == number


@pytest.mark.parametrize(
    ("many", "one"),
    [
        pytest.param([f"k>{number}" for number in range(100)], "k>99", id="greater"),
        pytest.param([f"k!=v{number}" for number in range(100)], "k!=v", id="not equal"),
        pytest.param([f"k!=v{number}" for number in range(99)] + ["k"], "k", id="exists, and is not equal"),
        pytest.param([f"!x{number}" for number in range(100)], "!x", id="keys that do not exist"),
        pytest.param([f"x{number}!=v" for number in range(100)], "x!=v", id="keys that are not equal"),
        pytest.param([f"l{number % 4}" for number in range(100)], "k", id="keys that exist"),
    ],
)
def test_a_hundred_requirements_take_little_more_time_than_one(many: list[str], one: str) -> None:
    objects = [LabelledObject({"k": "1000", "l0": "", "l1": "", "l2": "", "l3": ""}) for _ in range(5000)]
    hundred, single = parse_label_selector(",".join(many)), parse_label_selector(one)
    assert len(hundred.requirements) == 100

    def selected(selector: LabelSelector) -> list[LabelledObject]:
        return selector.select(objects)

    def matching(selector: LabelSelector) -> list[LabelledObject]:
        return [each for each in objects if selector.matches(each.labels)]

    assert selected(hundred) == selected(single) == matching(hundred) == matching(single) == objects
    assert least_ratio(lambda: selected(hundred), lambda: selected(single), below=8) < 8
    assert least_ratio(lambda: matching(hundred), lambda: matching(single), below=8) < 8


def test_a_hundred_fields_that_are_not_equal_take_little_more_time_than_one() -> None:
    hundred = parse_field_selector(",".join(f"metadata.name!=x{number}" for number in range(100)))
    single = parse_field_selector("metadata.name!=x")
    fields = [{"metadata.name": f"t{number}", "metadata.namespace": "n"} for number in range(5000)]
    ratio = least_ratio(
        lambda: [hundred.matches(each) for each in fields], lambda: [single.matches(each) for each in fields], below=3
    )
    assert ratio < 3
