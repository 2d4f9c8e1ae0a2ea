from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.chain import Chain
from admission.complete_caches import CompleteCaches
from admission.tenant.quota import TenantQuota, validate_quota_change
from admission.tenant.tree_lock import TreeGuard
from apiserver.meta import errors
from registry import quantity
from registry.tenant.quota_keys import AllocationRatios, QuotaLimit, comparable_limits
from registry.tenant.summary import TenantSummary, summarize
from registry.tenant.tree import TenantTree
from tests.tenant_objects import attributes, root_summary, tenant, tenant_summary, tree_of


def quotas(name: str, namespace: str = "tenant-root", **amounts: str | int) -> TenantSummary:
    return tenant_summary(name, namespace, spec={"resourceQuotas": amounts})


def problems(tree: TenantTree, new: TenantSummary, old: TenantSummary | None = None) -> list[str]:
    return [str(each) for each in validate_quota_change(tree, new, old)]


PARENT = quotas("alpha", cpu=10)


@pytest.mark.parametrize(
    ("others", "new", "old", "expected"),
    [
        pytest.param([PARENT], quotas("beta", "tenant-alpha", cpu=10), None, [], id="as much as the parent declares"),
        pytest.param(
            [PARENT],
            quotas("beta", "tenant-alpha", cpu=11),
            None,
            ["11 is more than the 10 that are left of the parent's 10"],
            id="more than the parent declares",
        ),
        pytest.param(
            [PARENT, quotas("gamma", "tenant-alpha", cpu="7500m")],
            quotas("beta", "tenant-alpha", cpu=3),
            None,
            ["3 is more than the 2500m that are left of the parent's 10"],
            id="more than a sibling leaves over",
        ),
        pytest.param(
            [PARENT, quotas("gamma", "tenant-alpha", cpu="7500m")],
            quotas("beta", "tenant-alpha", cpu="2.5"),
            None,
            [],
            id="as much as a sibling leaves over, in another notation",
        ),
        pytest.param(
            [quotas("alpha", cpu="1m"), quotas("gamma", "tenant-alpha", cpu="500u")],
            quotas("beta", "tenant-alpha", cpu="500u"),
            None,
            ["500u is more than the 0 that are left of the parent's 1m"],
            id="amounts that Kubernetes rounds up to thousandths",
        ),
        pytest.param(
            [PARENT], quotas("beta", "tenant-alpha", memory="1Ti"), None, [], id="a key that no ancestor declares"
        ),
        pytest.param(
            [PARENT],
            quotas("beta", "tenant-alpha", **{"requests.cpu": 11}),
            None,
            ["11 is more than the 10 that are left of the parent's 10 of cpu"],
            id="an alias of what the parent declares",
        ),
        pytest.param(
            [
                quotas("alpha", "tenant-root", **{"requests.memory": "2Gi"}),
                quotas("gamma", "tenant-alpha", memory="1Gi"),
            ],
            quotas("beta", "tenant-alpha", memory="1Gi"),
            None,
            [],
            id="as much as a sibling leaves over under the alias",
        ),
        pytest.param(
            [quotas("alpha", "tenant-root", **{"requests.storage": 5})],
            quotas("beta", "tenant-alpha", storage=6),
            None,
            ["6 is more than the 5 that are left of the parent's 5 of requests.storage"],
            id="storage is requests.storage",
        ),
        pytest.param(
            [quotas("alpha", "tenant-root", cpu=10, **{"requests.cpu": 4})],
            quotas("beta", "tenant-alpha", cpu=5),
            None,
            ["5 is more than the 4 that are left of the parent's 4 of requests.cpu"],
            id="the lesser amount of a key and its alias counts",
        ),
        pytest.param(
            [PARENT],
            quotas("beta", "tenant-alpha", **{"limits.cpu": 11}),
            None,
            ["11 is more than the 10 that are left of the parent's 10 of cpu"],
            id="the limits of a quota of cpu",
        ),
        pytest.param(
            [quotas("alpha", memory="64Gi"), quotas("gamma", "tenant-alpha", **{"limits.memory": "32Gi"})],
            quotas("beta", "tenant-alpha", memory="1Ti"),
            None,
            ["1Ti is more than the 32Gi that are left of the parent's 64Gi"],
            id="the units of the user",
        ),
        pytest.param(
            [quotas("alpha", memory=64 * 2**30)],
            quotas("beta", "tenant-alpha", memory="1Ti"),
            None,
            ["1Ti is more than the 64Gi that are left of the parent's 68719476736"],
            id="bytes of the parent",
        ),
        pytest.param(
            [quotas("alpha", secrets=3)],
            quotas("beta", "tenant-alpha", **{"count/secrets": 4}),
            None,
            ["4 is more than the 3 that are left of the parent's 3 of secrets"],
            id="two names of one resource",
        ),
        pytest.param(
            [PARENT],
            quotas("beta", "tenant-alpha", **{"requests.cpu": 9}),
            quotas("beta", "tenant-alpha", cpu=9),
            [],
            id="the same amount under the alias",
        ),
        pytest.param(
            [PARENT, tenant_summary("beta", "tenant-alpha")],
            quotas("c", "tenant-alpha-beta", cpu=11),
            None,
            ["11 is more than the 10 that are left of the 10 of the nearest ancestor that declares it"],
            id="limited by the nearest ancestor that declares the key",
        ),
        pytest.param(
            [PARENT, tenant_summary("beta", "tenant-alpha"), quotas("c", "tenant-alpha-beta", cpu=8)],
            quotas("gamma", "tenant-alpha", cpu=3),
            None,
            ["3 is more than the 2 that are left of the parent's 10"],
            id="the claim of a nephew whose parent declares nothing",
        ),
        pytest.param(
            [PARENT, quotas("beta", "tenant-alpha", cpu=6)],
            quotas("alpha", cpu=5),
            PARENT,
            ["5 is less than the 6 that child tenants declare"],
            id="a parent is lowered below its children's sum",
        ),
        pytest.param(
            [PARENT, quotas("beta", "tenant-alpha", cpu=6)],
            quotas("alpha", cpu=6),
            PARENT,
            [],
            id="a parent is lowered to its children's sum",
        ),
        pytest.param(
            [tenant_summary("alpha"), quotas("beta", "tenant-alpha", cpu=6)],
            quotas("alpha", cpu=5),
            tenant_summary("alpha"),
            ["5 is less than the 6 that child tenants declare"],
            id="a parent begins to declare less than its children",
        ),
        pytest.param(
            [quotas("alpha", cpu=1), quotas("beta", "tenant-alpha", cpu=6)],
            quotas("alpha", cpu=5),
            quotas("alpha", cpu=1),
            [],
            id="an existing excess may shrink in steps",
        ),
        pytest.param(
            [PARENT, quotas("beta", "tenant-alpha", cpu=6)],
            tenant_summary("alpha"),
            PARENT,
            [],
            id="a parent without a limit may remove its quota",
        ),
        pytest.param(
            [PARENT, quotas("beta", "tenant-alpha", cpu=20)],
            tenant_summary("beta", "tenant-alpha", spec={"resourceQuotas": {"cpu": "20"}, "etcd": True}),
            quotas("beta", "tenant-alpha", cpu=20),
            [],
            id="an existing excess that does not change is admitted",
        ),
        pytest.param(
            [quotas("alpha", cpu=3), quotas("beta", "tenant-alpha", cpu=5), quotas("c", "tenant-alpha-beta", cpu=5)],
            tenant_summary("beta", "tenant-alpha"),
            quotas("beta", "tenant-alpha", cpu=5),
            [],
            id="an existing excess of the parent that does not grow is admitted",
        ),
        pytest.param(
            [quotas("alpha", cpu=3), quotas("beta", "tenant-alpha", cpu=2), quotas("c", "tenant-alpha-beta", cpu=5)],
            tenant_summary("beta", "tenant-alpha"),
            quotas("beta", "tenant-alpha", cpu=2),
            ["5 is more than the 3 that are left of the parent's 3"],
            id="removing a quota exposes the claims of its children",
        ),
        pytest.param(
            [quotas("alpha", cpu="damaged"), quotas("beta", "tenant-alpha", cpu=6)],
            quotas("gamma", "tenant-alpha", cpu=99),
            None,
            [],
            id="a malformed quantity is no limit",
        ),
        pytest.param(
            [quotas("alpha", cpu=3), quotas("beta", "tenant-alpha", cpu="-5")],
            quotas("gamma", "tenant-alpha", cpu=4),
            None,
            ["4 is more than the 3 that are left of the parent's 3"],
            id="a negative quantity leaves no more to others",
        ),
        pytest.param(
            [quotas("alpha", cpu=3), quotas("beta", "tenant-alpha", cpu="1e999999999")],
            quotas("gamma", "tenant-alpha", cpu=3),
            None,
            [],
            id="an unbounded quantity claims nothing",
        ),
        pytest.param(
            [quotas("alpha", cpu=0)],
            quotas("beta", "tenant-alpha", cpu="1m"),
            None,
            ["1m is more than the 0 that are left of the parent's 0"],
            id="zero is a limit",
        ),
    ],
)
def test_a_quota_change_is_validated_against_ancestors_siblings_and_children(
    others: Sequence[TenantSummary], new: TenantSummary, old: TenantSummary | None, expected: Sequence[str]
) -> None:
    (key, *_) = sorted(new.quotas, reverse=True) or ["cpu"]
    assert problems(tree_of(*others), new, old) == [f"spec.resourceQuotas[{key}]: Forbidden: {why}" for why in expected]


