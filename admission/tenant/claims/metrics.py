"""Metrics of claims: how often replicas wait for each other, and what it costs."""

from __future__ import annotations

from typing import Literal

from prometheus_client import CollectorRegistry, Counter

LeaseWrite = Literal["written", "conflict", "failed"]
ClaimResult = Literal["recorded", "refused", "unknown"]


class ClaimMetrics:
    """The metric families of claims; one instance per process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._claims = Counter(
            "apiserver_tenant_claims",
            "Claims to hosts and quotas: recorded before the write, refused with 429 because of claims of others, or "
            "without a known result of the write.",
            ("result",),
            registry=registry,
        )
        self._lease_writes = Counter(
            "apiserver_tenant_claims_lease_writes",
            "Writes of the Lease that contains the claims: done, rejected because another replica was faster, or "
            "failed.",
            ("result",),
            registry=registry,
        )
        self._withdrawals = Counter(
            "apiserver_tenant_withdrawals",
            "Writes that were undone, because another replica had stored one that excludes them.",
            registry=registry,
        )

    def claim(self, result: ClaimResult) -> None:
        self._claims.labels(result).inc()

    def lease_write(self, result: LeaseWrite) -> None:
        self._lease_writes.labels(result).inc()

    def withdrawal(self) -> None:
        self._withdrawals.inc()
