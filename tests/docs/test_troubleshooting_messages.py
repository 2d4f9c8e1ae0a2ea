"""docs/troubleshooting.md quotes the controller's messages about kinds that are missing or cannot be listed.

Its commands are tested in tests/e2e/kubectl/test_troubleshooting_page.py.
"""

from __future__ import annotations

import re
from pathlib import Path

from apiserver.meta.resource import Key
from registry.cluster.interface import ClusterResource
from tests.controller.tenantgateway.gateway_world import CERTIFICATES, World, api_error, run_in_world

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
SECTION = PAGE.partition("## Ready=False, ReconcileError")[2].partition("\n## ")[0]
MISSING, FORBIDDEN = re.findall(r"^\| `(?P<message>[^`]+)` \|", SECTION, re.MULTILINE)


def test_the_message_about_a_missing_kind_is_as_documented() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.unserved_groups.add("cert-manager.io")
        async with world.running():
            assert MISSING in world.ready()[2]

    run_in_world(main)


def test_the_message_about_a_forbidden_kind_is_as_documented() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        counting = world.cluster.before
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if res == CERTIFICATES and verb in ("list", "watch"):
                raise api_error(403, "may not list certificates")

        world.cluster.before = refusing
        async with world.running():
            assert FORBIDDEN.replace("…", "may not list certificates") in world.ready()[2]

    run_in_world(main)
