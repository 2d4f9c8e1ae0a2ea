"""After any random sequence of events the cluster is as desired, and a new process writes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupResource, Key, Object
from registry.cluster.interface import NAMESPACES, ClusterResource, ClusterUnreachable
from registry.names import GATEWAY_LABEL, HOST_LABEL
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.expected_objects import find_deviations
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    ISSUERS,
    TLSROUTES,
    World,
    run_in_world,
    run_until_settled,
)

SEEDS = range(25)
_PROCESSES = 2
_STEPS = 60
_OWNERS = ("tenant-a", "tenant-b")
_PLACES = (*_OWNERS, "cozy-x", "kid", "z-app")
_NAMES = ("h1", "h2", "*", "kid", "h1.kid")
_MODES: tuple[dict[str, Any], ...] = (
    {"certMode": "http01", "dns01": None, "wildcardSecretRef": None},
    {"certMode": "dns01", "dns01": {"provider": "cloudflare"}, "wildcardSecretRef": None},
    {"certMode": "existingSecret", "dns01": None, "wildcardSecretRef": {"name": "bought"}},
    {"certMode": "dns01", "dns01": {"provider": "nobody"}, "wildcardSecretRef": None},
)
_OWNED_KINDS = (GATEWAYS, HTTPROUTES, ISSUERS, CERTIFICATES)


class RandomEvents:
    """Random changes by users and other controllers, some of them while writes to the cluster fail."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.failing = False
        counting = world.cluster.before
        assert counting is not None

        async def before(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if self.failing and verb in ("create", "patch", "delete") and self.random.random() < 0.3:
                raise self._error(res, key)

        world.cluster.before = before

    async def step(self) -> None:
        steps: tuple[Callable[[], Awaitable[None]], ...] = (
            self.add_tenantgateway,
            self.edit_spec,
            self.delete_tenantgateway,
            self.add_or_edit_route,
            self.add_or_edit_route,
            self.delete_route,
            self.relabel_namespace,
            self.change_owned_object,
            self.toggle_failures,
        )
        # the calls of other clients fail, too
        with contextlib.suppress(StatusError):
            await self.random.choice(steps)()
        if self.random.random() < 0.3 or self.failing:
            return
        await self.world.settle()
        assert await find_deviations(self.world) == []

    async def add_tenantgateway(self) -> None:
        owner = self.random.choice(_OWNERS)
        if self.world.cluster.peek(TENANTGATEWAYS, owner, "cozystack") is None:
            self.world.add_tenantgateway(owner, apex=f"{owner}.example", **self._spec())

    async def edit_spec(self) -> None:
        await self.world.edit_spec(self.random.choice(_OWNERS), **self._spec())

    async def delete_tenantgateway(self) -> None:
        """Deletes a TenantGateway and its objects, as FakeCluster has no garbage collector."""
        owner = self.random.choice(_OWNERS)
        gone = self.world.cluster.peek(TENANTGATEWAYS, owner, "cozystack")
        if gone is None:
            return
        await self.world.cluster.delete(TENANTGATEWAYS, owner, "cozystack")
        await self.world.settle()
        for res in _OWNED_KINDS:
            for name in await self.world.names(res, owner):
                references = self.world.get(res, owner, name)["metadata"].get("ownerReferences") or ()
                if any(each["uid"] == gone["metadata"]["uid"] for each in references):
                    await self.world.cluster.delete(res, owner, name)

    async def add_or_edit_route(self) -> None:
        owner, place = self.random.choice(_OWNERS), self.random.choice(_PLACES)
        res = self.random.choice((HTTPROUTES, HTTPROUTES, TLSROUTES))
        name = f"r{self.random.randrange(3)}"
        hostnames = [f"{each}.{owner}.example" for each in self.random.sample(_NAMES, 2)]
        parent: Object = {"namespace": owner, "name": "cozystack"}
        parent |= self.random.choice(({}, {"port": 443}, {"sectionName": "http"}))
        spec = {"parentRefs": [parent], "hostnames": hostnames}
        if self.world.cluster.peek(res, place, name) is None:
            self.world.cluster.add(res, {"metadata": {"namespace": place, "name": name}, "spec": spec})
        else:
            await self.world.edit(res, place, name, {"spec": spec})

    async def delete_route(self) -> None:
        res = self.random.choice((HTTPROUTES, TLSROUTES))
        await self.world.cluster.delete(res, self.random.choice(_PLACES), f"r{self.random.randrange(3)}")

    async def relabel_namespace(self) -> None:
        owner = self.random.choice((*_OWNERS, None))
        host = self.random.choice(("kid.tenant-a.example", "kid.tenant-b.example", "elsewhere.example", None))
        place = self.random.choice(("kid", "z-app", "cozy-x"))
        labels = {GATEWAY_LABEL: owner, HOST_LABEL: host}
        await self.world.edit(NAMESPACES, "", place, {"metadata": {"labels": labels}})

    async def change_owned_object(self) -> None:
        """Deletes, disowns or changes an object of the controller."""
        owner, res = self.random.choice(_OWNERS), self.random.choice(_OWNED_KINDS)
        names = await self.world.names(res, owner)
        if not names:
            return
        name = self.random.choice(names)
        match self.random.randrange(3):
            case 0:
                await self.world.cluster.delete(res, owner, name)
            case 1:
                await self.world.edit(res, owner, name, {"metadata": {"ownerReferences": None}})
            case 2 if name.startswith("cozystack"):
                await self.world.edit(res, owner, name, {"spec": {"hostnames": ["x.example"], "listeners": []}})

    async def toggle_failures(self) -> None:
        self.failing = not self.failing
        if not self.failing:
            await self.recover()

    async def recover(self) -> None:
        """Ends failures and waits longer than the longest backoff."""
        self.failing = False
        await asyncio.sleep(1200)

    def _spec(self) -> dict[str, Any]:
        attached = self.random.sample(("cozy-x", "z-app", "missing"), self.random.randrange(3))
        services = self.random.choice(([], ["h1"], ["api"]))
        return {**self.random.choice(_MODES), "attachedNamespaces": attached, "tlsPassthroughServices": services}

    def _error(self, res: ClusterResource, key: Key) -> StatusError:
        group = GroupResource(res.group, res.plural)
        return self.random.choice(
            (
                errors.Conflict(group, key.name),
                errors.TooManyRequests("later", retry_after=1),
                StatusError(500, "InternalError", "a webhook failed"),
                ClusterUnreachable(),
            )
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_process_writes_nothing_after_any_sequence_of_events(seed: int) -> None:
    """R-098, R-101, R-102, R-158, R-179, R-191, R-201, R-206, R-219, GW-1, GW-14, GW-15, GW-20."""

    async def main(world: World) -> None:
        for place in _PLACES:
            world.namespace(place, host=f"{place}.example" if place in _OWNERS else "")
        events = RandomEvents(world, seed)
        for _ in range(_PROCESSES):
            async with world.running():
                for _ in range(_STEPS):
                    await events.step()
                await events.recover()
                assert await find_deviations(world) == []
        world.cluster.clear_writes()
        await run_until_settled(world)
        assert [(each.verb, each.resource.plural, str(each.key)) for each in world.cluster.writes] == []

    run_in_world(main)
