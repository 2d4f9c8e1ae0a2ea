"""The sides of `make bench-versus` on a real kube-apiserver: a fault of one ends the program before it measures."""

from __future__ import annotations

from pathlib import Path

import orjson

from benchmarks import load
from benchmarks.targets.comparison import AGGREGATED, CUSTOM, DIRECT, ServerComparison
from benchmarks.targets.kube import KubeTarget
from benchmarks.targets.sides import Side
from benchmarks.writes import Writes
from tests.server_fixtures import find_control_plane_files


async def test_each_side_has_the_seeded_objects_and_is_written_to(tmp_path: Path) -> None:
    find_control_plane_files()  # skips without the binaries
    running = ServerComparison.running(
        tmp_path,
        cluster=KubeTarget.running(tmp_path, controllers="root-tenant"),
        chosen=[DIRECT, AGGREGATED, CUSTOM],
        external=None,
        peer=None,
        reconciled=False,
    )
    async with running as comparison:
        await comparison.seed(0, 2)
        await comparison.ready()
        direct, aggregated, _ = comparison.sides
        assert direct.user.url != aggregated.user.url
        for place, side in enumerate(comparison.sides):
            assert await _names(side) >= {"b00000", "b00001"}, side.title
            await Writes(writers=2, times=2, first=2 * place).turn(side, 0)
        assert await _names(direct) >= {"x00000", "x00001", "y00002", "y00003"}


async def _names(side: Side) -> set[str]:
    async with load.connected(side.user, 1) as (connection,):
        found = orjson.loads(await connection.call("GET", side.collection))
    return {each["metadata"]["name"] for each in found["items"]}
