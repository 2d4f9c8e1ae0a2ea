"""What was found of a Tenant, in one annotation of its HelmRelease; registry.tenant.convert reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from apiserver.resource import Object
from controller.apply import Apply
from controller.conditions import Finding, condition, conditions
from controller.tenant.namespace import READY
from controller.tenant.observed import Observed
from registry.host import HELMRELEASES
from registry.names import FINDINGS_ANNOTATION


def render_status(observed: Observed, findings: Sequence[Finding], now: datetime) -> Object:
    """The document: effective host and gateway with the namespaces that provide them, and conditions."""
    release = observed.release
    before = previous(release)
    status: Object = {"gateway": observed.gateway.model_dump(by_alias=True)}
    if observed.host is not None:
        status["host"] = observed.host.model_dump(by_alias=True)
    status["conditions"] = conditions(
        [*findings, *_ready(findings, release)],
        before.get("conditions"),
        generation=release["metadata"].get("generation", 0),
        now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    return status


def _ready(findings: Sequence[Finding], release: Object) -> list[Finding]:
    """Not ready if the Namespace is not. Ready is Helm's controller's to say, and ours where there is none."""
    namespace = next((each for each in findings if each.type == READY), None)
    if namespace is not None and namespace.status != "True":
        return [Finding("Ready", namespace.status, namespace.reason, namespace.message)]
    if condition((release.get("status") or {}).get("conditions"), "Ready") is not None:
        return []
    return [Finding("Ready", "True", "Reconciled", "the tenant is as wanted")]


def previous(release: Object) -> dict[str, Any]:
    """What was written before; empty for what is damaged."""
    text = (release["metadata"].get("annotations") or {}).get(FINDINGS_ANNOTATION)
    try:
        document = orjson.loads(text) if text else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


class StatusWriter:
    def __init__(self, *, apply: Apply, now: Callable[[], datetime]) -> None:
        self._apply = apply
        self._now = now

    async def write(self, observed: Observed, findings: Sequence[Finding]) -> None:
        """Write what was found, if it is not what is there. Raises Conflict if the HelmRelease moved on."""
        status = render_status(observed, findings, self._now())
        if status == previous(observed.release):
            return
        text = orjson.dumps(status, option=orjson.OPT_SORT_KEYS).decode()
        changes = {"metadata": {"annotations": {FINDINGS_ANNOTATION: text}}}
        await self._apply.patch(HELMRELEASES, observed.release, changes)
