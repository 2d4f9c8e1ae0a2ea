"""An operator who lacks one right of those that `preflight` and `uninstall` need is told which, and what is so now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from apiserver.meta.errors import Forbidden
from apiserver.meta.resource import GroupResource, Key
from registry.cluster.interface import HELMRELEASES, ClusterResource
from tenant_apiserver.lifecycle.command import run_command
from tenant_apiserver.lifecycle.findings import Check, Level, as_table, exit_status
from tenant_apiserver.lifecycle.installed import OperatorStep
from tenant_apiserver.lifecycle.preflight import judge
from tenant_apiserver.lifecycle.reader import read_facts
from tests.tenant_apiserver.lifecycle.live_cozystack import LiveCozystack, live_cozystack
from tests.tenant_apiserver.lifecycle.test_uninstall import installed
from tests.tenant_apiserver.lifecycle.test_uninstall import run as run_uninstall

Right = tuple[str, ClusterResource]
FEWER = ("all others", "cert-manager")
"""A number that is smaller, and a line without what the Deployment tells."""


def used_rights(cluster: LiveCozystack, action: Callable[[], Awaitable[object]]) -> list[Right]:
    """The verbs and kinds that the action needs, in the order of its calls."""
    used: dict[Right, None] = {}

    async def note(verb: str, res: ClusterResource, key: Key) -> None:
        used[verb, res] = None

    cluster.before = note
    asyncio.run(_awaited(action))
    cluster.before = None
    return list(used)


async def _awaited(action: Callable[[], Awaitable[object]]) -> None:
    await action()


def deny(cluster: LiveCozystack, right: Right) -> None:
    async def refuse(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res) == right:
            who = f'User "operator" cannot {verb} resource "{res.plural}" in API group "{res.group}"'
            raise Forbidden(GroupResource(res.group, res.plural), key.name, who)

    cluster.before = refuse


async def judged(cluster: LiveCozystack, step: OperatorStep) -> list[Check]:
    return list(judge(await read_facts(cluster, step), step))


@pytest.mark.parametrize("step", OperatorStep)
def test_preflight_cannot_judge_what_it_may_not_read(step: OperatorStep) -> None:
    expected = asyncio.run(judged(live_cozystack(), step))
    rights = used_rights(cluster := live_cozystack(), lambda: judged(cluster, step))
    assert len(rights) > 5
    for right in rights:
        cluster = live_cozystack()
        deny(cluster, right)
        checks = asyncio.run(judged(cluster, step))
        unknown = [each for each in checks if each.level is Level.UNKNOWN]
        assert unknown, right
        assert all(each.remedy for each in unknown), right
        table = as_table(checks, full=True)
        assert f'cannot {right[0]} resource "{right[1].plural}"' in table, right
        # nothing that was not known with the right is said without it
        said = {each for each in checks if each.level is not Level.UNKNOWN and each.subject not in FEWER}
        assert said <= set(expected), right
        # what is not known is no reason to say that the step would break something, nor that it would not
        new = [each for each in checks if each.level is Level.FAIL and each not in expected]
        assert (new, exit_status(checks)) == ([], 1 if exit_status(expected) == 1 else 2), right


@pytest.mark.parametrize("step", OperatorStep)
def test_objects_that_cannot_be_read_are_told_in_a_few_lines(step: OperatorStep) -> None:
    cluster = live_cozystack()

    async def refuse(verb: str, res: ClusterResource, key: Key) -> None:
        who = f'User "dev" cannot {verb} resource "{res.plural}" in API group "{res.group}"'
        raise Forbidden(GroupResource(res.group, res.plural), key.name, who)

    cluster.before = refuse
    checks = asyncio.run(judged(cluster, step))
    objects = [each for each in checks if each.section == "Objects of the same names"]
    objects = [each for each in objects if each.level is Level.UNKNOWN]
    assert len(objects) > 5
    lines = as_table(objects).splitlines()
    assert len(lines) < 18
    assert len([line for line in lines if line.startswith("        -> ")]) == 1
    full = as_table(checks, full=True)
    assert all(each.subject in full for each in objects)


def test_uninstall_names_the_right_that_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    rights = used_rights(cluster := installed(), lambda: run_uninstall(cluster))
    assert {verb for verb, _ in rights} == {"get", "list", "patch", "delete"}
    for right in rights:
        cluster = installed()
        deny(cluster, right)
        said: list[str] = []

        async def action(of: LiveCozystack = cluster, lines: list[str] = said) -> int:
            status, text = await run_uninstall(of)
            lines.append(text)
            return status

        status = run_command("uninstall", action, after="run the command again: it continues")
        error = capsys.readouterr().err
        text = "".join(said) + error
        is_counted = status == 0
        assert f'cannot {right[0]} resource "{right[1].plural}"' in text or (
            is_counted and "an unknown number of" in text
        ), right
        assert status in (0, 2), right
        assert status == 0 or "you need credentials that may do this" in error, right
        assert (status == 2) == error.startswith("tenant-apiserver uninstall: "), right
        if right[0] in ("get", "list") and status == 2:
            assert cluster.writes == [], right
        # with the right, it continues
        cluster.before = None
        assert asyncio.run(run_uninstall(cluster))[0] == 0
        assert is_free(cluster), right


def is_free(cluster: LiveCozystack) -> bool:
    finalizers = [each["metadata"].get("finalizers") or [] for each in cluster.peek_all(HELMRELEASES)]
    return all("apps.cozystack.io/tenant" not in each for each in finalizers)
