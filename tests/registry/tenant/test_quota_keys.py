"""The keys and amounts of a ResourceQuota for each key of a Tenant, which admission compares as well."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import quantity
from registry.quota_names import quota_name_errors
from registry.tenant.quota_keys import (
    EQUAL,
    NANO,
    AllocationRatios,
    amount_text,
    canonical_key,
    comparable_limits,
    declared_amounts,
    key_errors,
    rendered_limits,
    value_errors,
)

COZYSTACK = AllocationRatios(cpu=Fraction(10), ephemeral_storage=Fraction(40))


def rendered(quotas: Mapping[str, str | int], ratios: AllocationRatios = COZYSTACK) -> dict[str, str]:
    found = rendered_limits(quotas, ratios).valid
    return {key: amount_text(limit.amount, limit.text) for key, limit in found.items()}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        pytest.param(
            {"cpu": "60", "memory": "128Gi", "storage": "200Gi"},
            {
                "limits.cpu": "60",
                "requests.cpu": "6",
                "limits.memory": "128Gi",
                "requests.memory": "128Gi",
                "requests.storage": "200Gi",
            },
            id="Cozystack's end-to-end tests",
        ),
        pytest.param(
            {"ephemeral-storage": "1Gi"},
            {"limits.ephemeral-storage": "1Gi", "requests.ephemeral-storage": "26843545"},
            id="whole bytes",
        ),
        pytest.param({"cpu": 1}, {"limits.cpu": "1", "requests.cpu": "100m"}, id="a number"),
        pytest.param({"cpu": "5m"}, {"limits.cpu": "5m", "requests.cpu": "1m"}, id="half a thousandth is rounded up"),
        pytest.param(
            {"limits.cpu": "1500u", "memory": "0.1", "requests.nvidia.com/gpu": "1n"},
            {
                "limits.cpu": "2m",
                "limits.memory": "100m",
                "requests.memory": "100m",
                "requests.nvidia.com/gpu": "1m",
            },
            id="what is finer than a thousandth is rounded up",
        ),
        pytest.param({"devices.com/nvidia": "2"}, {"requests.devices.com/nvidia": "2"}, id="an extended resource"),
        pytest.param(
            {"count/certificates.cert-manager.io": "10", "pods": "007", "services.loadbalancers": 1},
            {"count/certificates.cert-manager.io": "10", "pods": "7", "services.loadbalancers": "1"},
            id="counts of objects",
        ),
        pytest.param(
            {
                "requests.cpu": "2",
                "limits.memory": "0.5Gi",
                "requests.nvidia.com/gpu": 1,
                "hugepages-2Mi": "4Mi",
                "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
                "gpu.deviceclass.resource.k8s.io/devices": "3",
            },
            {
                "requests.cpu": "2",
                "limits.memory": "512Mi",
                "requests.nvidia.com/gpu": "1",
                "hugepages-2Mi": "4Mi",
                "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
                "gpu.deviceclass.resource.k8s.io/devices": "3",
            },
            id="as they are",
        ),
        pytest.param(
            {"cpu": "10", "requests.cpu": "4", "limits.cpu": "20"},
            {"limits.cpu": "10", "requests.cpu": "1"},
            id="the lesser of two spellings",
        ),
        pytest.param(
            {"cpu": "1", "memry": "1Gi", "pods": "1.5", "x" * 1000: 1},
            {"limits.cpu": "1", "requests.cpu": "100m"},
            id="the rest",
        ),
    ],
)
def test_what_a_resourcequota_has(declared: dict[str, str | int], expected: dict[str, str]) -> None:
    assert rendered(declared) == expected


def test_entries_that_are_no_limits_are_named_and_take_no_others_with_them() -> None:
    """ATTACK-16: a kube-apiserver may compute for good when it parses some of them."""
    quotas: dict[str, str | int] = {
        "memry": "1Gi",
        "cpu": "1e999999999",
        "pods": "1.5",
        "a b": "1",
        "x" * 1000: "1",
        "requests.memory": "-1",
        "requests.storage": "9" * 1000,
        "secrets": "3",
    }

    found = rendered_limits(quotas, EQUAL)

    assert list(found.valid) == ["secrets"]
    assert len(found.problems) == len(quotas) - 1
    assert all(len(each) < 1024 for each in found.problems)
    assert any(each.startswith('spec.resourceQuotas[memry]: "1Gi": must be cpu, memory,') for each in found.problems)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("memry", "must be cpu, memory, ephemeral-storage, storage, pods,", id="unknown"),
        pytest.param("limits.storage", "must be cpu,", id="that Kubernetes does not limit"),
        pytest.param(
            "limits.nvidia.com/gpu",
            "limits nothing, because Kubernetes counts only requests of extended resources; must be nvidia.com/gpu or "
            "requests.nvidia.com/gpu",
            id="a limit of an extended resource",
        ),
        pytest.param("limits.fast.storageclass.storage.k8s.io/requests.storage", "", id="a class called limits.fast"),
        pytest.param("services.clusterip", "must be cpu,", id="that only the chart knows"),
        pytest.param("a b", "name part must consist of", id="no name"),
        pytest.param("storage", "", id="storage"),
        pytest.param("count/deployments.apps", "", id="objects of a group"),
        pytest.param("count/widgets.example.org", "", id="objects of a kind that may be installed later"),
        pytest.param("count/endpoints", "", id="objects of the core group"),
        pytest.param("count/cpu", "limits nothing: Kubernetes counts no cpu; must be count/ and", id="no objects"),
        pytest.param("count/Pods", "limits nothing: Kubernetes counts no Pods", id="upper case"),
        pytest.param("count/pods.core", "limits nothing: Kubernetes counts no pods.core", id="no such group"),
        pytest.param("count/deployment.apps", "limits nothing: Kubernetes counts no deployment.apps", id="singular"),
        pytest.param("count/Widgets.example.org", "limits nothing: Kubernetes counts no Widgets", id="no plural"),
        pytest.param("count/events", "limits nothing: Kubernetes counts no events", id="events"),
        pytest.param("count/services.nodeports", "limits nothing: Kubernetes counts no services.nodeports", id="ports"),
        pytest.param(
            "count/ingress.networking.k8s.io",
            "limits nothing: Kubernetes counts no ingress.networking.k8s.io; must be count/ingresses.networking.k8s.io "
            "or count/networkpolicies.networking.k8s.io",
            id="singular of a group with a dot",
        ),
        pytest.param(
            "count/clusterroles.rbac.authorization.k8s.io",
            "limits nothing: Kubernetes counts no clusterroles.rbac.authorization.k8s.io; must be count/rolebindings.",
            id="objects of the cluster",
        ),
        *(
            pytest.param(f"count/{each}", f"limits nothing: Kubernetes counts no {each}", id=each)
            for each in (
                "customresourcedefinitions.apiextensions.k8s.io",
                "storageclasses.storage.k8s.io",
                "apiservices.apiregistration.k8s.io",
                "tokenreviews.authentication.k8s.io",
                "localsubjectaccessreviews.authorization.k8s.io",
                "pods.metrics.k8s.io",
            )
        ),
        pytest.param("count/roles.rbac.authorization.k8s.io", "", id="objects of a group with a dot"),
        pytest.param("count/gateways.gateway.networking.k8s.io", "", id="a group that is no built-in one"),
        pytest.param("hugepages-2Mi", "", id="huge pages"),
        pytest.param("requests.hugepages-1Gi", "", id="requests of huge pages"),
        *(
            pytest.param(each, "limits nothing, because", id=each)
            for each in ("hugepages-foo", "hugepages-0", "hugepages-1.5", "requests.hugepages-x", "hugepages-2/x")
        ),
        pytest.param(
            "requests.requests.nvidia.com/gpu",
            "limits nothing, because no extended resource has a name that begins with requests.; must be "
            "requests.nvidia.com/gpu",
            id="requests of requests",
        ),
        pytest.param("requests.requests.fast.storageclass.storage.k8s.io/requests.storage", "", id="a class"),
        pytest.param("requests.limits.nvidia.com/gpu", "", id="an extended resource called limits"),
        pytest.param(
            "kubernetes.io/cpu",
            "limits nothing, because names with kubernetes.io/ are no extended resources",
            id="no extended resource",
        ),
        pytest.param("requests.x.kubernetes.io/y", "limits nothing, because names with", id="requests of none"),
        pytest.param("requests.deviceclass.resource.kubernetes.io/gpu", "", id="requests of a device class"),
        pytest.param(
            "gold.storageclass.storage.k8s.io/pods",
            "limits nothing; must be <class>.storageclass.storage.k8s.io/requests.storage or "
            "<class>.storageclass.storage.k8s.io/persistentvolumeclaims",
            id="not counted by storage class",
        ),
        pytest.param("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "", id="counted by storage class"),
        pytest.param(
            "gpu.deviceclass.resource.k8s.io/claims",
            "limits nothing; must be <class>.deviceclass.resource.k8s.io/devices",
            id="not counted by device class",
        ),
        pytest.param("my.storageclass.storage.k8s.io.example.org/gpu", "", id="a domain with the words of a class"),
        pytest.param("nvidia.com/gpu", "", id="an extended resource"),
        pytest.param("x" * 253 + ".example.com/gpu", "prefix part must be no more than 253", id="a long domain"),
    ],
)
def test_keys_that_a_tenant_can_have(key: str, expected: str) -> None:
    found = key_errors(key)

    assert found[0].startswith(expected) if expected else not found


def test_the_known_keys_that_a_refusal_names_are_valid() -> None:
    [message] = key_errors("limits.storage")
    assert "limits.storage" not in message
    named = message.removeprefix("must be ").replace(", or an extended resource such as", ",").split(", ")
    keys = [re.sub(r"<\w+>", "x.io", each.replace("<size>", "2Mi")) for each in named]
    assert {key: key_errors(key) for key in keys} == {key: [] for key in keys}


TOO_MUCH = "must be no more than 9223372036854775, because Kubernetes computes the thousandths of counts in 64 bits"


@pytest.mark.parametrize(
    "key", ["pods", "count/widgets.example.org", "gold.storageclass.storage.k8s.io/requests.storage"]
)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("1e3", [], id="a power of ten"),
        pytest.param("8Pi", [], id="a binary suffix"),
        pytest.param("9223372036854775", [], id="the greatest"),
        pytest.param("1500m", ["must be an integer"], id="a fraction"),
        pytest.param("0.9999", ["must be an integer"], id="a fraction that Kubernetes rounds"),
        pytest.param("9223372036854776", [TOO_MUCH], id="one more"),
        pytest.param("9Pi", [TOO_MUCH], id="bytes that Kubernetes rejects"),
        pytest.param("10Pi", [TOO_MUCH], id="more bytes that Kubernetes rejects"),
        pytest.param("1Ei", [TOO_MUCH], id="a power of two"),
        pytest.param("2Ei", [TOO_MUCH], id="one that Kubernetes accepts, because its thousandths wrap to zero"),
        pytest.param("1234567890123456789", [TOO_MUCH], id="many digits"),
    ],
)
def test_counts_are_whole_and_have_thousandths_that_kubernetes_can_compute(
    key: str, value: str, expected: list[str]
) -> None:
    assert value_errors(key, value) == expected
    assert value_errors("memory", value) == []


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("count/secrets", "secrets", id="counted under two names"),
        pytest.param("count/pods", "count/pods", id="all Pods, while `pods` leaves out those that have ended"),
        pytest.param("count/deployments.apps", "count/deployments.apps", id="counted under one name"),
        pytest.param("hugepages-2Mi", "requests.hugepages-2Mi", id="huge pages"),
        pytest.param("cpu", "requests.cpu", id="requests"),
        pytest.param("limits.cpu", "limits.cpu", id="limits"),
    ],
)
def test_a_resource_has_one_name(key: str, expected: str) -> None:
    assert canonical_key(key) == canonical_key(expected) == expected


def test_all_spellings_of_a_resource_are_compared() -> None:
    found = comparable_limits({"count/secrets": 3, "secrets": 4, "count/pods": 5, "hugepages-2Mi": "2Mi"}, EQUAL)

    assert {key: limit.amount for key, limit in found.items()} == {
        "secrets": 3 * NANO,
        "count/pods": 5 * NANO,
        "requests.hugepages-2Mi": 2 * 2**20 * NANO,
    }


def test_the_declared_amounts_are_those_of_valid_entries() -> None:
    found = declared_amounts({"cpu": "1500m", "memory": "1500u", "memry": 1, "pods": "x"})

    assert found == {"cpu": 1500 * 10**6, "memory": 2 * 10**6}


QUANTITIES = st.from_regex(r"[0-9]{1,9}(\.[0-9]{1,9})?(n|u|m|k|Ki|Mi|e-[0-9])?", fullmatch=True)


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage", "limits.cpu"]), QUANTITIES))
def test_what_is_compared_and_rendered_is_what_kubernetes_stores(quotas: dict[str, str | int]) -> None:
    """SetDefaults_ResourceList of kube-apiserver rounds up to thousandths."""
    for key, text in rendered(quotas).items():
        assert quantity.canonical(text) == text
        assert comparable_limits(quotas, COZYSTACK)[key].amount == quantity.parse(text) * NANO


KEYS = st.one_of(
    st.sampled_from(
        ["cpu", "memory", "storage", "pods", "count/x.y.z", "nvidia.com/gpu", "limits.cpu", "hugepages-1Gi"]
    ),
    st.from_regex(r"(count/|requests\.|limits\.|hugepages-)?[a-z.]{1,12}(/[a-z]{1,5})?", fullmatch=True),
)


@given(st.dictionaries(KEYS, st.integers(0, 100), max_size=5))
def test_a_resourcequota_has_only_keys_that_kubernetes_accepts(quotas: dict[str, str | int]) -> None:
    found = rendered_limits(quotas, COZYSTACK)

    assert not [key for key in found.valid if quota_name_errors(key)]
    assert len(found.problems) == sum(bool(key_errors(key)) for key in quotas)


@given(st.dictionaries(KEYS, st.integers(0, 100), max_size=5))
def test_what_was_rendered_is_rendered_as_it_is(quotas: dict[str, str | int]) -> None:
    once = rendered(quotas)

    assert rendered(once) == once or {"cpu", "memory", "ephemeral-storage"} & once.keys()
