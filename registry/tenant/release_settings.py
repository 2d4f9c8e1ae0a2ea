"""Settings of the HelmReleases that new Tenants are stored as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

ReleaseMode = Literal["active", "suspended", "none"]
"""The setting `tenants.release`. `suspended`: Flux leaves the HelmRelease alone until somebody resumes it. `none`: it
is storage only, the smallest that its schema allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    """The defaults are Cozystack's. Durations are in Go's notation; an empty name omits a part.

    `finalizer` adds a finalizer, so that the contents of a Tenant are deleted first. It requires a running controller.
    """

    chart_kind: str = "ExternalArtifact"
    chart_name: str = "cozystack-tenant-application-default-tenant"
    chart_namespace: str = "cozy-system"
    interval: str = "5m0s"
    install_timeout: str = "15m0s"
    upgrade_timeout: str = "15m0s"
    strategy: str = "RetryOnFailure"
    retry_interval: str = "30s"
    max_history: int = 5
    values_secret: str = "cozystack-values"
    shard: str = "tenants"
    mode: ReleaseMode = "active"
    finalizer: bool = False

    def release_spec(self) -> dict[str, Any]:
        """The spec of a new HelmRelease, without `values`."""
        chart = {"kind": self.chart_kind, "name": self.chart_name, "namespace": self.chart_namespace}
        required: dict[str, Any] = {
            "chartRef": {field: value for field, value in chart.items() if value},
            "interval": self.interval,
        }
        if self.mode != "active":
            required["suspend"] = True
        if self.mode == "none":
            return required
        spec: dict[str, Any] = {
            **required,
            "maxHistory": self.max_history,
            "install": self._action(self.install_timeout),
            "upgrade": self._action(self.upgrade_timeout),
        }
        if self.values_secret:
            spec["valuesFrom"] = [{"kind": "Secret", "name": self.values_secret}]
        return spec

    def _action(self, timeout: str) -> dict[str, Any]:
        action: dict[str, Any] = {"timeout": timeout}
        if self.strategy:
            action["strategy"] = {"name": self.strategy}
        if self.strategy == "RetryOnFailure":
            # Flux rejects a retryInterval with any other strategy
            action["strategy"]["retryInterval"] = self.retry_interval
        return action
