"""The conditions Ready and ReleaseReady of a Tenant as clients see them. Pure.

The reconciler stores what it found of its own parts. The rest follows from the HelmRelease itself whenever it is read:
so a change of spec, and each report of Flux, shows at once, on every replica, and costs no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.meta.resource import Object
from registry.application.release_metadata import parse_json_annotation, string_entries
from registry.names import FINDINGS_ANNOTATION, MANAGED_FIELDS_ANNOTATION, TENANT_FINALIZER

READY = "Ready"
RELEASE_READY = "ReleaseReady"
"""The state of the HelmRelease. The reconciler stores it if the Tenant asks for something that a chart installs."""
PROGRESSING = "Progressing"
NEVER = -1
"""status.observedGeneration before the first look. kstatus takes an object without this field for up to date."""
TAKEN_OVER = "{}"
"""The annotation of the findings of a Tenant that Flux alone spoke for until our controllers took it over. It keeps the
Tenant ready until they have looked at it."""

_NOT_SEEN = (
    "no controller has looked at the tenant yet; if that lasts, check that Flux or a tenant-apiserver runs controllers"
)
_CHANGED = "no controller has looked at the tenant since its last change"
_CHANGED_FOR_FLUX = "Flux has not looked at the tenant since its last change"
_SUSPENDED = "its HelmRelease is suspended, so Flux does not look at the tenant"
_UNREADABLE = "its HelmRelease cannot be read as a tenant; the log of tenant-apiserver says why"
_TIME = "lastTransitionTime"
_DECIDING_FIELDS = ("status", _TIME, "reason", "message")


def observed_generation(conditions: Iterable[Mapping[str, Any]]) -> int:
    """The generation that the reconciler's conditions are about: all are written together. NEVER without any."""
    return min((each["observedGeneration"] for each in conditions if "observedGeneration" in each), default=NEVER)


def is_left_to_flux(release: Object) -> bool:
    """True while no controller of ours has looked at the Tenant, nor announced itself by the finalizer: it was stored
    by cozystack-api, past every API, or while our controllers are off. Nothing but the HelmRelease decides, so that
    all replicas show the same at one resourceVersion."""
    metadata = release["metadata"]
    findings = string_entries(metadata.get("annotations")).get(FINDINGS_ANNOTATION)
    if findings is None:
        return TENANT_FINALIZER not in (metadata.get("finalizers") or ())
    return findings == TAKEN_OVER


def is_ready_by_flux(release: Object) -> bool:
    """True if the Tenant is left to Flux, which says that it is ready."""
    conditions = (release.get("status") or {}).get("conditions") or ()
    said = next((each for each in conditions if each.get("type") == READY), None)
    reported = reported_release(release, said)
    return reported is not None and reported.get("status") == "True" and is_left_to_flux(release)


def shown_generation(stored: Iterable[Mapping[str, Any]], release: Object, flux_ready: Mapping[str, Any] | None) -> int:
    """The generation that the condition Ready of `shown_conditions` is about."""
    observed = observed_generation(stored)
    if observed != NEVER or flux_ready is None or not is_left_to_flux(release):
        return observed
    generation = flux_ready.get("observedGeneration", release["metadata"].get("generation"))
    return generation if isinstance(generation, int) else NEVER


def reported_release(release: Object, flux_ready: Mapping[str, Any] | None) -> Object | None:
    """ReleaseReady as Flux reports it. None if Flux has not looked at the current generation, or the HelmRelease is
    suspended. `flux_ready` is the condition Ready of the HelmRelease."""
    if flux_ready is None or is_suspended(release):
        return None
    observed, generation = flux_ready.get("observedGeneration"), release["metadata"].get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        return None
    if flux_ready.get("status") == "True":
        return {**flux_ready, "type": RELEASE_READY}
    metadata = release["metadata"]
    message = f"Flux about HelmRelease {metadata['namespace']}/{metadata['name']}: {flux_ready.get('message', '')}"
    return {**flux_ready, "type": RELEASE_READY, "message": message}


def is_suspended(release: Object) -> bool:
    spec = release.get("spec")
    return isinstance(spec, dict) and spec.get("suspend") is True


