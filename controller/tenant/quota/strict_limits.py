"""Writes the limits of namespaces in strict pools: the sum of what they may use is never more than the capacity.

A namespace has two ResourceQuotas with the same limits, `tenant-pool` and `tenant-pool-witness`, and kube-apiserver
admits what fits both. Each change is made to `tenant-pool` first. The witness follows when that is in effect and has
counted everything (`recounts`), so that at each instant one of the two knows all that is in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.tenant.managed_objects import ContentWriter
from controller.tenant.quota.pool_division import PoolDigests, PoolDivision, Pools, write_pool_quota
from controller.tenant.quota.recounts import Recounts, have_equal_limits, is_in_effect, nudged
from controller.tenant.quota.rendering import render_quota
from controller.tenant.quota.stored_shares import StoredShares
from controller.tenant.readiness.unanswered import loop_time
from registry.cluster.interface import RESOURCEQUOTAS, ClusterClient
from registry.tenant.pool_quotas import POOL_NAME, WITNESS_NAME, PoolQuotas, Shares, shares_of
from registry.tenant.quota_keys import amount_text
from registry.tenant.quota_pools import Pool, Share, strict_limit, strict_targets
from registry.tenant.summary import TenantSummary


class _Written(NamedTuple):
    """The two ResourceQuotas of a namespace as the cluster has stored them; no Shares for one that does not exist."""

    first: Shares
    witness: Shares


class StrictLimits:
    """Methods raise the cluster's StatusError, and NotLeading.

    The limits of one namespace at a time are raised, after those of all others and their use have been read from the
    cluster. A limit that was lowered counts as it was until the quota controller has seen it.
    """

    def __init__(
        self,
        *,
        contents: ContentWriter,
        digests: PoolDigests,
        division: PoolDivision,
        quotas: PoolQuotas,
        witnesses: PoolQuotas,
        cluster: ClusterClient,
        enqueue_after: Callable[[Key, float], None],
        clock: Callable[[], float] = loop_time,
    ) -> None:
        self._contents = contents
        self._digests = digests
        self._division = division
        self._quotas = quotas
        self._witnesses = witnesses
        self._cluster = cluster
        self._enqueue_after = enqueue_after
        self._recounts = Recounts(clock)
        self._dividing = asyncio.Lock()
        self._stored = StoredShares(cluster, quotas, witnesses)
        self.waiting: set[Key] = set()
        """The Tenants that are to receive what others have not given yet."""

    async def ensure(self, tenant: TenantSummary, pools: Pools) -> None:
        targets = {key: self._target(tenant, key, pool) for key, pool in pools.items()}
        known = _limits_of(self._quotas.of(tenant.namespace)), _limits_of(self._witnesses.of(tenant.namespace))
        if known == (targets, targets):
            self._recounts.forget(tenant.namespace)
            return
        # before the read, because others may give something after it
        self.waiting.add(tenant.key)
        if known[0] == known[1]:
            async with self._dividing:
                current = await self._stored.read()
                limits = {key: self._allowed(tenant, key, target, current) for key, target in targets.items()}
                if limits == known[0]:
                    return
        await self._advance(tenant, pools, targets)

    async def remove_witness(self, namespace: str) -> None:
        self._recounts.forget(namespace)
        await self._contents.remove(self._digests[WITNESS_NAME], namespace, WITNESS_NAME)

    async def _advance(self, tenant: TenantSummary, pools: Pools, targets: Mapping[str, int]) -> None:
        """The next of the writes that lead to the targets, if it is time for it."""
        namespace = tenant.namespace
        seconds = self._recounts.seconds_to_next_look(namespace)
        if seconds > 0:
            self._enqueue_after(tenant.key, seconds)
            return
        first, witness = await self._read(namespace, POOL_NAME), await self._read(namespace, WITNESS_NAME)
        if first is None:
            await self._divide(tenant, pools, targets)
            self.waiting.add(tenant.key)
        elif witness is None:
            await self._copy(namespace, first)
        else:
            await self._change(tenant, pools, targets, first, witness)

    async def _change(
        self, tenant: TenantSummary, pools: Pools, targets: Mapping[str, int], first: Object, witness: Object
    ) -> None:
        namespace, shares = tenant.namespace, _Written(shares_of(first), shares_of(witness))
        if not (is_in_effect(shares.first) and is_in_effect(shares.witness)):
            # its event comes
            return
        match self._recounts.look(namespace, shares.first, shares.witness):
            case "wait":
                self._enqueue_after(tenant.key, self._recounts.seconds_to_next_look(namespace))
            case "recount first":
                await self._nudge(namespace, POOL_NAME, first, shares.first, shares.witness)
            case "recount witness":
                await self._nudge(namespace, WITNESS_NAME, witness, shares.witness, shares.first)
            case "counted" if have_equal_limits(*shares):
                await self._divide(tenant, pools, targets)
            case "counted":
                await self._confirm(tenant, pools, targets, first, shares)

    async def _divide(self, tenant: TenantSummary, pools: Pools, targets: Mapping[str, int]) -> None:
        # what is known may be late, so that even a lower limit could be more than the stored one
        async with self._dividing:
            current = await self._stored.read()
            limits = {key: self._allowed(tenant, key, target, current) for key, target in targets.items()}
            self._stored.note(tenant.namespace, limits)
            await write_pool_quota(self._contents, self._digests[POOL_NAME], tenant, pools, limits)

    async def _confirm(
        self, tenant: TenantSummary, pools: Pools, targets: Mapping[str, int], first: Object, shares: _Written
    ) -> None:
        """The witness follows `tenant-pool`. A limit there that somebody else has raised or removed is written anew
        instead: the witness, which holds until then, tells what the namespace had before."""
        namespace = tenant.namespace
        async with self._dividing:
            current = {**await self._stored.read(), namespace: shares.witness}
            written = {key: amount for key, amount in _limits_of(shares.first).items() if key in pools}
            wanted = {**targets, **written}
            limits = {key: self._allowed(tenant, key, wanted[key], current) for key in pools}
            if limits != written:
                self._stored.note(namespace, limits)
                await write_pool_quota(self._contents, self._digests[POOL_NAME], tenant, pools, limits)
                return
        await self._copy(namespace, first)

    async def _copy(self, namespace: str, first: Object) -> None:
        """The witness gets the limits that the first one has."""
        await self._write(namespace, WITNESS_NAME, first["spec"].get("hard") or {})

    async def _nudge(self, namespace: str, name: str, quota: Object, own: Shares, other: Shares) -> None:
        """Changes a limit by the least amount, so that the quota controller counts anew."""
        async with self._dividing:
            limits = nudged(own, other)
            self._stored.note(namespace, limits)
            await self._write(namespace, name, {key: amount_text(amount, "") for key, amount in limits.items()})

    def _target(self, tenant: TenantSummary, key: str, pool: Pool) -> int:
        shares = self._quotas.shares(pool)
        witnesses = self._witnesses.shares(pool)
        both = {each: _with_use_of(share, witnesses[each]) for each, share in shares.items()}
        return strict_targets(key, self._division.balances.capacity(pool), both)[tenant.namespace]

    def _allowed(self, tenant: TenantSummary, key: str, target: int, current: Mapping[str, Shares]) -> int:
        shares = {namespace: found[key] for namespace, found in current.items() if key in found}
        return strict_limit(target, tenant.namespace, shares, tuple(self._division.pools.limiting(tenant, key)))

    async def _write(self, namespace: str, name: str, hard: Mapping[str, str]) -> None:
        await self._contents.ensure(
            self._digests[name], lambda current: render_quota(namespace, name, hard, current), None
        )

    async def _read(self, namespace: str, name: str) -> Object | None:
        try:
            return await self._cluster.get(RESOURCEQUOTAS, namespace, name)
        except StatusError as e:
            if e.reason != "NotFound":
                raise
            return None


def _limits_of(shares: Shares) -> Mapping[str, int]:
    return {key: share.hard for key, share in shares.items() if share.hard is not None}


def _with_use_of(share: Share, witness: Share) -> Share:
    """The quota controller may have forgotten something while it counted for one of the two."""
    return share._replace(used=max(share.used, witness.used))
