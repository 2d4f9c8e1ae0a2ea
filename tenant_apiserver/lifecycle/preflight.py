"""The `preflight` command: judges a step before anything is written. It only reads."""

from __future__ import annotations

from collections.abc import Sequence

from registry.cluster.read_only import ReadOnlyClusterClient
from tenant_apiserver.lifecycle.command import run_command
from tenant_apiserver.lifecycle.facts import ClusterFacts
from tenant_apiserver.lifecycle.findings import Check, Level, as_json, as_table, exit_status
from tenant_apiserver.lifecycle.installed import OperatorStep
from tenant_apiserver.lifecycle.ownership import judge_controllers, judge_names
from tenant_apiserver.lifecycle.reader import read_facts
from tenant_apiserver.lifecycle.serving import judge_serving
from tenant_apiserver.lifecycle.versions import judge_versions
from tenant_apiserver.lifecycle.writes import list_writes
from tenant_apiserver.options.lifecycle import PreflightOptions


def preflight(options: PreflightOptions) -> int:
    """Returns the exit status: 0, 1 if the step would break something, 2 if preflight itself cannot find out."""
    return run_command("preflight", lambda: _judge_cluster(options), after="nothing was written")


async def _judge_cluster(options: PreflightOptions) -> int:
    step = OperatorStep(options.step)
    cluster = await ReadOnlyClusterClient.connect(options.kubeconfig)
    try:
        checks = judge(await read_facts(cluster, step, options.groups), step)
    finally:
        await cluster.close()
    print(as_json(checks) if options.output == "json" else as_table(checks, full=options.verbose), end="")
    return exit_status(checks)


def judge(facts: ClusterFacts, step: OperatorStep) -> Sequence[Check]:
    """All checks of a step, in the order of the table. The proxy serves no group and runs no controllers."""
    of_the_server = (judge_serving, judge_versions, judge_controllers) if step is not OperatorStep.PROXY else ()
    return [
        *(check for judgement in of_the_server for check in judgement(facts, step)),
        *judge_names(facts, step),
        *list_writes(facts, step),
        *(Check("Not known", Level.UNKNOWN, "", note, "repeat when it can be read") for note in facts.notes),
    ]
