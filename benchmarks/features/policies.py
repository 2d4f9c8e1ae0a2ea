"""python -m benchmarks.features.policies: the time that ten policies of five expressions add to a write.

No server runs: the plugin validates one request repeatedly.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from admission.policy.compiled_policy import ParamKind
from admission.policy.params import ParamObjects, UnknownParamKind
from admission.policy.plugin import ValidatingPolicies
from admission.policy.policy_source import PolicySource
from apiserver.meta.resource import Object
from benchmarks.command_line import parse_no_options, run
from benchmarks.features.admission_request import NoOpinionAuthorizer, SingleNamespaceSource, update_request

_POLICIES = 10
_WRITES = 2000
_EXPRESSIONS = (
    "!has(object.spec.host) || object.spec.host.matches('^[a-z0-9.-]+$')",
    "object.metadata.name.size() <= 63 && !object.metadata.name.startsWith('kube-')",
    "object.spec.resourceQuotas.all(name, object.spec.resourceQuotas[name] != '0')",
    "'tenants' in request.userInfo.groups || namespaceObject.metadata.labels['kind'] == 'tenant'",
    "oldObject == null || variables.host == oldObject.spec.host",
)


class _NoParams:
    async def objects(self, kind: ParamKind) -> ParamObjects:
        raise UnknownParamKind(kind)


def _policies() -> Sequence[Object]:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["tenants"]}
    spec: dict[str, Any] = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": {"matchLabels": {"kind": "tenant"}}},
        "variables": [{"name": "host", "expression": "object.spec.host"}],
        "validations": [{"expression": each} for each in _EXPRESSIONS],
    }
    return [{"metadata": {"name": f"policy-{n}"}, "spec": spec} for n in range(_POLICIES)]


def _bindings() -> Sequence[Object]:
    return [
        {"metadata": {"name": f"binding-{n}"}, "spec": {"policyName": f"policy-{n}", "validationActions": ["Deny"]}}
        for n in range(_POLICIES)
    ]


async def main() -> None:
    source = PolicySource()
    started = time.perf_counter()
    await source.policies.replace(_policies(), 1)
    await source.bindings.replace(_bindings(), 1)
    compiled = time.perf_counter() - started
    plugin = ValidatingPolicies(
        source=source, params=_NoParams(), namespaces=SingleNamespaceSource(), authorizer=NoOpinionAuthorizer()
    )
    request = update_request()
    times, cpu = [], time.thread_time()
    for _ in range(_WRITES):
        started = time.perf_counter()
        await plugin.validate(request)
        times.append((time.perf_counter() - started) * 1000)
    cpu = (time.thread_time() - cpu) * 1000 / _WRITES
    spread = statistics.quantiles(times, n=100)
    print(f"compiled in {compiled * 1000:.1f} ms")
    print(f"a write: median {spread[49]:.3f} ms, p99 {spread[98]:.3f} ms, processor time {cpu:.3f} ms")


if __name__ == "__main__":
    parse_no_options("python -m benchmarks.features.policies", __doc__)
    run(main())
