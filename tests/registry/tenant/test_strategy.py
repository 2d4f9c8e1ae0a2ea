from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Object
from registry.tenant.strategy import TenantStrategy

DEFAULTS = {
    "host": "",
    "etcd": False,
    "monitoring": False,
    "ingress": False,
    "seaweedfs": False,
    "computeplane": False,
    "schedulingClass": "",
    "resourceQuotas": {},
}


@pytest.fixture(scope="module")
def strategy() -> TenantStrategy:
    return TenantStrategy()


def tenant(**fields: Any) -> Object:
    return {"metadata": {"name": "alice", "namespace": "tenant-root"}, **fields}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        pytest.param(tenant(), tenant(), id="no spec"),
        pytest.param(tenant(spec={}), tenant(spec={}), id="an empty spec"),
        pytest.param(
            tenant(spec={"host": None, "gateway": None, "resourceQuotas": {"cpu": None}}),
            tenant(spec={"host": None, "gateway": None, "resourceQuotas": {"cpu": None}}),
            id="nulls count as omitted",
        ),
        pytest.param(tenant(spec={}, status={"namespace": "mine"}), tenant(spec={}), id="a status is dropped"),
        pytest.param(tenant(spec={}, appVersion=""), tenant(spec={}), id="an empty version is dropped"),
    ],
)
def test_a_spec_is_stored_as_it_is_sent_and_judged_with_its_defaults(
    strategy: TenantStrategy, sent: Object, stored: Object
) -> None:
    """R-006."""
    strategy.prepare_for_create(sent)
    assert sent == stored
    assert strategy.validate(sent) == []
    assert strategy.shown(sent) == tenant(spec=DEFAULTS)
    assert sent == stored


def test_an_update_preserves_the_stored_status(strategy: TenantStrategy) -> None:
    new, old = (
        tenant(spec={}, status={"namespace": "mine"}),
        tenant(spec=DEFAULTS, status={"namespace": "tenant-alice"}),
    )
    strategy.prepare_for_update(new, old)
    assert new == tenant(spec={}, status={"namespace": "tenant-alice"})
    assert new["status"] is not old["status"]


def test_undocumented_keys_are_kept_and_the_first_of_them_give_warnings(strategy: TenantStrategy) -> None:
    obj = tenant(spec={"addons": {"vpn": True}, "isolated": None})
    strategy.prepare_for_create(obj)
    assert strategy.validate(obj) == []
    assert strategy.shown(obj)["spec"] == {**DEFAULTS, "addons": {"vpn": True}, "isolated": None}
    assert strategy.warnings(obj) == [
        f'unknown field "spec.{name}": it is kept, and the chart decides' for name in ("addons", "isolated")
    ]
    many = tenant(spec={f"f{number}": number for number in range(20_000)})
    assert len(strategy.warnings(many)) == 20


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("resourceQuota", "resourceQuotas"),
        ("resourcequotas", "resourceQuotas"),
        ("scheduleClass", "schedulingClass"),
        ("hosts", "host"),
        ("Gateway", "gateway"),
        ("monitorng", "monitoring"),
        ("addons", ""),
        ("x", ""),
        ("a" * 100_000, ""),
    ],
)
def test_a_misspelt_field_gives_a_warning_with_the_nearest_one(strategy: TenantStrategy, sent: str, meant: str) -> None:
    [warning] = strategy.warnings(tenant(spec={sent: {}}))
    hint = f'; did you mean "spec.{meant}"?' if meant else ""
    assert warning == f'unknown field "spec.{sent}": it is kept, and the chart decides{hint}'


