"""An answer of `tenants/diff` as unified diffs, one for each object, as `kubectl diff` prints them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

from apiserver.encoding.list_formats import to_yaml
from apiserver.meta.resource import Object
from tenant_apiserver.kubectl_tenant.tables import coloured, printable

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def has_differences(answer: Object) -> bool:
    """True also where all objects that differ are hidden."""
    status = answer.get("status") or {}
    return bool(status.get("changes") or status.get("hidden"))


def render_differences(answer: Object, *, colour: bool = False) -> str:
    """Empty if nothing differs."""
    status = answer.get("status") or {}
    lines = [printable(line) for change in status.get("changes") or () for line in _diff(change)]
    if colour:
        lines = [_painted(line) for line in lines]
    return "".join(f"{line}\n" for line in lines)


def render_notes(answer: Object) -> str:
    """Notes for stderr: the number of hidden objects, the problems that keep an object from being written, and that
    there are more tenants below."""
    status = answer.get("status") or {}
    notes = [printable(str(each)) for each in status.get("problems") or ()]
    if hidden := status.get("hidden"):
        objects = "1 object" if hidden == 1 else f"{hidden} objects"
        notes.append(f"{objects} that you may not see would change, too")
    if status.get("truncated"):
        notes.append("there are more tenants below, or more objects, which were not looked at")
    return "".join(f"note: {each}\n" for each in notes)


def as_stored_before(tenant: Object, stored: Object | None) -> Object:
    """`tenant`, as a dry run of `kubectl apply` has returned it, without the annotation by which apply remembers its
    file: `kubectl diff` leaves that out, too."""
    metadata = tenant["metadata"]
    annotations = {name: each for name, each in (metadata.get("annotations") or {}).items() if name != _LAST_APPLIED}
    known = ((stored or {}).get("metadata") or {}).get("annotations") or {}
    if _LAST_APPLIED in known:
        annotations[_LAST_APPLIED] = known[_LAST_APPLIED]
    rest = {name: each for name, each in metadata.items() if name != "annotations"}
    return {**tenant, "metadata": {**rest, **({"annotations": annotations} if annotations else {})}}


def as_sent(tenant: Object) -> Object:
    """A new `tenant` with the spec of the file: the dry run of `kubectl apply` has returned it with its defaults, which
    are not stored. Apply remembers the file in an annotation."""
    file = (tenant["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    sent = json.loads(file) if file else tenant
    rest = {name: each for name, each in as_stored_before(tenant, None).items() if name != "spec"}
    return {**rest, "spec": sent["spec"]} if "spec" in sent else rest


def _diff(change: Mapping[str, Any]) -> Iterator[str]:
    name = _file_name(change["object"])
    before, after = (_lines(change.get(each)) for each in ("before", "after"))
    return unified_diff(before, after, f"LIVE/{name}", f"PLANNED/{name}", lineterm="")


def _file_name(subject: Mapping[str, Any]) -> str:
    """As `kubectl diff` names files: group.version.kind.namespace.name, without the group of core kinds."""
    group_version = str(subject["apiVersion"]).replace("/", ".")
    return ".".join((group_version, subject["kind"], subject.get("namespace") or "", subject["name"]))


def _lines(obj: object) -> list[str]:
    return to_yaml(json.dumps(obj).encode()).decode().splitlines() if obj is not None else []


def _painted(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return line
    return coloured(line, {"+": "True", "-": "False"}.get(line[:1], ""), colour=True)