def test_the_errors_of_all_keys_are_reported_together() -> None:
    tree = tree_of(quotas("alpha", cpu=1, memory="1Gi"))

    found = problems(tree, quotas("beta", "tenant-alpha", cpu=2, memory="2Gi", pods=3))

    assert [each.split(":")[0] for each in found] == ["spec.resourceQuotas[cpu]", "spec.resourceQuotas[memory]"]


def test_a_tenant_with_an_irregular_namespace_name_limits_its_children() -> None:
    """R-050, PEER-21: the parent is found by status.namespace, not by the name of the namespace."""
    irregular = tenant("alpha", spec={"resourceQuotas": {"cpu": 1}})
    irregular["status"]["namespace"] = "somewhere"

    assert problems(tree_of(summarize(irregular)), quotas("beta", "somewhere", cpu=2))


def test_the_cost_of_validation_is_linear_in_the_number_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """ATTACK-13: a user who may write one Tenant cannot block the server for everybody else."""
    many = {f"count/a{n}.example.org": "1" for n in range(5_000)}
    parent, read = quotas("alpha", **many), 0

    def counting(quotas: Mapping[str, str | int], ratios: AllocationRatios) -> Mapping[str, QuotaLimit]:
        nonlocal read
        read += len(quotas)
        return comparable_limits(quotas, ratios)

    for module in ("quota", "quota_ledger"):
        monkeypatch.setattr(f"admission.tenant.{module}.comparable_limits", counting)
    tree = tree_of(parent, *(quotas(f"c{n}", "tenant-alpha", **many) for n in range(3)))
    assert len(problems(tree, quotas("beta", "tenant-alpha", **many))) == len(many)
    assert read <= 20 * len(many)


