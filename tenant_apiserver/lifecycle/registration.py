"""Moves an APIService to our Service and back again, exactly. Pure.

The Service, the CA and cert-manager's annotation change in one write, so that no request meets a server whose
certificate it does not expect, and cert-manager's cainjector never writes the CA of one server for the other. The
former form is kept in an annotation of the APIService itself.

An upgrade of the former server's chart that Helm merges, as Helm 3 does, writes only the fields that differ between two
versions of the chart, also into an APIService that leads to us. A move keeps what it has changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.json.values import deep_copy
from apiserver.meta.resource import Object
from tenant_apiserver.lifecycle.facts import VERSION, api_service_name
from tenant_apiserver.lifecycle.installed import NAMESPACE, SERVER
from tenant_apiserver.lifecycle.kinds import PART_OF, PART_OF_LABEL

FORMER_ANNOTATION = "apps.cozystack.io/former-registration"
"""JSON `{"spec": …, "annotations": {…}, "port": 443}`: the whole spec, the annotations of cert-manager, and the port
of our Service."""
_INJECT_PREFIX = "cert-manager.io/inject-"
_INJECT = "cert-manager.io/inject-ca-from"
_PRIORITIES = {"groupPriorityMinimum": 1000, "versionPriority": 200}


@dataclass(frozen=True, slots=True)
class OurServer:
    """The CA of our serving certificate, base64, and the Certificate from which cert-manager keeps it current, as
    `namespace/name`; empty if the server does that itself. `port` is that of the Service."""

    bundle: str
    certificate: str = ""
    port: int = 443


class NotSaved(ValueError):
    """The APIService does not say what it was before."""


def moved_to_us(api_service: Object, ours: OurServer) -> Object:
    """The APIService as it is to be written, with the resourceVersion that was read. The argument is not changed."""
    moved = repaired(api_service, ours)
    metadata = moved["metadata"]
    annotations: dict[str, str] = dict(metadata.get("annotations") or {})
    injected = {key: annotations.pop(key) for key in [*annotations] if key.startswith(_INJECT_PREFIX)}
    # with its CA, so that no request fails before cert-manager's cainjector has seen the move back
    former = {"spec": moved["spec"], "annotations": injected, "port": ours.port}
    annotations[FORMER_ANNOTATION] = json.dumps(former, sort_keys=True)
    metadata["annotations"] = annotations | _injection(ours)
    moved["spec"] = {key: moved["spec"][key] for key in ("group", "version", *_PRIORITIES)} | _service(ours)
    return moved


def repaired(api_service: Object, ours: OurServer) -> Object:
    """A copy, with the CA of its own server. An upgrade of that server's chart that puts the APIService back after a
    move leaves our CA in it, as the chart names none: cert-manager writes it, if it runs. A merged one that renames the
    Service also leaves our port, and the APIService without cert-manager's annotation."""
    found = deep_copy(api_service)
    metadata, spec = found["metadata"], found["spec"]
    try:
        former = _former(metadata.get("annotations") or {})
    except NotSaved:
        return found
    service, former_service = spec.get("service") or {}, former["spec"].get("service") or {}
    if not service or _is_ours(service) or spec.get("caBundle") != ours.bundle or "caBundle" not in former["spec"]:
        return found
    spec["caBundle"] = former["spec"]["caBundle"]
    metadata["annotations"] = {**former["annotations"], **metadata["annotations"]}
    if service.get("name") != former_service.get("name") and service.get("port") == former.get("port"):
        service["port"] = former_service.get("port")
    return found


def moved_back(api_service: Object) -> Object:
    """The APIService in its former form, with what an upgrade has changed since. Raises NotSaved."""
    metadata = api_service["metadata"]
    former = _former(metadata.get("annotations") or {})
    back = deep_copy(api_service)
    annotations = {
        key: value
        for key, value in (back["metadata"].get("annotations") or {}).items()
        if key != FORMER_ANNOTATION and not key.startswith(_INJECT_PREFIX)
    }
    annotations |= former["annotations"]
    back["metadata"].pop("annotations", None)
    if annotations:
        back["metadata"]["annotations"] = annotations
    back["spec"] = former["spec"] | {key: back["spec"][key] for key in _PRIORITIES if key in back["spec"]}
    if has_other_port(api_service):
        back["spec"]["service"]["port"] = api_service["spec"]["service"]["port"]
    return back


def has_other_port(api_service: Object) -> bool:
    """True if it leads to our Service, at a port that an upgrade has written since: nobody answers there."""
    service = api_service["spec"].get("service") or {}
    try:
        former = _former(api_service["metadata"].get("annotations") or {})
    except NotSaved:
        return False
    # earlier versions did not keep the port
    port = former.get("port", service.get("port"))
    return _is_ours(service) and bool(former["spec"].get("service")) and service.get("port") != port


def is_returnable(moved: Object, before: Object) -> bool:
    """True if `moved_back` would make of `moved` exactly what it was, but for what an earlier move has left."""
    try:
        back = moved_back(moved)
    except NotSaved:
        return False
    return _written(back) == _written(before)


def _written(api_service: Object) -> object:
    annotations = api_service["metadata"].get("annotations") or {}
    return api_service["spec"], {key: value for key, value in annotations.items() if key != FORMER_ANNOTATION}


def new_registration(group: str, ours: OurServer) -> Object:
    """An APIService of a group that nobody serves, as overlays/register has it."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": api_service_name(group),
            "labels": {PART_OF_LABEL: PART_OF},
            **({"annotations": found} if (found := _injection(ours)) else {}),
        },
        "spec": {"group": group, "version": VERSION, **_PRIORITIES, **_service(ours)},
    }


def is_moved(api_service: Object) -> bool:
    """True if `moved_back` knows its former form, also if somebody else has put it back since."""
    return FORMER_ANNOTATION in (api_service["metadata"].get("annotations") or {})


def last_mover(api_service: Object) -> str:
    """The field manager that has written last where an APIService leads; "somebody" if that is not known."""
    entries = api_service["metadata"].get("managedFields") or ()
    movers = [each for each in entries if _service_fields(each)]
    return str(max(movers, key=lambda each: each.get("time", ""))["manager"]) if movers else "somebody"


def _service_fields(entry: Object) -> Mapping[str, object]:
    fields: Mapping[str, Any] = entry.get("fieldsV1") or {}
    found: Mapping[str, object] = fields.get("f:spec", {}).get("f:service", {})
    return found


def _former(annotations: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        former = json.loads(annotations[FORMER_ANNOTATION])
        spec, service = former["spec"], former["spec"].get("service", {})
        is_whole = isinstance(service, dict) and {"group", "version"} <= spec.keys()
        if is_whole and isinstance(former["annotations"], dict):
            return dict(former)
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    raise NotSaved(f"the annotation {FORMER_ANNOTATION} does not say what it was before")


def _is_ours(service: Mapping[str, Any]) -> bool:
    return (service.get("namespace"), service.get("name")) == (NAMESPACE, SERVER)


def _injection(ours: OurServer) -> dict[str, str]:
    return {_INJECT: ours.certificate} if ours.certificate else {}


def _service(ours: OurServer) -> dict[str, Any]:
    return {"service": {"namespace": NAMESPACE, "name": SERVER, "port": ours.port}, "caBundle": ours.bundle}
