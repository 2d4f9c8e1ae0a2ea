"""A Tenant's status reports its readiness from the first byte that is served."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from apiserver.meta.resource import Object
from registry import names
from registry.tenant.convert import to_tenant
from registry.tenant.readiness import observed_generation, unreadable_status
from tests.kstatus import Verdict, kstatus
from tests.tenant_objects import release

CREATED, THEN, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
KSTATUS = Path(__file__).parent / "kstatus"


def condition(type_: str, status: str, generation: int | None = 1, time: str = THEN, reason: str = "R") -> Object:
    found = {
        "type": type_,
        "status": status,
        "lastTransitionTime": time,
        "reason": reason,
        "message": f"{type_} {reason}",
    }
    return found if generation is None else {**found, "observedGeneration": generation}


READY = condition("Ready", "True")


def tenant(
    stored: Sequence[Object] | None = None,
    flux: Sequence[Object] = (),
    *,
    generation: int = 1,
    suspend: bool = False,
    deleted: bool = False,
    changed: str = "",
    ours: bool = True,
    annotation: str = "",
) -> Object:
    """The Tenant of a HelmRelease with these conditions of the reconciler and of Flux. A client has `changed` it at
    this time. It has our finalizer if it is `ours`, and this `annotation` for the conditions."""
    found = release("alice")
    found["metadata"] |= {"generation": generation, "creationTimestamp": CREATED}
    if ours:
        found["metadata"]["finalizers"] = [names.TENANT_FINALIZER]
    if deleted:
        found["metadata"]["deletionTimestamp"] = LATER
    if suspend:
        found["spec"]["suspend"] = True
    if stored is not None:
        text = orjson.dumps({"conditions": stored}).decode()
        found["metadata"]["annotations"] = {names.FINDINGS_ANNOTATION: text}
    if annotation:
        found["metadata"]["annotations"] = {names.FINDINGS_ANNOTATION: annotation}
    if changed:
        managed = [{"manager": "kubectl-edit", "operation": "Update", "time": changed, "fieldsV1": {"f:spec": {}}}]
        annotations = found["metadata"].setdefault("annotations", {})
        annotations[names.MANAGED_FIELDS_ANNOTATION] = orjson.dumps(managed).decode()
    if flux:
        found["status"] = {"conditions": list(flux)}
    return to_tenant(found)


def ready(tenant: Object) -> tuple[Any, ...]:
    """(status, reason, lastTransitionTime, observedGeneration) of Ready."""
    [found] = [each for each in tenant["status"]["conditions"] if each["type"] == "Ready"]
    return tuple(found.get(field) for field in ("status", "reason", "lastTransitionTime", "observedGeneration"))


WAITING = condition("ReleaseReady", "Unknown", reason="Pending")
NOBODY = condition("ReleaseReady", "False", reason="NoController")

CASES: Mapping[str, tuple[Object, int, tuple[Any, ...], Verdict]] = {
    "just created": (tenant(), -1, ("Unknown", "Progressing", CREATED, None), "InProgress"),
    "installed by Flux before any controller looked": (
        tenant(flux=[READY]),
        -1,
        ("Unknown", "Progressing", CREATED, None),
        "InProgress",
    ),
    "of cozystack-api, installed by Flux": (
        tenant(flux=[READY], ours=False),
        1,
        ("True", "R", THEN, 1),
        "Current",
    ),
    "of cozystack-api, Flux does not say about which generation": (
        tenant(flux=[condition("Ready", "True", None)], ours=False, generation=3),
        3,
        ("True", "R", THEN, None),
        "Current",
    ),
    "of cozystack-api, Flux has failed": (
        tenant(flux=[condition("Ready", "False", reason="InstallFailed")], ours=False),
        1,
        ("False", "InstallFailed", THEN, 1),
        "InProgress",
    ),
    "of cozystack-api, before Flux": (
        tenant(ours=False),
        -1,
        ("Unknown", "Progressing", CREATED, None),
        "InProgress",
    ),
    "of cozystack-api, changed since Flux looked": (
        tenant(flux=[READY], ours=False, generation=2, changed=LATER),
        1,
        ("Unknown", "Progressing", LATER, 1),
        "InProgress",
    ),
    "of cozystack-api, suspended": (
        tenant(flux=[READY], ours=False, generation=2, suspend=True),
        1,
        ("Unknown", "Progressing", THEN, 1),
        "InProgress",
    ),
    "of cozystack-api, just taken over by our controllers": (
        tenant(flux=[READY], annotation="{}"),
        1,
        ("True", "R", THEN, 1),
        "Current",
    ),
    "with an annotation that cannot be read": (
        tenant(flux=[READY], ours=False, annotation="{"),
        -1,
        ("Unknown", "Progressing", CREATED, None),
        "InProgress",
    ),
    "looked at": (tenant([READY]), 1, ("True", "R", THEN, 1), "Current"),
    "changed since": (tenant([READY], generation=2), 1, ("Unknown", "Progressing", THEN, 1), "InProgress"),
    "changed since, at a known time": (
        tenant([READY], generation=2, changed=LATER),
        1,
        ("Unknown", "Progressing", LATER, 1),
        "InProgress",
    ),
    "changed since, before the latest transition": (
        tenant([condition("Ready", "True", 1, LATER)], generation=2, changed=THEN),
        1,
        ("Unknown", "Progressing", LATER, 1),
        "InProgress",
    ),
    "restored from a backup": (
        tenant([condition("Ready", "True", 7)], generation=2),
        7,
        ("Unknown", "Progressing", THEN, 7),
        "InProgress",
    ),
    "a part fails": (tenant([condition("Ready", "False")]), 1, ("False", "R", THEN, 1), "InProgress"),
    "waiting for Flux": (tenant([READY, WAITING]), 1, ("Unknown", "Pending", THEN, 1), "InProgress"),
    "Flux is at work": (
        tenant([READY, WAITING], [condition("Ready", "Unknown", 1, LATER, "Progressing")]),
        1,
        ("Unknown", "Progressing", LATER, 1),
        "InProgress",
    ),
    "Flux has failed": (
        tenant([READY, WAITING], [condition("Ready", "False", 1, LATER, "InstallFailed")]),
        1,
        ("False", "InstallFailed", LATER, 1),
        "InProgress",
    ),
    "Flux is done": (
        tenant([READY, WAITING], [condition("Ready", "True", 1, LATER)]),
        1,
        ("True", "R", LATER, 1),
        "Current",
    ),
    "Flux is done, and was before the rest": (
        tenant([condition("Ready", "True", 1, LATER), WAITING], [READY]),
        1,
        ("True", "R", LATER, 1),
        "Current",
    ),
    "Flux has failed, and says so since before the rest": (
        tenant(
            [condition("Ready", "True", 1, LATER), WAITING], [condition("Ready", "False", 1, THEN, "InstallFailed")]
        ),
        1,
        ("False", "InstallFailed", LATER, 1),
        "InProgress",
    ),
    "Flux is done with the generation before": (
        tenant(
            [condition("Ready", "True", 2), condition("ReleaseReady", "Unknown", 2, reason="Pending")],
            [READY],
            generation=2,
        ),
        2,
        ("Unknown", "Pending", THEN, 2),
        "InProgress",
    ),
    "Flux is done, another part is not": (
        tenant([condition("Ready", "False", reason="NoApex"), WAITING], [READY]),
        1,
        ("False", "NoApex", THEN, 1),
        "InProgress",
    ),
    "nobody installs": (tenant([READY, NOBODY]), 1, ("False", "NoController", THEN, 1), "InProgress"),
    "nobody installs, another part is unknown": (
        tenant([condition("Ready", "Unknown", reason="Pending"), NOBODY]),
        1,
        ("False", "NoController", THEN, 1),
        "InProgress",
    ),
    "Flux has come after all": (
        tenant([READY, NOBODY], [condition("Ready", "True", 1, LATER)]),
        1,
        ("True", "R", LATER, 1),
        "Current",
    ),
    "suspended, whatever Flux said before": (
        tenant([READY, NOBODY], [READY], suspend=True),
        1,
        ("False", "NoController", THEN, 1),
        "InProgress",
    ),
    "Flux fails at what nobody has asked for": (
        tenant([READY], [condition("Ready", "False", 1, LATER)]),
        1,
        ("True", "R", THEN, 1),
        "Current",
    ),
    "of an earlier version, which left Ready to Flux": (
        tenant([condition("NamespaceReady", "True")], [condition("Ready", "True", 1, LATER)]),
        1,
        ("True", "R", LATER, 1),
        "Current",
    ),
    "of an earlier version, before Flux": (
        tenant([condition("NamespaceReady", "True")]),
        1,
        ("Unknown", "Progressing", None, 1),
        "InProgress",
    ),
    "conditions that are about no generation": (
        tenant([condition("Ready", "True", None)]),
        -1,
        ("Unknown", "Progressing", CREATED, None),
        "InProgress",
    ),
    "being deleted": (
        tenant([READY], generation=2, deleted=True),
        1,
        ("Unknown", "Progressing", THEN, 1),
        "Terminating",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_readiness_is_never_told_before_it_is_there(case: str) -> None:
    shown, generation, expected, verdict = CASES[case]
    assert shown["status"]["observedGeneration"] == generation
    assert ready(shown) == expected
    assert kstatus(shown) == verdict


@pytest.mark.parametrize(
    ("obj", "verdict"),
    [
        pytest.param({"metadata": {"generation": 1}, "status": {"namespace": "tenant-a"}}, "Current", id="no guard"),
        pytest.param({"metadata": {"generation": 1}, "status": {"observedGeneration": -1}}, "InProgress", id="guard"),
        pytest.param(
            {"metadata": {}, "status": {"conditions": [{"type": "Stalled", "status": "True"}]}}, "Failed", id="stalled"
        ),
        pytest.param({"metadata": {}}, "Current", id="no status"),
    ],
)
def test_kstatus_takes_an_object_without_observed_generation_for_current(obj: Object, verdict: Verdict) -> None:
    """So an absent field is no guard."""
    assert kstatus(obj) == verdict


def test_the_rules_are_those_of_kstatus_itself(tmp_path: Path) -> None:
    program = built_kstatus(tmp_path)
    objects = json.dumps([shown for shown, *_ in CASES.values()])
    printed = subprocess.run([program], input=objects, capture_output=True, text=True, check=True, timeout=60).stdout
    assert dict(zip(CASES, printed.split(), strict=True)) == {case: verdict for case, (*_, verdict) in CASES.items()}


def built_kstatus(folder: Path) -> Path:
    """The program over cli-utils' kstatus; skips the test where it cannot be built."""
    if shutil.which("go") is None:
        pytest.skip("no Go: kstatus cannot be built")
    program = folder / "kstatus"
    try:
        built = subprocess.run(
            ["go", "build", "-o", program, "."], cwd=KSTATUS, capture_output=True, text=True, check=False, timeout=240
        )
    except subprocess.TimeoutExpired:
        pytest.skip("kstatus is not built in time: its modules cannot be had")
    if built.returncode != 0:
        pytest.skip(f"the modules of kstatus cannot be had: {built.stderr.strip()[-200:]}")
    return program