async def test_an_exceeded_quota_is_a_422_with_a_cause_for_each_key() -> None:
    plugin = TenantQuota(tree=tree_of(quotas("alpha", cpu=1)))

    with pytest.raises(errors.Invalid) as caught:
        await plugin.validate(attributes("CREATE", tenant("b", "tenant-alpha", spec={"resourceQuotas": {"cpu": 2}})))

    cause = caught.value.causes[0]
    assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", "spec.resourceQuotas[cpu]")


async def test_parallel_creates_are_admitted_until_the_quota_is_used_up() -> None:
    """API-18: validation and write are one step under the lock."""
    tree = tree_of(root_summary(resourceQuotas={"cpu": 17}))

    class Cache:
        async def wait_for_own_writes(self) -> None:
            await asyncio.sleep(0)

    chain = Chain([TreeGuard(cache=Cache(), caches=CompleteCaches([])), TenantQuota(tree=tree)])

    async def create(number: int) -> bool:
        new = tenant(f"t{number}", spec={"resourceQuotas": {"cpu": 1}})
        try:
            async with chain.validating(attributes("CREATE", new)):
                await asyncio.sleep(0)
                tree.put(summarize(new))
        except errors.Invalid:
            return False
        return True

    admitted = await asyncio.gather(*(create(number) for number in range(50)))

    assert sum(admitted) == 17