def with_release(stored: Mapping[str, Object], reported: Object | None) -> Mapping[str, Object]:
    """The reconciler's conditions by type, with ReleaseReady as it is `reported`, and Ready lowered by it: False is
    stronger than Unknown, and that than True. A Tenant that has no ReleaseReady asks for nothing that a chart
    installs."""
    release = stored.get(RELEASE_READY)
    if release is None:
        return stored
    if reported is not None:
        # Flux may name a time before it was asked for
        release = {**reported, **_latest(release, reported)}
    conditions = {**stored, RELEASE_READY: release}
    if READY in stored:
        conditions[READY] = _lowered(stored[READY], release)
    return conditions


def shown_conditions(
    stored: Mapping[str, Object], release: Object, flux_ready: Mapping[str, Any] | None
) -> Mapping[str, Object]:
    """The reconciler's `stored` conditions by type as clients see them: Ready is Unknown while they are about an
    earlier generation of the HelmRelease, and Flux's without them, if the Tenant is left to Flux."""
    metadata, observed = release["metadata"], observed_generation(stored.values())
    reported = reported_release(release, flux_ready)
    shown = dict(with_release(stored, reported))
    ready = shown.get(READY)
    if observed == NEVER:
        ready = _before_first_look(release, flux_ready, reported)
    elif metadata.get("generation", observed) != observed:
        ready = _progressing(_CHANGED, {"observedGeneration": observed, **_latest(ready or {}, _last_change(metadata))})
    elif ready is None and reported is not None:
        # an earlier version left Ready to Flux
        ready = {**reported, "type": READY}
    shown[READY] = ready or _progressing(_NOT_SEEN, {"observedGeneration": observed})
    return shown


def unreadable_status(namespace: str) -> Object:
    """The status of a Tenant whose HelmRelease cannot be converted."""
    ready = {"type": READY, "status": "Unknown", "reason": "Unreadable", "message": _UNREADABLE}
    return {"namespace": namespace, "observedGeneration": NEVER, "conditions": [ready]}


def _before_first_look(release: Object, flux_ready: Mapping[str, Any] | None, reported: Object | None) -> Object:
    """Ready without conditions of ours; `reported` is None if that of Flux does not count."""
    if flux_ready is None or not is_left_to_flux(release):
        return _progressing(_NOT_SEEN, {_TIME: release["metadata"].get("creationTimestamp")})
    if reported is not None:
        return {**flux_ready, "type": READY}
    fields = {
        "observedGeneration": flux_ready.get("observedGeneration"),
        **_latest(flux_ready, _last_change(release["metadata"])),
    }
    return _progressing(_SUSPENDED if is_suspended(release) else _CHANGED_FOR_FLUX, fields)


def _progressing(message: str, fields: Mapping[str, Any]) -> Object:
    known = {field: value for field, value in fields.items() if value is not None}
    return {"type": READY, "status": "Unknown", **known, "reason": PROGRESSING, "message": message}


def _lowered(ready: Object, release: Object) -> Object:
    own, other = ready.get("status"), release.get("status")
    # Ready has its status since both have theirs; Flux may name a time before the Tenant was created
    time = _latest(ready, release)
    if other not in ("False", "Unknown"):
        return {**ready, **time} if own == "True" else ready
    deciding = {field: release[field] for field in _DECIDING_FIELDS if field in release}
    if own == "True":
        return {**ready, **deciding, **time}
    if (own, other) == ("Unknown", "False"):
        return {**ready, **deciding, **time, "message": _joined(release, ready)}
    return {**ready, "message": _joined(ready, release)}


def _joined(*conditions: Object) -> str:
    return "; ".join(dict.fromkeys(each["message"] for each in conditions if each.get("message")))


def _latest(*conditions: Mapping[str, Any]) -> Object:
    """The latest lastTransitionTime, as a field; empty if none is known."""
    known = [each[_TIME] for each in conditions if each.get(_TIME)]
    return {_TIME: max(known)} if known else {}


def _last_change(metadata: Mapping[str, Any]) -> Object:
    """The time of the last change by a client of the Tenant, as a field; empty if it is not known."""
    annotations = string_entries(metadata.get("annotations"))
    managed = parse_json_annotation(annotations, MANAGED_FIELDS_ANNOTATION)
    entries = managed if isinstance(managed, list) else []
    times = [each["time"] for each in entries if isinstance(each, dict) and isinstance(each.get("time"), str)]
    return {_TIME: max(times)} if times else {}
