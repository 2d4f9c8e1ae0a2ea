"""The platform's Package of Cozystack: which of its values are settings of ours, and what goes before what. Pure.

The Package has only what was changed: its charts supply the rest. Null means unset, as in Helm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.meta.resource import Object
from controller.platform.documents import settings_from
from controller.platform.settings import PlatformSettings
from registry.cluster.interface import ClusterResource

PACKAGES = ClusterResource("cozystack.io", "v1alpha1", "packages", "Package", namespaced=False)
PACKAGE = "cozystack.cozystack-platform"

_Keys = Mapping[str, "_Keys | None"]


def _leaves(*names: str) -> _Keys:
    return dict.fromkeys(names)


# Other keys of these sections are ours alone, and belong to the file.
_KNOWN: _Keys = {
    "publishing": {
        **_leaves("host", "ingressName", "ingressNameAdmin", "exposedServices"),
        "certificates": {
            **_leaves("solver", "issuerName", "wildcardSecretName"),
            "dns01": {
                **_leaves("provider"),
                "cloudflare": _leaves("secretName", "secretKey"),
                "route53": _leaves("region", "accessKeyID", "secretName", "secretKey"),
                "digitalocean": _leaves("secretName", "secretKey"),
                "rfc2136": _leaves("nameserver", "tsigKeyName", "tsigAlgorithm", "secretName", "secretKey"),
            },
        },
    },
    "gateway": _leaves("enabled", "attachedNamespaces"),
    "resources": _leaves("cpuAllocationRatio", "memoryAllocationRatio", "ephemeralStorageAllocationRatio"),
}
CHART_DEFAULTS: Mapping[str, Any] = {
    "publishing": {"exposedServices": ["api", "dashboard", "vm-exportproxy", "cdi-uploadproxy"]}
}
"""Defaults of the platform's chart that differ from ours. The chart's host, example.org, is nobody's domain."""


def known_values(package: Object) -> Mapping[str, Any]:
    """The values of the Package that are settings, structured like those of the file. A section of a wrong type is
    kept, so that its validation fails. Raises ValueError if the values are no mapping."""
    found: Any = package.get("spec") or {}
    for key in ("components", "platform", "values"):
        found = (found.get(key) or {}) if isinstance(found, Mapping) else found
    if not isinstance(found, Mapping):
        raise ValueError("spec.components.platform.values: must be a mapping")
    return _known(found, _KNOWN)


def _known(values: Mapping[str, Any], keys: _Keys) -> Mapping[str, Any]:
    found = {}
    for key, below in keys.items():
        value = values.get(key)
        if value is not None:
            found[key] = _known(value, below) if below is not None and isinstance(value, Mapping) else value
    return found


def combine(file: PlatformSettings, package: Mapping[str, Any] | None, root_host: str) -> PlatformSettings:
    """The settings in force: `root_host` of the ConfigMap, unless it is empty, then the known values of the Package,
    those that the file sets, and those of the platform's chart; without a Package those of the file. Raises ValueError
    with one line that names every wrong key."""
    if package is None and not root_host:
        return file
    layers: list[Mapping[str, Any]] = [file.model_dump(by_alias=True, exclude_unset=True)]
    if package is not None:
        layers = [CHART_DEFAULTS, *layers, package]
    if root_host:
        layers.append({"publishing": {"host": root_host}})
    merged: Mapping[str, Any] = {}
    for layer in layers:
        merged = _merged(merged, layer)
    return settings_from(merged)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    result = dict(below)
    for key, value in above.items():
        before = result.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        result[key] = _merged(before or {}, value) if both else value
    return result
