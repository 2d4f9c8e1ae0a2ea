"""A write claims its hosts and quotas, until the tree shows them or they can no longer be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from admission.tenant.claims.claim import Claim, Outcome, ProposedWrite
from apiserver.meta.resource import Key
from registry.tenant.quota_keys import declared_amounts
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import effective_host
from tests.tenant_objects import tenant_summary, tree_of


def summary(rv: int = 0, **spec: Any) -> TenantSummary:
    return replace(tenant_summary("a", spec=spec), rv=rv)


def claim_of(write: ProposedWrite) -> Claim:
    return write.claim(id="1", holder="one", base=100)


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        pytest.param(ProposedWrite(summary(), None), [Outcome(host="")], id="a plain create"),
        pytest.param(
            ProposedWrite(summary(host="x.example", resourceQuotas={"cpu": "2000m", "memory": "1Gi"}), None),
            [Outcome(host="x.example", quotas={"cpu": "2", "memory": "1073741824"})],
            id="a create with a host and quotas",
        ),
        pytest.param(
            ProposedWrite(
                summary(resourceQuotas={"cpu": 1, "pods": 3}),
                summary(7, resourceQuotas={"requests.cpu": "1000m", "pods": 2, "memory": 5}),
            ),
            [Outcome(quotas={"requests.cpu": None, "memory": None, "cpu": "1", "pods": "3"})],
            id="an update, with what it changes",
        ),
        pytest.param(
            ProposedWrite(summary(host="y.example", resourceQuotas={"pods": 1}), summary(7, host="x.example")),
            [Outcome(host="y.example", quotas={"pods": "1"}), Outcome(host="x.example", quotas={"pods": None})],
            id="a changed host, with what it is set back to",
        ),
    ],
)
def test_a_claim_has_the_hosts_and_amounts_that_the_write_may_leave(
    write: ProposedWrite, expected: list[Outcome]
) -> None:
    assert list(claim_of(write).outcomes) == expected


def test_a_host_of_any_length_makes_a_small_claim() -> None:
    long = ".".join(["x" * 60] * 1000)
    claim = claim_of(ProposedWrite(summary(host="y.example"), summary(7, host=long)))
    before = claim.outcomes[1].host
    assert before is not None
    assert len(before) < 256
    assert effective_host(tree_of(summary(host=long)), summary(host=long)) == effective_host(
        tree_of(summary(host=before)), summary(host=before)
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, {}, False, id="a plain create"),
        pytest.param(None, {"host": "x.example"}, True, id="a create with a host"),
        pytest.param(None, {"resourceQuotas": {"cpu": 1}}, True, id="a create with a quota"),
        pytest.param({}, {"etcd": True}, False, id="a changed flag"),
        pytest.param({"host": "x.example"}, {"host": ""}, True, id="a removed host"),
        pytest.param({"resourceQuotas": {"cpu": 1}}, {}, True, id="a removed quota"),
        pytest.param(
            {"resourceQuotas": {"cpu": 1}}, {"resourceQuotas": {"cpu": "1000m"}}, False, id="another spelling"
        ),
        pytest.param({"resourceQuotas": {"cpu": 1}}, {"resourceQuotas": {"requests.cpu": 1}}, True, id="another key"),
    ],
)
def test_only_changes_of_hosts_and_amounts_are_recorded(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], expected: bool
) -> None:
    write = ProposedWrite(summary(**new), summary(7, **old) if old is not None else None)
    assert write.needs_record is expected


def test_an_outcome_changes_only_what_it_names() -> None:
    before = summary(host="x.example", resourceQuotas={"cpu": 4, "requests.memory": "1Gi", "pods": 2})
    after = Outcome(quotas={"cpu": "3", "requests.memory": None}).applied_to(before)
    assert after.host == "x.example"
    assert declared_amounts(after.quotas) == declared_amounts({"cpu": 3, "pods": 2})
    assert Outcome(host="").applied_to(before).host == ""


def test_a_created_tenant_has_the_namespace_of_its_name() -> None:
    claim = claim_of(ProposedWrite(summary(host="x.example"), None))
    [tenant] = claim.applied_to(None)
    assert (tenant.key, tenant.namespace, tenant.host) == (Key("tenant-root", "a"), "tenant-a", "x.example")


CREATE = claim_of(ProposedWrite(summary(host="x.example"), None))
QUOTA = claim_of(ProposedWrite(summary(resourceQuotas={"cpu": 1}), summary(7)))
HOST = claim_of(ProposedWrite(summary(host="x.example"), summary(7)))


@pytest.mark.parametrize(
    ("claim", "cached", "expected"),
    [
        pytest.param(CREATE, None, False, id="a tenant that is not there yet"),
        pytest.param(CREATE, 101, True, id="a tenant that was created since"),
        pytest.param(CREATE, 100, False, id="an earlier tenant of the same name"),
        pytest.param(QUOTA, 7, False, id="the version that the update starts from"),
        pytest.param(QUOTA, 8, True, id="a later version, to which the update no longer applies"),
        pytest.param(HOST, 8, False, id="a host that may be set back"),
    ],
)
def test_a_claim_is_settled_when_its_write_can_change_nothing_more(
    claim: Claim, cached: int | None, expected: bool
) -> None:
    assert claim.is_settled(summary(cached) if cached is not None else None) is expected
