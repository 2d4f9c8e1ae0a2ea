"""docs/troubleshooting.md: what it says of kinds that the host lacks, or does not show, is what the controller says.

What it shows of commands is checked in tests/e2e/kubectl/test_troubleshooting_page.py.
"""

from __future__ import annotations

import re
from pathlib import Path

from apiserver.meta.resource import Key
from registry.cluster.interface import ClusterResource
from tests.controller.tenantgateway.gateway_world import CERTIFICATES, World, in_world, refusal

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
SECTION = PAGE.partition("## Ready=False, ReconcileError")[2].partition("\n## ")[0]
LACKING, HIDDEN = re.findall(r"^\| `(?P<message>[^`]+)` \|", SECTION, re.MULTILINE)


def test_a_kind_that_is_missing_is_told_in_these_words() -> None:
    async def main(world: World) -> None:
        world.ask()
        world.absent.add("cert-manager.io")
        async with world.running():
            assert LACKING in world.ready()[2]

    in_world(main)


def test_a_kind_that_may_not_be_read_is_told_in_these_words_with_the_hosts_reason() -> None:
    async def main(world: World) -> None:
        world.ask()
        counting = world.cluster.before
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if res == CERTIFICATES and verb in ("list", "watch"):
                raise refusal(403, "may not list certificates")

        world.cluster.before = refusing
        async with world.running():
            assert HIDDEN.replace("…", "may not list certificates") in world.ready()[2]

    in_world(main)