def test_flux_is_quoted_about_a_tenant_that_is_left_to_it() -> None:
    found = tenant(flux=[condition("Ready", "False", reason="InstallFailed")], ours=False)
    [shown] = [each for each in found["status"]["conditions"] if each["type"] == "Ready"]
    assert shown["message"] == "Ready InstallFailed"


@pytest.mark.parametrize(
    ("flux", "suspend", "says"),
    [
        ((), False, "check that Flux or a tenant-apiserver runs controllers"),
        ((READY,), False, "Flux has not looked at the tenant since its last change"),
        ((READY,), True, "its HelmRelease is suspended"),
    ],
)
def test_an_unknown_state_says_who_has_to_look(flux: Sequence[Object], suspend: bool, says: str) -> None:
    found = tenant(flux=flux, ours=False, generation=2, suspend=suspend)
    assert says in found["status"]["conditions"][0]["message"]


def test_the_release_shows_what_flux_reports() -> None:
    found = tenant(
        [READY, WAITING], [condition("Ready", "False", 1, LATER, "InstallFailed"), condition("Released", "False")]
    )
    assert [(each["type"], each["status"], each["reason"]) for each in found["status"]["conditions"]] == [
        ("Ready", "False", "InstallFailed"),
        ("ReleaseReady", "False", "InstallFailed"),
        ("Released", "False", "R"),
    ]
    about = "Flux about HelmRelease tenant-root/tenant-alice: Ready InstallFailed"
    assert [each["message"] for each in found["status"]["conditions"]][:2] == [about, about]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], -1, id="none"),
        pytest.param([{"type": "Ready"}], -1, id="about no generation"),
        pytest.param([{"observedGeneration": 3}, {"type": "Ready"}, {"observedGeneration": 2}], 2, id="the oldest"),
    ],
)
def test_the_observed_generation_is_that_of_all_conditions(conditions: Sequence[Object], expected: int) -> None:
    assert observed_generation(conditions) == expected


