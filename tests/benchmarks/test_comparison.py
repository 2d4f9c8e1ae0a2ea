"""A comparison waits until all Tenants are reconciled before it measures."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.targets.comparison import is_reconciled


def tenant(*conditions: str, observed: int) -> dict[str, Any]:
    status = {"conditions": [{"type": each, "status": "True"} for each in conditions], "observedGeneration": observed}
    return {"metadata": {"generation": 2}, "status": status}


@pytest.mark.parametrize(
    ("shown", "by_flux", "by_controllers"),
    [
        pytest.param(tenant("Ready", observed=-1), False, False, id="a new Tenant"),
        pytest.param(tenant("Ready", "Released", observed=-1), True, False, id="one that only Flux has seen"),
        pytest.param(tenant("Ready", "Released", observed=1), True, False, id="one that has changed since"),
        pytest.param(tenant("Ready", "QuotaReady", observed=2), False, False, id="one that Flux has not seen"),
        pytest.param(tenant("Ready", "Released", "AccessReady", observed=2), True, True, id="a reconciled one"),
    ],
)
def test_a_tenant_is_reconciled_when_flux_and_our_controllers_have_seen_its_spec(
    shown: dict[str, Any], by_flux: bool, by_controllers: bool
) -> None:
    assert is_reconciled(shown, by_controllers=False) is by_flux
    assert is_reconciled(shown, by_controllers=True) is by_controllers
