"""The kinds of the cluster that an installation consists of or depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from apiserver.meta.resource import Object
from registry.cluster.interface import (
    APISERVICES,
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    CONFIGMAPS,
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
        CONFIGMAPS,
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
"""By kind, all that our manifests contain, but for those of cert-manager and the Prometheus Operator."""

PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
PART_OF: Final = "tenant-apiserver"
PROXY: Final = "tenant-apiserver-proxy"
"""The name of the proxy's objects, of their namespace and their label."""


class TargetObject(NamedTuple):
    """An object of the cluster, which need not exist. `namespace` is empty for cluster-scoped ones."""

    resource: ClusterResource
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.kind} {self.name}{where}"


class Applier(NamedTuple):
    """A release of Helm or an object of Flux that applies an object, by the marks of the object. `flux_kind` is the
    kind of Flux' object, which has the name of the release unless its own mark says otherwise."""

    title: str
    flux_kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.title} {self.namespace}/{self.name}" if self.name else self.title

    @property
    def release(self) -> TargetObject | None:
        """The HelmRelease that would put the object back; there need not be one of a release of Helm."""
        is_named = self.flux_kind == HELMRELEASES.kind and self.namespace and self.name
        return TargetObject(HELMRELEASES, self.namespace, self.name) if is_named else None


_OWNERS = (
    ("helm.toolkit.fluxcd.io/", "Flux's HelmRelease", HELMRELEASES.kind),
    ("meta.helm.sh/release-", "Helm release", HELMRELEASES.kind),
    ("kustomize.toolkit.fluxcd.io/", "Flux's Kustomization", "Kustomization"),
)
"""The labels and annotations by which Helm and Flux mark what they own: how the keys of name and namespace begin, what
it is, and the kind of Flux' object. A HelmRelease marks what its release of Helm marks, too."""


def target(kind: str, name: str, namespace: str = "") -> TargetObject:
    return TargetObject(INSTALLED_KINDS[kind], namespace, name)


def is_ours(obj: Object) -> bool:
    """True if the object has the label of an installation of ours, of the server or the proxy, and no mark of another
    owner."""
    labels = obj["metadata"].get("labels") or {}
    return labels.get(PART_OF_LABEL) in (PART_OF, PROXY) and foreign_owner(obj) is None


def foreign_owner(obj: Object) -> Applier | None:
    """The owner that would put the object back, as its marks name it, unless it has our name."""
    return next((owner for owner in _owners(obj["metadata"]) if owner.name not in (PART_OF, PROXY)), None)


def _owners(metadata: Mapping[str, Any]) -> Sequence[Applier]:
    """Those with a name first: Flux has other annotations, too, such as that of drift detection."""
    marks = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
    found = [
        Applier(title, kind, marks.get(f"{key}namespace", ""), marks.get(f"{key}name", ""))
        for key, title, kind in _OWNERS
        if any(each.startswith(key) for each in marks)
    ]
    return sorted(found, key=lambda owner: not owner.name)


def owner_of(obj: Object) -> str:
    """The owner of an object, as Helm, Flux or else the managers of its fields name it."""
    if owners := _owners(obj["metadata"]):
        return f"owned by {owners[0]}"
    managers = sorted({each.get("manager", "") for each in obj["metadata"].get("managedFields") or ()} - {""})
    return f"written by {', '.join(managers)}" if managers else "of an unknown owner"
