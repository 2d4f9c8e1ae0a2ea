from __future__ import annotations

import pytest

from admission.cel.loops import loop_shape, split_loops, union_of_shapes
from tests.admission.cel.loop_expressions import SHAPES


@pytest.mark.parametrize(
    ("expression", "rewritten", "pieces"),
    [
        pytest.param("a.all(x, y", "a.all(x,y", [], id="unfinished"),
        pytest.param("a.all(b.c, true)", "a.all(b.c,true)", [], id="no variable"),
        pytest.param("a.map(x)", "a.map(x)", [], id="another function of that name"),
        pytest.param("all(x, y) || a.all", "all(x,y)||a.all", [], id="not called on a value"),
        pytest.param(
            "'.all(x, y)' in a.b[0].all(x, x > 1)",
            "'.all(x, y)' in kubernetesTest(0, a.b[0], [])",
            ["kubernetesPiece().all(x, x>1)"],
            id="a chain after `in`",
        ),
        pytest.param(
            "a in [1].filter(x, x in b)",
            "a in kubernetesList(0, [1], [])",
            ["kubernetesPiece().filter(x, x in b)"],
            id="a list after `in`",
        ),
        pytest.param(
            "a.filter(x, x).map(y, y, z).exists_one(w, w)",
            "kubernetesTest(2, kubernetesList(1, kubernetesList(0, a, []), []), [])",
            ["kubernetesPiece().filter(x, x)", "kubernetesPiece().map(y, y, z)",
             "kubernetesPiece().filter(w, w).size()"],
            id="one after another",
        ),
        pytest.param(
            "a.all(x, b.all(y, y == x))",
            "kubernetesTest(0, a, [])",
            ["kubernetesPiece().all(x, kubernetesTest(1, b, [x]))",
             "optional.of(kubernetesOuter(0)).optMap(x, kubernetesPiece().all(y, y==x)).value()"],
            id="one inside another reads its variable",
        ),
        pytest.param(
            "a.all(x, x.all(y, y))",
            "kubernetesTest(0, a, [])",
            ["kubernetesPiece().all(x, kubernetesTest(1, x, []))", "kubernetesPiece().all(y, y)"],
            id="the range reads the variable of the loop around it",
        ),
        pytest.param(
            "a.transformList(i, v, i > 1, v)",
            "kubernetesList(0, a, [])",
            ["kubernetesPiece().transformList(i, v, optional.of(i + kubernetesFirst()).optMap(i, i>1).value(), v)"],
            id="indexes of a list",
        ),
        pytest.param(
            "a.sortBy(x, -x) // by the negative", "kubernetesList(0, a, [])", ["kubernetesPiece().map(x, -x)"],
            id="sorted by keys",
        ),
    ],
)  # fmt: skip
def test_loops_are_rewritten(expression: str, rewritten: str, pieces: list[str]) -> None:
    found = split_loops(expression)
    assert found.text == rewritten
    assert [each.text.of_list for each in found.loops] == pieces


def test_short_loops_inside_a_piece_are_left_as_they_are_unless_they_build_lists() -> None:
    tests, builds = (split_loops(f"a.all(x, b.{macro}(y, y == x))").loops[0] for macro in ("all", "filter"))
    assert tests.text.plain is not None
    assert tests.text.plain.of_list == "kubernetesPiece().all(x, b.all(y,y==x))"
    assert builds.text.plain is None


@pytest.mark.parametrize("expression", SHAPES)
def test_the_shape_has_the_depth_of_loops(expression: str) -> None:
    shape = loop_shape(expression)
    assert (shape.depth, shape.builds_list) == SHAPES[expression]


def test_the_shape_names_what_makes_lists_longer_than_the_input() -> None:
    shapes = [loop_shape(text) for text in ("a.split('')", "a.flatten()", "lists.range(n)", "a in [1, 2, 3]")]
    assert [each.splits_text for each in shapes] == [True, False, False, False]
    assert [each.flattens for each in shapes] == [False, True, False, False]
    assert [each.unbounded for each in shapes] == [False, False, True, False]
    assert [each.literals for each in shapes] == [0, 0, 0, 2]
    union = union_of_shapes([*shapes, loop_shape("a.all(b, b)")])
    assert (union.depth, union.splits_text, union.flattens, union.unbounded, union.literals) == (1, True, True, True, 2)


@pytest.mark.parametrize(
    ("expression", "unsupported"),
    [
        ("[1].all(n, n == 1)", False),
        ("[0xfU, 1u].all(n, n == n)", True),
        ("object.numbers.all(n, uint(n) > dyn(0))", True),
        ("{'a': object.?b}.all(k, v, v.hasValue())", True),
        ("{'a': object.b[?0]}.all(k, v, v.hasValue())", True),
        ("{'a': object.b}.all(k, object.?c.hasValue() || true)", True),
        ("object.?b.orValue([]).all(n, n == 1)", False),
        ("{'a': 1}.all(k, v, v == 1 ? true : false)", False),
    ],
)
def test_values_that_cannot_be_passed_to_pieces_are_found(expression: str, unsupported: bool) -> None:
    assert loop_shape(expression).unsupported is unsupported
