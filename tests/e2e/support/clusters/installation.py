"""Installs what our server needs from the manifests: once before it runs, and the APIServices that lead to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from tests.e2e.support.cluster_networks import network_objects
from tests.e2e.support.clusters.control_plane import crd_flags
from tests.e2e.support.clusters.processes import REPOSITORY

Kubectl = Callable[..., object]
"""Runs kubectl with these arguments as an administrator; fails if kubectl does."""
_MANIFESTS = REPOSITORY / "manifests"
_OVERLAYS = _MANIFESTS / "overlays"
_REGISTRATION = _OVERLAYS / "register"
TENANTSECRETS = _MANIFESTS / "components" / "tenantsecrets"
_ESTABLISHED_SECONDS = 120


def install(kubectl: Kubectl, directory: Path, crds: Path) -> None:
    """Installs the CRDs of a folder and our unchanged manifests, with the component by which TenantSecrets are served,
    except that the Service leads to a process on this machine instead of Pods, and the objects that tell the networks
    of the cluster. Writes into `directory`."""
    kubectl("apply", "--server-side", *crd_flags(crds))
    spec = {"type": "ExternalName", "externalName": "localhost"}
    bases = [_MANIFESTS / "base", *(_OVERLAYS / name for name in ("prerequisites", "cozy-tenant-roles"))]
    _apply(kubectl, directory / "overlay", bases, _replacement("Service", "/spec", spec), [TENANTSECRETS])
    kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={_ESTABLISHED_SECONDS}s")
    networks = directory / "networks.json"
    networks.write_text(json.dumps(network_objects()))
    # an apply would reset the status of the Node
    kubectl("create", f"--filename={networks}")


def install_crds(kubectl: Kubectl, directory: Path, crds: Path) -> None:
    """Installs the CRDs of a folder only."""
    kubectl("apply", "--server-side", *crd_flags(crds))
    kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={_ESTABLISHED_SECONDS}s")


def register(kubectl: Kubectl, directory: Path, port: int) -> None:
    """Creates the APIServices, which lead to a port of this machine."""
    _apply(kubectl, directory / "registration", [_REGISTRATION], _replacement("APIService", "/spec/service/port", port))


def _apply(
    kubectl: Kubectl,
    overlay: Path,
    bases: Sequence[Path],
    patch: Mapping[str, object],
    components: Sequence[Path] = (),
) -> None:
    overlay.mkdir()
    document: dict[str, object] = {"patches": [patch]}
    for field, paths in (("resources", bases), ("components", components)):
        document[field] = [os.path.relpath(path, overlay.resolve()) for path in paths]
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(document))
    kubectl("apply", "--server-side", "-k", str(overlay))


def _replacement(kind: str, path: str, value: object) -> dict[str, object]:
    operations = [{"op": "replace", "path": path, "value": value}]
    return {"target": {"kind": kind}, "patch": yaml.safe_dump(operations)}
