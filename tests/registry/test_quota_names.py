from __future__ import annotations

import pytest

from registry.quota_names import is_whole, quota_name_errors


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "requests.memory",
        "limits.ephemeral-storage",
        "requests.storage",
        "pods",
        "services.loadbalancers",
        "hugepages-2Mi",
        "requests.hugepages-1Gi",
        "count/deployments.apps",
        "requests.nvidia.com/gpu",
        "limits.nvidia.com/gpu",
        "gold.storageclass.storage.k8s.io/requests.storage",
        "gpu.deviceclass.resource.k8s.io/devices",
    ],
)
def test_names_that_a_resourcequota_can_have(name: str) -> None:
    assert quota_name_errors(name) == []


@pytest.mark.parametrize(
    "name", ["storage", "memry", "limits.storage", "services.clusterip", "limits.hugepages-2Mi", "a b", "", "count/a/b"]
)
def test_names_that_kube_apiserver_rejects(name: str) -> None:
    assert quota_name_errors(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("pods", True, id="objects"),
        pytest.param("count/pods", True, id="objects by their kind"),
        pytest.param("gold.storageclass.storage.k8s.io/persistentvolumeclaims", True, id="of a class"),
        pytest.param("requests.nvidia.com/gpu", False, id="devices, whose requests Kubernetes does not check"),
        pytest.param("requests.cpu", False, id="a core"),
    ],
)
def test_whole_amounts(name: str, expected: bool) -> None:
    assert is_whole(name) is expected
