"""The resource names that a ResourceQuota can limit, as kube-apiserver validates them, and those that the quota
controller counts (Kubernetes 1.36). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction

from apiserver.meta.label_validation import qualified_name_errors
from registry import quantity

COMPUTE = ("cpu", "memory", "ephemeral-storage")
COUNTED = (
    *("pods", "services", "services.nodeports", "services.loadbalancers", "replicationcontrollers"),
    *("resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"),
)
STANDARD = frozenset(
    (
        *COMPUTE,
        *(f"{part}.{name}" for part in ("requests", "limits") for name in COMPUTE),
        "requests.storage",
        *COUNTED,
    )
)
"""The names without a domain."""

_REQUESTS = "requests."
_HUGE_PAGES = "hugepages-"
_NOT_STANDARD = ("must be a standard resource type or fully qualified", "must be a standard resource for quota")
_NOT_WHOLE = "must be an integer"
LARGEST_WHOLE = (2**63 - 1) // 1000
"""kube-apiserver examines the thousandths of whole amounts in 64 bits. It rejects most larger amounts, and accepts some
in one spelling that it rejects in another."""
_TOO_MUCH = f"must be no more than {LARGEST_WHOLE}, because Kubernetes computes the thousandths of counts in 64 bits"

OF_STORAGE_CLASS = tuple(
    f".storageclass.storage.k8s.io/{resource}" for resource in ("requests.storage", "persistentvolumeclaims")
)
OF_DEVICE_CLASS = (".deviceclass.resource.k8s.io/devices",)
"""The ends of the names of what is counted for each class."""
_NATIVE = "kubernetes.io/"
_REQUESTS_OF_DEVICE_CLASS = "requests.deviceclass.resource.kubernetes.io/"
_BUILT_IN: Mapping[str, tuple[str, ...]] = {
    "": (
        *("configmaps", "endpoints", "limitranges", "persistentvolumeclaims", "pods", "podtemplates"),
        *("replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "services"),
    ),
    "apps": ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "policy": ("poddisruptionbudgets",),
    "admissionregistration.k8s.io": (),
    "apiextensions.k8s.io": (),
    "apiregistration.k8s.io": (),
    "authentication.k8s.io": (),
    "authorization.k8s.io": (),
    "certificates.k8s.io": ("podcertificaterequests",),
    "coordination.k8s.io": ("leasecandidates", "leases"),
    "discovery.k8s.io": ("endpointslices",),
    "events.k8s.io": (),
    "flowcontrol.apiserver.k8s.io": (),
    "internal.apiserver.k8s.io": (),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "node.k8s.io": (),
    "rbac.authorization.k8s.io": ("rolebindings", "roles"),
    "resource.k8s.io": ("resourceclaims", "resourceclaimtemplates"),
    "scheduling.k8s.io": ("podgroups", "workloads"),
    "storage.k8s.io": ("csistoragecapacities",),
    "storagemigration.k8s.io": (),
    **dict.fromkeys(("metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"), ()),
}
"""The kinds that Kubernetes counts of its own groups: those of namespaces that are stored, but not Events."""
_PLURAL_AND_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?){2,}")


def quota_name_errors(name: str) -> list[str]:
    """The reasons why kube-apiserver rejects `name` as a key of a ResourceQuota's `spec.hard`."""
    if "/" in name:
        return qualified_name_errors(name)
    if name in STANDARD or is_huge_pages(name):
        return qualified_name_errors(name)
    # `storage` is a resource, but not one of a quota
    return list(_NOT_STANDARD[1:] if name == "storage" else _NOT_STANDARD)


def is_huge_pages(name: str) -> bool:
    """True for `hugepages-2Mi` and `requests.hugepages-2Mi`."""
    return name.removeprefix(_REQUESTS).startswith(_HUGE_PAGES)


def is_whole(name: str) -> bool:
    """True if kube-apiserver rejects fractions of this resource: it counts objects or devices."""
    if "/" in name:
        return "kubernetes.io/" not in name and not name.startswith(_REQUESTS)
    return name in COUNTED


def whole_errors(amount: Fraction) -> list[str]:
    """The reasons why an amount is none of a resource that is whole. kube-apiserver accepts no amount for which this is
    empty and rejects another; it also accepts 0.9999, which it rounds."""
    if amount.denominator != 1:
        return [_NOT_WHOLE]
    return [_TOO_MUCH] if amount > LARGEST_WHOLE else []


def uncounted_errors(name: str) -> list[str]:
    """The reason why nothing is counted under a name that kube-apiserver accepts. Kinds of other groups with a dot may
    be installed later."""
    if name.startswith("count/"):
        return _count_errors(name.removeprefix("count/"))
    if name.endswith((*OF_STORAGE_CLASS, *OF_DEVICE_CLASS)):
        return []
    if is_huge_pages(name):
        return _page_size_errors(name.removeprefix(_REQUESTS).removeprefix(_HUGE_PAGES))
    if name.startswith(_REQUESTS * 2):
        why = f"limits nothing, because no extended resource has a name that begins with {_REQUESTS}"
        return [f"{why}; must be {name.removeprefix(_REQUESTS)}"]
    if name.startswith(_REQUESTS) and _NATIVE in name and not name.startswith(_REQUESTS_OF_DEVICE_CLASS):
        return [f"limits nothing, because names with {_NATIVE} are no extended resources"]
    return []


def _page_size_errors(size: str) -> list[str]:
    """kube-apiserver rejects Pods with pages of a size that is none."""
    with suppress(ValueError):
        if quantity.parse_limit(size) and not whole_errors(quantity.parse(size)):
            return []
    return [f"limits nothing, because {size} is no size of pages; must be a quantity, as in {_HUGE_PAGES}2Mi"]


def _count_errors(counted: str) -> list[str]:
    plural, _, group = counted.partition(".")
    known = _BUILT_IN.get(group)
    if known is None:
        if _PLURAL_AND_GROUP.fullmatch(counted):
            return []
    elif plural in known:
        return []
    why = f"limits nothing: Kubernetes counts no {counted}"
    if group and known is not None:
        kinds = " or ".join(f"count/{each}.{group}" for each in known)
        return [f"{why}; must be {kinds}" if kinds else why]
    kinds = ", ".join(_BUILT_IN[""])
    return [f"{why}; must be count/ and {kinds}, or a plural and its group, such as count/deployments.apps"]
