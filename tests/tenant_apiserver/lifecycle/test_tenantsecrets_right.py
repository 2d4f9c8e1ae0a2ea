"""A move of a group with TenantSecrets tells that our server needs a right for them, and how to give it."""

from __future__ import annotations

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from registry.cluster.interface import APISERVICES, CLUSTERROLEBINDINGS, ClusterResource
from tenant_apiserver.lifecycle.findings import Level
from tenant_apiserver.lifecycle.installed import OperatorStep, applied, tenantsecrets_readable
from tenant_apiserver.lifecycle.preflight import judge
from tenant_apiserver.lifecycle.reader import read_facts
from tests.tenant_apiserver.lifecycle.live_cozystack import LiveCozystack, api_service, live_cozystack
from tests.tenant_apiserver.lifecycle.test_preflight import OURS, PART_OF, checks_of, failures, one
from tests.tenant_apiserver.test_generate_manifests import built

READABLE = {"metadata": {"name": "tenant-apiserver:tenantsecrets", "labels": PART_OF}}


def _with_tenantsecrets() -> LiveCozystack:
    """The former server shows Secrets."""
    cluster = live_cozystack()
    cluster.served["core.cozystack.io"] = ["tenantnamespaces", "tenantsecrets"]
    return cluster


async def test_tenantsecrets_are_not_taken_from_those_who_read_them() -> None:
    cluster = _with_tenantsecrets()
    found = await checks_of(cluster, OperatorStep.REPLACE)
    assert failures(found) == ["tenantsecrets.core.cozystack.io"]
    check = one(found, "tenantsecrets.core.cozystack.io")
    assert "503" in check.message
    assert check.remedy.startswith("kubectl apply --server-side -k manifests/components/tenantsecrets")
    assert "move the other groups with --groups=apps.cozystack.io,sdn.cozystack.io" in check.remedy
    assert [each for each in found if "tenantresource" in each.message] == []
    cluster.add(CLUSTERROLEBINDINGS, READABLE)
    found = await checks_of(cluster, OperatorStep.REPLACE)
    assert failures(found) == []
    # what the server then writes is told
    assert len([each for each in found if "tenantresource" in each.message]) == 1


async def test_nobody_loses_tenantsecrets_by_other_steps_or_groups_or_after_the_move() -> None:
    cluster = _with_tenantsecrets()
    assert "tenantsecrets.core.cozystack.io" not in {
        each.subject for each in await checks_of(cluster, OperatorStep.SHADOW)
    }
    facts = await read_facts(cluster, OperatorStep.REPLACE, ["apps.cozystack.io"])
    assert failures(list(judge(facts, OperatorStep.REPLACE))) == []
    cluster.add(APISERVICES, api_service("core.cozystack.io", OURS))
    check = one(await checks_of(cluster, OperatorStep.REPLACE), "tenantsecrets.core.cozystack.io")
    assert check.level is Level.WARN


async def test_a_binding_that_may_not_be_read_is_not_known() -> None:
    cluster = _with_tenantsecrets()

    async def deny(verb: str, res: ClusterResource, key: Key) -> None:
        if res == CLUSTERROLEBINDINGS:
            raise StatusError(403, "Forbidden", "clusterrolebindings is forbidden")

    cluster.before = deny
    check = one(await checks_of(cluster, OperatorStep.REPLACE), "tenantsecrets.core.cozystack.io")
    assert (check.level, "forbidden" in check.message) == (Level.UNKNOWN, True)


def test_no_step_applies_what_makes_tenantsecrets_readable() -> None:
    component = {(each["kind"], each["metadata"]["name"]) for each in built("components/tenantsecrets")}
    assert {(each.resource.kind, each.name) for each in tenantsecrets_readable()} == component
    assert not any(set(tenantsecrets_readable()) & set(applied(step)) for step in OperatorStep)
