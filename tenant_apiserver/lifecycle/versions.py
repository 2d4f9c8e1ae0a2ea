"""The versions of Kubernetes and of the software that tenants need, from the objects that tell them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from apiserver.meta.resource import Object
from tenant_apiserver.lifecycle.facts import ClusterFacts
from tenant_apiserver.lifecycle.findings import Check, Level
from tenant_apiserver.lifecycle.installed import OperatorStep
from tenant_apiserver.lifecycle.kinds import target
from tenant_apiserver.lifecycle.ownership import has_our_controllers

SECTION = "Versions"
_FLUX, _CILIUM, _CERT_MANAGER, _GATEWAY_API = "Flux", "Cilium", "cert-manager", "Gateway API"
VERSIONED_CRDS: Final[Mapping[str, str]] = {
    "helmreleases.helm.toolkit.fluxcd.io": _FLUX,
    "ciliumnetworkpolicies.cilium.io": _CILIUM,
    "certificates.cert-manager.io": _CERT_MANAGER,
    "gateways.gateway.networking.k8s.io": _GATEWAY_API,
}
"""The CustomResourceDefinitions that tell of each project."""
_TOLD_BY = (
    ("annotations", "gateway.networking.k8s.io/bundle-version"),
    ("labels", "app.kubernetes.io/version"),
    ("labels", "io.cilium.k8s.crd.schema.version"),
)
_IMAGES: Mapping[str, str] = {
    _FLUX: "helm-controller",
    _CILIUM: "operator-generic",
    _CERT_MANAGER: "cert-manager-controller",
}
"""The last part of the name of the image that tells the version of a project."""
_MISSING: Mapping[str, str] = {
    _FLUX: "Tenants and applications are stored as its HelmReleases",
    _CILIUM: "there are no SecurityGroups, which are stored as its CiliumNetworkPolicies",
}
"""The reason why every server of ours needs a project."""
_MISSING_FOR_CONTROLLERS: Mapping[str, str] = {
    _CILIUM: "tenants are isolated by NetworkPolicies instead",
    _CERT_MANAGER: "Gateways of tenants get no certificates",
    _GATEWAY_API: "tenants get no Gateways",
}
"""The reason why our controllers need a project. A shadow has none, and a live Cozystack has its own."""
_RELEASE_VERSION = "v2"
_OLDEST = (1, 30)


def judge_versions(facts: ClusterFacts, step: OperatorStep) -> Iterator[Check]:
    yield _kubernetes(facts.kubernetes, step)
    for name, project in VERSIONED_CRDS.items():
        crd = target("CustomResourceDefinition", name)
        if crd in facts.unreadable:
            remedy = "run preflight with credentials that may get CustomResourceDefinitions"
            yield Check(SECTION, Level.UNKNOWN, project, f"unknown: {facts.unreadable[crd]}", remedy)
        elif crd not in facts.found:
            yield _missing(project, with_controllers=has_our_controllers(facts, step))
        else:
            yield _present(project, facts.found[crd], facts.deployments or ())


def _kubernetes(text: str, step: OperatorStep) -> Check:
    match = re.match(r"v(\d+)\.(\d+)", text)
    if match is None:
        return Check(SECTION, Level.INFO, "Kubernetes", f"unknown version {text!r}")
    if (int(match[1]), int(match[2])) >= _OLDEST or step is OperatorStep.SHADOW:
        return Check(SECTION, Level.OK, "Kubernetes", text)
    why = f"{text} has no ValidatingAdmissionPolicies: nothing would limit what the server's account may write"
    return Check(SECTION, Level.FAIL, "Kubernetes", why, "upgrade to Kubernetes 1.30 or later first")


def _missing(project: str, *, with_controllers: bool) -> Check:
    effects = [_MISSING.get(project, ""), _MISSING_FOR_CONTROLLERS.get(project, "") if with_controllers else ""]
    message = f"not installed: {'; '.join(each for each in effects if each) or 'this step needs nothing of it'}"
    if project == _FLUX:
        remedy = "install Flux's helm-controller, or at least its CustomResourceDefinition of HelmReleases"
        return Check(SECTION, Level.FAIL, project, message, remedy)
    return Check(SECTION, Level.INFO, project, message)


def _present(project: str, crd: Object, deployments: Sequence[Object]) -> Check:
    metadata, spec = crd["metadata"], crd.get("spec") or {}
    told = next((found for field, key in _TOLD_BY if (found := (metadata.get(field) or {}).get(key))), "")
    if channel := (metadata.get("annotations") or {}).get("gateway.networking.k8s.io/channel"):
        told = f"{told} ({channel})"
    running = _image_version(_IMAGES.get(project, ""), deployments)
    versions = [each for each in spec.get("versions") or () if each.get("served")]
    served = ", ".join(f"{each['name']}{' (stored)' if each.get('storage') else ''}" for each in versions)
    parts = [f"CRD {told}" if told else "", f"runs {running}" if running else "", f"serves {served}"]
    message = "; ".join(each for each in parts if each)
    if project == _FLUX and _RELEASE_VERSION not in {each["name"] for each in versions}:
        remedy = f"upgrade Flux to 2.3 or later: HelmReleases are read and written as {_RELEASE_VERSION}"
        return Check(SECTION, Level.FAIL, project, message, remedy)
    return Check(SECTION, Level.OK, project, message)


def _image_version(image: str, deployments: Sequence[Object]) -> str:
    """The tag of the first container whose image has this name."""
    for deployment in deployments if image else ():
        for container in deployment["spec"]["template"]["spec"].get("containers") or ():
            name, _, tag = container.get("image", "").partition("@")[0].rpartition(":")
            if name.rpartition("/")[2] == image:
                return str(tag)
    return ""
