"""The rules of kstatus (sigs.k8s.io/cli-utils) for a kind that it does not know. Flux, Helm's --wait of newer versions
and Config Sync decide by them whether an object is up to date. Pure."""

from __future__ import annotations

from typing import Any, Literal

Verdict = Literal["Terminating", "InProgress", "Failed", "Current"]


def kstatus(obj: dict[str, Any]) -> Verdict:
    metadata, status = obj["metadata"], obj.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "generation" in metadata and status.get("observedGeneration", metadata["generation"]) != metadata["generation"]:
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    # without the condition Ready, an object counts as up to date
    return "InProgress" if conditions.get("Ready") in ("False", "Unknown") else "Current"
