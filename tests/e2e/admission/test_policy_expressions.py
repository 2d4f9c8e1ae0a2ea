"""CEL expressions have the same results and error messages on both clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.docs.admission_page import MISSING, WORKING
from tests.e2e.support.admission.policies import CONFIGMAPS, POLICIES, Policies, configmap
from tests.e2e.support.clusters.cluster import E2eCluster

_BATCH = 6
_OBJECT = configmap("judged", {"text": "abc"}, labels={"a": "b"})
# the error message of kube-apiserver, empty for an expression that is just false
_COMPARED = {
    "object.none == 1": "no such key: none",
    "dyn(1).x == 1": "no such key: x",
    "object.data.text.x == 1": "no such key: x",
    "oldObject.metadata.name == 'x'": "no such key: metadata",
    "[1][3] == 1": "index out of bounds: 3",
    "{'a': 1}['b'] == 1": "no such key: b",
    "1 / 0 == 1": "division by zero",
    "1 % 0 == 1": "modulus by zero",
    "9223372036854775807 + 1 == 1": "integer overflow",
    "dyn('a') && true": "no such overload",
    "dyn(1) ? true : false": "no such overload",
    "dyn('a') > 1": "no such overload",
    "size(dyn(1)) == 1": "no such overload: size",
    "'a'.split(dyn(1)) == []": "no such overload: split(string, int)",
    "int(object.data.text) == 1": "type conversion error from 'string' to 'int'",
    "double(object.data.text) == 1.0": "type conversion error from 'string' to 'double'",
    "timestamp(object.data.text) == timestamp('2026-01-01T00:00:00Z')": (
        "type conversion error from 'string' to 'google.protobuf.Timestamp'"
    ),
    "dyn([1])['a'] == 1": "unsupported index type 'string' in list",
    "object.data.text.matches(object.data.text + '[')": "error parsing regexp: missing closing ]: `[`",
    "object.data.text.find(object.data.text + '(') == ''": (
        "Illegal regex: error parsing regexp: missing closing ): `abc(`"
    ),
    "'%d'.format([object.data.text]) == ''": (
        "error during formatting: decimal clause can only be used on integers, was given string"
    ),
    "optional.none().value() == 1": "optional.none() dereference",
    "[].min() == 1": "min called on empty list",
    "ip('1.2.3.256').family() == 4": (
        'IP Address "1.2.3.256" parse error during conversion from string: ParseAddr("1.2.3.256"): '
        "IPv4 field has value >255"
    ),
    "ip('fe80::1%eth0').family() == 6": 'IP address "fe80::1%eth0" with zone value is not allowed',
    "cidr('10.0.0.0/33').prefixLength() == 8": (
        "network address parse error during conversion from string: network address parse error "
        'during conversion from string: netip.ParsePrefix("10.0.0.0/33"): prefix length out of '
        "range"
    ),
    "quantity('x') == quantity('1')": (
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    ),
    "quantity('1500m').asInteger() == 1": "cannot convert value to integer",
    "object.data.list.indexOf(object.data.none) == 1": "no such key: list",
    "[dyn(null), dyn(1)].indexOf(dyn(null)) == 1": "",
    "[dyn(null), dyn(1)].lastIndexOf(dyn(null)) == 1": "",
    "[dyn(1)].indexOf(dyn(null)) == 0": "",
    "quantity('1000m').asInteger() == 1": "cannot convert value to integer",
    "quantity('1.0Ki').isInteger()": "",
    "quantity('1e19').isInteger()": "",
    "quantity('500m').add(quantity('500m')).isInteger()": "",
    "!quantity('0').add(quantity('1')).isInteger()": "",
    "!quantity('000k').isInteger()": "",
    "!quantity('99999Gi').isInteger()": "",
    "quantity('999999999999Ki').isInteger()": "",
    "semver('01.2.3') == semver('1.2.3')": 'Major number must not contain leading zeroes "01"',
    "url('https://a:b/') == url('/c')": (
        'URL parse error during conversion from string: parse "https://a:b/": invalid port ":b" after host'
    ),
    "authorizer.group('').resource('').check('get').allowed()": "resource must not be empty",
    "authorizer.serviceAccount('a b', 'c').path('/').check('get').allowed()": "Invalid service account namespace",
    "request.subResource == 'x'": "no such key: subResource",
    "namespaceObject.metadata.labels['x'] == 'y'": "no such key: x",
    "has(oldObject.metadata)": "",
    "has(object.data.text.x)": "",
    "dyn(1) == 'a'": "",
    "lists.range(1000000).all(x, x >= 0)": "operation cancelled: actual cost limit exceeded",
}


def _batches(expressions: Sequence[str]) -> list[Sequence[str]]:
    return [expressions[start : start + _BATCH] for start in range(0, len(expressions), _BATCH)]


@pytest.fixture
def policies(cluster: E2eCluster, unique: str) -> Iterator[Policies]:
    client = cluster.client()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}}
    client.request("POST", "/api/v1/namespaces", namespace).expect(201)
    yield Policies(cluster, unique)
    client.request("DELETE", f"/api/v1/namespaces/{unique}")


def _warnings(policies: Policies, expressions: Sequence[str]) -> list[str]:
    """The warnings of a policy with these expressions as validations."""
    spec = {"validations": [{"expression": each} for each in expressions]}
    with policies.in_force(spec, actions=["Warn"]) as name:
        answer = policies.write(_OBJECT, dryRun="All")
        answer.expect(201)
        start = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': "
        texts = [each.removeprefix('299 - "').removesuffix('"') for each in answer.warnings]
        return [text.replace('\\"', '"').replace("\\\\", "\\").removeprefix(start) for text in texts]


@pytest.mark.parametrize("expressions", _batches([row.example for row in WORKING]))
def test_functions_have_the_documented_results_on_both_clusters(policies: Policies, expressions: Sequence[str]) -> None:
    assert _warnings(policies, expressions) == []


@pytest.mark.parametrize("expressions", _batches(list(_COMPARED)))
def test_error_messages_are_the_same_on_both_clusters(policies: Policies, expressions: Sequence[str]) -> None:
    texts = [
        f"expression '{each}' resulted in error: {_COMPARED[each]}" if _COMPARED[each] else f"failed expression: {each}"
        for each in expressions
    ]
    assert _warnings(policies, expressions) == texts


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("namespace", 'Invalid value: "namespace": must be a valid CEL identifier', id="a reserved word"),
        pytest.param("in", 'Invalid value: "in": must be a valid CEL identifier', id="an operator"),
        pytest.param("a-b", 'Invalid value: "a-b": must be a valid CEL identifier', id="a hyphen"),
        pytest.param(" ", "Required value: name is not specified", id="a space"),
    ],
)
def test_a_policy_with_a_variable_that_no_expression_can_name_is_invalid(
    policies: Policies, unique: str, name: str, why: str
) -> None:
    spec = {
        "matchConstraints": {"resourceRules": [dict(CONFIGMAPS)]},
        "variables": [{"name": name, "expression": "1"}],
        "validations": [{"expression": "true"}],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": unique},
        "spec": spec,
    }
    found = policies.client.request("POST", POLICIES, body, query={"dryRun": "All"}).expect(422)
    assert f"spec.variables[0].name: {why}" in found["message"]


@pytest.mark.usefixtures("kube")
def test_kube_apiserver_supports_the_functions_that_are_missing_here(policies: Policies) -> None:
    assert _warnings(policies, [row.example for row in MISSING if "variables." not in row.example]) == []
