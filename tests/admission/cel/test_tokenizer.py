from __future__ import annotations

import pytest

from admission.cel.tokenizer import fields_of, mentions, rewrite_unsupported_calls, select_chains


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param("variables.a + variables.b", ["a", "b"], id="two"),
        pytest.param("variables.a.b == variables.a", ["a"], id="one, twice"),
        pytest.param("'variables.a' == \"variables.b\"", [], id="in strings"),
        pytest.param("r'\\' + variables.a", ["a"], id="after a raw string that ends in a backslash"),
        pytest.param("'''it's variables.x''' + variables.a", ["a"], id="in a long string"),
        pytest.param("1 // variables.a\n + variables . b", ["b"], id="comments and blanks"),
        pytest.param("object.variables.a", [], id="a field of that name"),
        pytest.param("variables.?a", ["a"], id="optional"),
    ],
)
def test_fields_of_variables_are_found(expression: str, names: list[str]) -> None:
    assert fields_of("variables", expression) == names


def test_a_field_of_the_same_name_is_not_a_mention() -> None:
    assert mentions("authorizer", "authorizer.path('/')")
    assert not mentions("authorizer", "object.authorizer == 'authorizer'")


@pytest.mark.parametrize(
    ("expression", "rewritten"),
    [
        pytest.param("object.a == 'validate'", "object.a == 'validate'", id="nothing to rewrite"),
        pytest.param(
            "!format.uri().validate(a).hasValue()",
            "!optional.ofNonZeroValue(format.uri().kubernetesFormatErrors(a)).hasValue()",
            id="a chain",
        ),
        pytest.param(
            "x || f(a)[0].b.validate(g(')', [1]))",
            "x || optional.ofNonZeroValue(f(a)[0].b.kubernetesFormatErrors(g(')', [1])))",
            id="calls and indexes, up to an operator",
        ),
        pytest.param(
            "format.named('a').value().validate('b')",
            "optional.ofNonZeroValue(optional.ofNonZeroValue(format.kubernetesNamed('a')).value()"
            ".kubernetesFormatErrors('b'))",
            id="nested calls",
        ),
        pytest.param(
            "lists.range(size(a)).size()", "lists.range(kubernetesBounded(size(a))).size()", id="lists.range is limited"
        ),
        pytest.param("a.range(1) + lists.range()", "a.range(1) + lists.range()", id="other functions named range"),
        pytest.param("a.validate(", "a.validate(", id="unfinished"),
        pytest.param(
            "!a.includes( b )",
            "!optional.of([dyn(a), dyn( b )]).optMap(kubernetesPair, type(kubernetesPair[0]) == list"
            " ? kubernetesPair[1] in kubernetesPair[0] : kubernetesPair[0] == kubernetesPair[1]).value()",
            id="operands of any type",
        ),
        pytest.param(
            "a in{'b': c.?d}",
            "a in optional.of({'b': c.?d}).optMap(kubernetesMap, '%s'.format([kubernetesMap]) == ''"
            " ? kubernetesMap : kubernetesMap).value()",
            id="a map that may contain an optional",
        ),
        pytest.param("a.b{c: 1} == d.?e", "a.b{c: 1} == d.?e", id="a message is no map"),
        pytest.param("{'a': b}", "{'a': b}", id="a map without optionals"),
        pytest.param(
            "a.b.indexOf(c == d)",
            "optional.of(a.b\n).optMap(kubernetesTarget, optional.of(c == d\n).optMap(kubernetesItem, "
            "dyn(kubernetesItem) == null ? dyn(kubernetesTarget).kubernetesIndexOfNull()"
            " : kubernetesTarget.indexOf(kubernetesItem)).value()).value()",
            id="an index of what may be null",
        ),
        pytest.param(
            "a.lastIndexOf(null)",
            "optional.of(a\n).optMap(kubernetesTarget, optional.of(dyn(null)\n).optMap(kubernetesItem, "
            "dyn(kubernetesItem) == null ? dyn(kubernetesTarget).kubernetesLastIndexOfNull()"
            " : kubernetesTarget.lastIndexOf(kubernetesItem)).value()).value()",
            id="the last index of null",
        ),
        pytest.param("a.indexOf('b') + a.indexOf(b, 1)", "a.indexOf('b') + a.indexOf(b, 1)", id="no null"),
        pytest.param(
            "!has(a.b.c) || has(a.b)",
            "!(type(dyn(a.b)) == map ? 'c' in dyn(a.b) : false) || (type(dyn(a)) == map ? 'b' in dyn(a) : false)",
            id="has() of a field of null",
        ),
        pytest.param("has( variables.a ) && b", "true && b", id="a declared variable always exists"),
        pytest.param("has(a().b) && x.has(1)", "has(a().b) && x.has(1)", id="only chains of names are rewritten"),
    ],
)
def test_calls_that_the_library_cannot_evaluate_are_rewritten(expression: str, rewritten: str) -> None:
    assert rewrite_unsupported_calls(expression) == rewritten


def test_chains_of_fields_are_found() -> None:
    assert select_chains("object.a.b.size() + x.y['z.w'].v") == [("object", ["a", "b"]), ("x", ["y"]), ("", ["v"])]
