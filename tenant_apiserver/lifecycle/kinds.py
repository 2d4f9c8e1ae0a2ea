"""The kinds of the cluster that an installation consists of or depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from apiserver.meta.resource import Object
from registry.cluster.interface import (
    APISERVICES,
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    HELMRELEASES,
    NAMESPACES,
    NETWORKPOLICIES,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    SERVICES,
    VALIDATINGADMISSIONPOLICIES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
    ClusterResource,
)

DEPLOYMENTS = ClusterResource("apps", "v1", "deployments", "Deployment")
PODDISRUPTIONBUDGETS = ClusterResource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CRDS = ClusterResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
INSTALLED_KINDS: Final = {
    each.kind: each
    for each in (
        APISERVICES,
        CLUSTERROLEBINDINGS,
        CLUSTERROLES,
        CRDS,
        DEPLOYMENTS,
        NAMESPACES,
        NETWORKPOLICIES,
        PODDISRUPTIONBUDGETS,
        ROLEBINDINGS,
        ROLES,
        SERVICEACCOUNTS,
        SERVICES,
        VALIDATINGADMISSIONPOLICIES,
        VALIDATINGADMISSIONPOLICYBINDINGS,
    )
}
"""By kind, all that our manifests contain, but for those of cert-manager."""

PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
PART_OF: Final = "tenant-apiserver"
PROXY: Final = "tenant-apiserver-proxy"
"""The name of the proxy's objects, of their namespace and their label."""
_OWNERS = (
    ("meta.helm.sh/", "Helm release", "release-"),
    ("helm.toolkit.fluxcd.io/", "Flux's HelmRelease", ""),
    ("kustomize.toolkit.fluxcd.io/", "Flux's Kustomization", ""),
)
"""The labels and annotations by which Helm and Flux mark what they own: their prefix, what it is, and how the keys of
its name and namespace go on."""


_BY_HELMRELEASE = ("Helm release", "Flux's HelmRelease")


class TargetObject(NamedTuple):
    """An object of the cluster, which need not exist. `namespace` is empty for cluster-scoped ones."""

    resource: ClusterResource
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.kind} {self.name}{where}"


def target(kind: str, name: str, namespace: str = "") -> TargetObject:
    return TargetObject(INSTALLED_KINDS[kind], namespace, name)


def is_ours(obj: Object) -> bool:
    """True if the object has the label of an installation of ours, of the server or the proxy, and no mark of another
    owner."""
    labels = obj["metadata"].get("labels") or {}
    return labels.get(PART_OF_LABEL) in (PART_OF, PROXY) and not foreign_owner(obj)


def foreign_owner(obj: Object) -> str:
    """The release of Helm or the object of Flux that would put the object back, as their marks name it; empty if there
    is none, or one of our name."""
    for title, namespace, name in _marks(obj["metadata"]):
        if name not in (PART_OF, PROXY):
            return f"{title} {namespace}/{name}" if name else title
    return ""


def owning_release(obj: Object) -> TargetObject | None:
    """The HelmRelease of Flux that would put the object back, by its own mark or by Helm's, whose release has the name
    of the HelmRelease unless that says otherwise."""
    for title, namespace, name in _marks(obj["metadata"]):
        if title in _BY_HELMRELEASE and namespace and name not in ("", PART_OF, PROXY):
            return TargetObject(HELMRELEASES, namespace, name)
    return None


def _marks(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    marks = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
    for prefix, title, infix in _OWNERS:
        if any(key.startswith(f"{prefix}{infix}") for key in marks):
            yield title, marks.get(f"{prefix}{infix}namespace", ""), marks.get(f"{prefix}{infix}name", "")


def owner_of(obj: Object) -> str:
    """The owner of an object, as Helm, Flux or else the managers of its fields name it."""
    if owners := [f"{title} {namespace}/{name}" for title, namespace, name in _marks(obj["metadata"])]:
        return f"owned by {owners[0].removesuffix(' /')}"
    managers = sorted({each.get("manager", "") for each in obj["metadata"].get("managedFields") or ()} - {""})
    return f"written by {', '.join(managers)}" if managers else "of an unknown owner"