def test_a_key_with_a_leading_underscore_is_a_bad_request(strategy: TenantStrategy) -> None:
    with pytest.raises(BadRequest, match="_cluster"):
        strategy.resource.precheck(tenant(spec={"_cluster": {}}))


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({"gateway": "yes"}, ["spec.gateway"], id="a string for a boolean"),
        pytest.param({"seaweedfs": {"volume": {}}}, ["spec.seaweedfs"], id="an object for a boolean"),
        pytest.param({"host": 5, "etcd": 1}, ["spec.host", "spec.etcd"], id="all wrong types together"),
        pytest.param({"resourceQuotas": {"cpu": "ten"}}, ["spec.resourceQuotas[cpu]"], id="not a quantity"),
        pytest.param({"schedulingClass": "a" * 64}, ["spec.schedulingClass"], id="a class longer than a label value"),
        pytest.param({"schedulingClass": "not a label"}, ["spec.schedulingClass"], id="a class with a space"),
        pytest.param({"resourceQuotas": {"cpu": "-1"}}, ["spec.resourceQuotas[cpu]"], id="a negative quantity"),
        pytest.param({"resourceQuotas": {"cpu": 2**63}}, ["spec.resourceQuotas[cpu]"], id="more than 64 bits"),
        pytest.param({"resourceQuotas": {"cpu": "1e99"}}, ["spec.resourceQuotas[cpu]"], id="a large exponent"),
        pytest.param(
            {"resourceQuotas": {"a b": "1", "pods": "x"}},
            ["spec.resourceQuotas[a b]", "spec.resourceQuotas[pods]"],
            id="all invalid quotas together",
        ),
    ],
)
def test_an_invalid_spec_is_reported_field_by_field(strategy: TenantStrategy, spec: Object, fields: list[str]) -> None:
    obj = tenant(spec=spec)
    strategy.prepare_for_create(obj)
    assert [problem.field for problem in strategy.validate(obj)] == fields


def test_a_quota_is_a_number_or_a_string_for_any_resource(strategy: TenantStrategy) -> None:
    """R-011."""
    quotas = {"cpu": 4, "memory": "1.5Gi", "count/certificates.cert-manager.io": "10"}
    obj = tenant(spec={"resourceQuotas": quotas})
    strategy.prepare_for_create(obj)
    assert strategy.validate(obj) == []
    assert obj["spec"]["resourceQuotas"] == quotas


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({"appVersion": "1" * 128}, None, id="a version to the limit"),
        pytest.param({"appVersion": "1" * 129}, "appVersion", id="a version"),
        pytest.param({"metadata": {"generateName": "x" * 253}}, None, id="a generated name to the limit"),
        pytest.param({"metadata": {"generateName": "x" * 254}}, "metadata.generateName", id="a generated name"),
    ],
)
def test_texts_of_the_helmrelease_have_limits(strategy: TenantStrategy, fields: Object, problem: str | None) -> None:
    """ATTACK-16. A stored one that does not change passes."""
    obj = tenant(spec={**DEFAULTS}) | fields
    assert [each.field for each in strategy.validate(obj)] == ([problem] if problem else [])
    assert strategy.validate_update(obj, obj) == []


def test_the_message_about_a_long_quantity_does_not_repeat_it(strategy: TenantStrategy) -> None:
    """ATTACK-13."""
    [problem] = strategy.validate(tenant(spec={"resourceQuotas": {"cpu": "1" * 1000}}))
    assert str(problem) == "spec.resourceQuotas[cpu]: Too long: may not be more than 128 bytes"


def test_stored_invalid_values_that_do_not_change_are_accepted(strategy: TenantStrategy) -> None:
    stored = {**DEFAULTS, "schedulingClass": "not a label"}
    old = tenant(spec={**stored, "resourceQuotas": {"cpu": "ten"}})
    new = tenant(spec={**stored, "resourceQuotas": {"cpu": "ten", "pods": "many"}})
    assert [problem.field for problem in strategy.validate_update(new, old)] == ["spec.resourceQuotas[pods]"]


def test_the_name_is_validated_with_the_resulting_namespace(strategy: TenantStrategy) -> None:
    assert strategy.name_errors(tenant()) == []
    deep: Object = {"metadata": {"name": "y" * 11, "namespace": "tenant-" + "x" * 45}}
    assert [problem.field for problem in strategy.name_errors(deep)] == ["metadata.name"]


def test_too_many_changed_quotas_are_rejected_without_validating_them(strategy: TenantStrategy) -> None:
    """ATTACK-13: exact arithmetic and the messages of errors take time for each quota."""
    quotas = {f"example.org/q{number}": "1" for number in range(1000)}
    many = {**quotas, "example.org/more": "x" * 1000}
    assert strategy.validate(tenant(spec={"resourceQuotas": quotas})) == []
    [problem] = strategy.validate(tenant(spec={"resourceQuotas": many}))
    assert str(problem) == ("spec.resourceQuotas: Too many: 1001: must have at most 1000 items that are new or changed")
    # stored quotas are not validated again
    grown = {**quotas, **{f"example.org/new{number}": "1" for number in range(1000)}}
    before, after = (tenant(spec={"resourceQuotas": each}) for each in (quotas, grown))
    assert strategy.validate_update(after, before) == []