MISSING = condition("Ready", "Unknown", reason="Pending")
FAILS = condition("Ready", "False", reason="NoApex")


def reported(status: str, reason: str = "F") -> Object:
    return condition("Ready", status, 1, LATER, reason)


@pytest.mark.parametrize(
    ("stored", "flux", "expected"),
    [
        pytest.param([READY, NOBODY], [], "ReleaseReady NoController", id="only the release"),
        pytest.param([FAILS, NOBODY], [], "Ready NoApex; ReleaseReady NoController", id="both are False"),
        pytest.param([FAILS, WAITING], [], "Ready NoApex; ReleaseReady Pending", id="the release is Unknown"),
        pytest.param([MISSING, NOBODY], [], "ReleaseReady NoController; Ready Pending", id="the release decides"),
        pytest.param([MISSING, WAITING], [], "Ready Pending; ReleaseReady Pending", id="both are Unknown"),
        pytest.param([FAILS, WAITING], [reported("True")], "Ready NoApex", id="the release is ready"),
        pytest.param(
            [FAILS, WAITING],
            [reported("False")],
            "Ready NoApex; Flux about HelmRelease tenant-root/tenant-alice: Ready F",
            id="as Flux reports it",
        ),
    ],
)
def test_the_message_of_ready_is_about_the_release_and_the_other_parts(
    stored: Sequence[Object], flux: Sequence[Object], expected: str
) -> None:
    [found] = [each for each in tenant(stored, flux)["status"]["conditions"] if each["type"] == "Ready"]
    assert found["message"] == expected


@pytest.mark.parametrize(
    ("stored", "flux", "expected"),
    [
        pytest.param(WAITING, reported("True"), LATER, id="another status"),
        pytest.param(
            condition("ReleaseReady", "Unknown", 1, LATER),
            condition("Ready", "True", 1, THEN),
            LATER,
            id="a report from before it was asked for",
        ),
    ],
)
def test_the_release_was_not_ready_before_it_was_asked_for(stored: Object, flux: Object, expected: str) -> None:
    [found] = [each for each in tenant([READY, stored], [flux])["status"]["conditions"] if each["type"] != "Ready"]
    assert (found["type"], found["lastTransitionTime"]) == ("ReleaseReady", expected)


def test_a_tenant_that_cannot_be_read_is_not_ready() -> None:
    obj = {"metadata": {"generation": 1}, "status": unreadable_status("tenant-alice")}
    assert obj["status"]["namespace"] == "tenant-alice"
    assert kstatus(obj) == "InProgress"
