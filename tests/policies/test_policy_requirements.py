"""The requirements of layers 2 to 5, number by number, as cases of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from tests.policies.case_table import CASES, POLICIES, plugin_of
from tests.policies.cases import Case, rejection_message
from tests.policies.in_process_evaluation import NAME, attributes, rejection

_BY_ID = {case.id: case for case in CASES}
_TRUSTED = (
    "system:masters",
    "system:serviceaccounts:cozy-system",
    "system:serviceaccounts:cozy-cert-manager",
    "system:serviceaccounts:cozy-fluxcd",
    "system:serviceaccounts:kube-system",
)
_NEAR = ("system:serviceaccounts", "system:serviceaccounts:cozy-flux", "cozystack-cluster-admin", "SYSTEM:MASTERS")
_ROUTES = ("HTTPRoute", "TLSRoute", "GRPCRoute")


def _of(kinds: Iterable[str], *ids: str) -> Sequence[Case]:
    return [_BY_ID[f"{kind}: {id}"] for kind in kinds for id in ids]


REJECTED = [
    pytest.param(
        _of(["Gateway"], "v1beta1, another domain", "an update in v1beta1"), id="R-234: layer 2 covers both versions"
    ),
    pytest.param(
        _of(
            ["Gateway"],
            *("the parent of the host", "a sibling", "another domain", "a word before the host", "one bad among good"),
        ),
        id="R-235: a listener outside",
    ),
    pytest.param(
        _of(["Gateway", "ListenerSet"], "a hostname in tenant-l-bare"), id="R-239, VAP-2: no host, no hostname"
    ),
    pytest.param(
        _of(["Gateway"], "an administrator may not, either", "Flux may not, either"), id="R-240: no user is exempt"
    ),
    pytest.param(_of(["Tenant"], "set", "set later", "set when it was empty"), id="R-242: a host is set"),
    pytest.param(
        _of(["Tenant"], "changed", "made empty", "removed", "changed in case only"), id="R-243: a host is changed"
    ),
    pytest.param(
        _of(["Tenant"], *(f"set by {group}" for group in _NEAR), "set by one named like an account"),
        id="R-249: near misses",
    ),
    pytest.param(_of(["Namespace"], "set"), id="R-253: a label is set on create"),
    pytest.param(
        _of(["Namespace"], "set later", "set when it was empty", "changed", "removed"),
        id="R-254: a label is set, changed or removed later",
    ),
    pytest.param(
        _of(_ROUTES, "another domain", "the parent of the host", "a word before the host", "one bad among good"),
        id="R-261: a hostname outside",
    ),
    pytest.param(
        _of(_ROUTES, "a hostname in tenant-l-bare", "no hostnames in tenant-l-bare"), id="R-263: no host, no route"
    ),
    pytest.param(_of(_ROUTES, "an administrator may not, either"), id="R-267: regardless of RBAC"),
    pytest.param(_of(_ROUTES, "no hostnames on every section", "no hostnames, attached to nothing"), id="VAP-1"),
    pytest.param(
        _of(["GRPCRoute", "ListenerSet"], "another domain"), id="VAP-3, FACT-8: kinds that upstream does not cover"
    ),
    pytest.param(
        _of(["TLSRoute"], "another domain", "v1, another domain", "v1alpha3, another domain"),
        id="VAP-4: every version that is served",
    ),
]
ADMITTED = [
    pytest.param(
        _of(["Gateway"], "the host itself", "below the host", "deep below the host", "everything below the host"),
        id="R-235: the host and its subdomains",
    ),
    pytest.param(_of(["Gateway"], "a listener without hostname"), id="R-236: a listener without hostname"),
    pytest.param(
        _of(
            ["Gateway"],
            *("any hostname in cozy-*", "any hostname where tenant has no dash", "any hostname in another namespace"),
        ),
        id="R-237: other namespaces",
    ),
    pytest.param(_of(["Gateway"], "a domain of its own"), id="R-238: the label decides, not the platform's domain"),
    pytest.param(
        _of(["Tenant"], *(f"{group} sets it" for group in _TRUSTED)), id="R-244 to R-248: the trusted groups, VAP-5"
    ),
    pytest.param(
        _of(["Tenant"], "other fields while a host is there", "the same value by anybody"),
        id="R-250: an unchanged host",
    ),
    pytest.param(_of(["Tenant"], "without spec", "with an empty spec"), id="FACT-1: no spec"),
    pytest.param(_of(["Namespace"], "the same value by anybody"), id="R-255: the same value"),
    pytest.param(_of(["Namespace"], "other labels", "another label while it is there"), id="R-256: other labels"),
    pytest.param(
        _of(["Namespace"], *(f"{group} sets it" for group in _TRUSTED)), id="R-257: the same groups are trusted"
    ),
    pytest.param(_of(_ROUTES, "the host itself", "below the host"), id="R-261: the host and its subdomains"),
    pytest.param(
        _of(_ROUTES, "any hostname in cozy-*", "any hostname in another namespace"), id="R-262: other namespaces, VAP-6"
    ),
    pytest.param(_of(_ROUTES, "a domain of its own"), id="R-265: a domain of its own"),
]


@pytest.mark.parametrize("cases", REJECTED)
async def test_writes_that_the_requirements_forbid_are_rejected(cases: Sequence[Case]) -> None:
    for case in cases:
        error = await _answer(case)
        assert error, case.id
        assert error == rejection_message(case, NAME, _resource(case)), case.id


@pytest.mark.parametrize("cases", ADMITTED)
async def test_writes_that_the_requirements_allow_are_admitted(cases: Sequence[Case]) -> None:
    for case in cases:
        assert await _answer(case) == "", case.id


@pytest.mark.parametrize(
    ("case", "words"),
    [
        pytest.param(_of(["Tenant"], "set")[0], "tenant.spec.host can only be set or changed by", id="R-231, R-242"),
        pytest.param(_of(["Gateway"], "another domain")[0], "Gateway listener hostname must equal", id="R-231"),
        pytest.param(
            _of(["Namespace"], "changed")[0],
            "namespace label namespace.cozystack.io/host is immutable once set",
            id="R-258",
        ),
        pytest.param(_of(["HTTPRoute"], "another domain")[0], "HTTPRoute hostnames must equal", id="R-266"),
        pytest.param(_of(["TLSRoute"], "another domain")[0], "TLSRoute hostnames must equal", id="R-266: TLS"),
    ],
)
async def test_a_denial_begins_with_the_required_words(case: Case, words: str) -> None:
    assert f"denied request: {words}" in await _answer(case)


def test_no_policy_names_the_namespace_of_the_root_tenant() -> None:
    """R-264: its host label decides, as for any other namespace."""
    assert "tenant-root" not in str([policy["spec"] for policy in POLICIES.values()])


def _resource(case: Case) -> str:
    return f"{case.plural}.{case.group}" if case.group else case.plural


async def _answer(case: Case) -> str:
    error = await rejection(plugin_of(case.policy), attributes(case))
    return error.message if error else ""
