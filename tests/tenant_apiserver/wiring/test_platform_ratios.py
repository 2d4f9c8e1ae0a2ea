"""Ratios of Cozystack's ConfigMap: wrong ones are refused as a whole, and from the start they are waited for."""

from __future__ import annotations

from apiserver.meta.resource import Object
from controller.platform.settings import PlatformSettings, ReloadableSettings
from registry.tenant.tree import TenantTree
from tenant_apiserver.wiring.platform_ratios import PlatformRatios


def configmap(**data: str) -> Object:
    found = {f"{key}-allocation-ratio": value for key, value in data.items()}
    return {"metadata": {"name": "cozystack", "namespace": "cozy-system"}, "data": found}


class Ratios:
    def __init__(self, **resources: int) -> None:
        self.settings = ReloadableSettings(PlatformSettings.model_validate({"resources": resources}))
        self.tree = TenantTree()
        self.handler = PlatformRatios(settings=self.settings, tree=self.tree)
        self.said: list[tuple[str, bool]] = []
        self.handler.subscribe_to_problems(lambda problem, waits: self.said.append((problem, waits)))

    @property
    def cpu(self) -> float:
        return float(self.tree.ratios.cpu)


async def test_wrong_ratios_leave_those_of_before_in_force() -> None:
    ratios = Ratios()
    await ratios.handler.replace([configmap(cpu="4")], 1)
    ratios.handler.apply("MODIFIED", configmap(cpu="0.5"), 2)
    assert (ratios.cpu, ratios.said) == (4, [("cpu-allocation-ratio: must be a number from 1 to 1000", False)])
    ratios.handler.apply("MODIFIED", configmap(cpu="2"), 3)
    assert (ratios.cpu, ratios.said[1:]) == (2, [("", False)])


async def test_ratios_that_are_wrong_from_the_start_are_waited_for() -> None:
    ratios = Ratios()
    await ratios.handler.replace([configmap(cpu="many")], 1)
    assert ratios.said == [("cpu-allocation-ratio: must be a number from 1 to 1000", True)]
    assert not ratios.handler.known.is_set()
    ratios.handler.apply("MODIFIED", configmap(cpu="3"), 2)
    assert (ratios.cpu, ratios.handler.known.is_set()) == (3, True)


async def test_a_ratio_that_the_settings_have_is_not_read_from_the_configmap() -> None:
    ratios = Ratios(cpuAllocationRatio=7)
    await ratios.handler.replace([configmap(cpu="many", memory="2")], 1)
    assert (ratios.cpu, float(ratios.tree.ratios.memory), ratios.said) == (7, 2, [])
    assert ratios.handler.known.is_set()


async def test_without_a_configmap_the_ratios_are_known() -> None:
    ratios = Ratios()
    assert not ratios.handler.known.is_set()
    await ratios.handler.replace([], 1)
    assert (ratios.cpu, ratios.handler.known.is_set()) == (10, True)
