"""Converts PersistentVolumes to what lists show of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apiserver.meta.resource import Column, Object, Resource

_SHOWN: Final = ("name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels")
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_UNSET: Final = "<unset>"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def claim_namespace(volume: Object) -> str:
    """The namespace of the claim that a PersistentVolume is for, empty without one. It is kept when the claim is
    deleted: the volume is Released, and has the data of that namespace."""
    return str(((volume.get("spec") or {}).get("claimRef") or {}).get("namespace") or "")


def to_visible_volume(volume: Object) -> Object:
    """A PersistentVolume without its annotations and managed fields. Annotations can hold what only administrators
    should read; the class that an old one names is in the spec."""
    metadata, spec = volume["metadata"], dict(volume.get("spec") or {})
    if old_class := (metadata.get("annotations") or {}).get(_CLASS_ANNOTATION):
        spec["storageClassName"] = old_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {field: metadata[field] for field in _SHOWN if metadata.get(field)},
        "spec": spec,
        "status": volume.get("status") or {},
    }


def claimed_volume_resource() -> Resource:
    """PersistentVolumes with a claim, in lists and watches, with kube-apiserver's columns (printers, 1.36)."""
    return Resource(
        group="",
        version="v1",
        kind="PersistentVolume",
        plural="persistentvolumes",
        singular="persistentvolume",
        namespaced=False,
        namespace_of=claim_namespace,
        short_names=("pv",),
        properties={"spec": {"type": "object"}, "status": {"type": "object"}},
        columns=(
            Column("Capacity", description="The capacity of the volume."),
            Column("Access Modes", description="The ways in which the volume can be mounted."),
            Column("Reclaim Policy", description="The fate of the volume when it is released from its claim."),
            Column("Status", description="The phase of the volume."),
            Column("Claim", description="The namespace and the name of the claim."),
            Column("StorageClass", description="The name of the StorageClass."),
            Column("VolumeAttributesClass", description="The name of the VolumeAttributesClass."),
            Column("Reason", description="The reason of the phase."),
            Column("VolumeMode", description="Filesystem or Block.", priority=1),
        ),
        cells=_cells,
    )


def _cells(volume: Object) -> Sequence[str]:
    spec, status = volume.get("spec") or {}, volume.get("status") or {}
    claim = spec.get("claimRef") or {}
    modes = dict.fromkeys(_MODES[mode] for mode in spec.get("accessModes") or () if mode in _MODES)
    return (
        (spec.get("capacity") or {}).get("storage", ""),
        ",".join(mode for mode in _MODES.values() if mode in modes),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if volume["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or _UNSET,
        status.get("reason", ""),
        spec.get("volumeMode") or _UNSET,
    )