# A model independent of the code: it computes every tenant's claim on one key from scratch.

AMOUNTS = st.one_of(st.none(), st.integers(0, 6), st.sampled_from(["500m", "1500m", "2"]))
TenantId = tuple[str, str]


class QuotaModel:
    """The declared amount of each Tenant by (namespace, name), and whether the quota rule holds for all of them."""

    def __init__(self) -> None:
        self.declared: dict[TenantId, Any] = {("tenant-root", "root"): 8}

    def namespace(self, tenant_id: TenantId) -> str:
        parent_namespace, name = tenant_id
        if name == "root":
            return "tenant-root"
        return f"tenant-{name}" if parent_namespace == "tenant-root" else f"{parent_namespace}-{name}"

    def claim(self, tenant_id: TenantId) -> Any:
        own = self.declared[tenant_id]
        if own is not None:
            return quantity.parse(own)
        return self.below(tenant_id)

    def below(self, tenant_id: TenantId) -> Any:
        namespace = self.namespace(tenant_id)
        return sum(self.claim(each) for each in self.declared if each[0] == namespace and each[1] != "root")

    def holds(self) -> bool:
        return all(
            own is None or self.below(tenant_id) <= quantity.parse(own)
            for tenant_id, own in list(self.declared.items())
        )

    def facts(self, tenant_id: TenantId) -> TenantSummary:
        parent_namespace, name = tenant_id
        own = self.declared[tenant_id]
        return tenant_summary(name, parent_namespace, spec={"resourceQuotas": {} if own is None else {"cpu": own}})


TENANT_IDS = [
    ("tenant-root", "root"),
    ("tenant-root", "a"),
    ("tenant-root", "b"),
    ("tenant-a", "c"),
    ("tenant-a", "d"),
    ("tenant-a-c", "e"),
    ("tenant-a-c", "f"),
]


@given(st.lists(st.tuples(st.sampled_from(TENANT_IDS), AMOUNTS), max_size=25))
def test_a_write_is_rejected_if_and_only_if_it_violates_the_quota_rule(writes: list[tuple[TenantId, Any]]) -> None:
    model = QuotaModel()
    tree = TenantTree([model.facts(("tenant-root", "root"))])
    for tenant_id, amount in writes:
        parent_namespace, _ = tenant_id
        if tenant_id not in model.declared and all(
            model.namespace(each) != parent_namespace for each in model.declared
        ):
            continue
        before = dict(model.declared)
        old = tree.get(model.facts(tenant_id).key) if tenant_id in model.declared else None
        model.declared[tenant_id] = amount
        new = model.facts(tenant_id)

        rejected = bool(validate_quota_change(tree, new, old))

        assert rejected is not model.holds(), (tenant_id, amount, before)
        if rejected:
            model.declared = before
        else:
            tree.put(new)
