"""Cases judged in the process, by the evaluator that the stand-alone host has."""

from __future__ import annotations

from collections.abc import Mapping

from admission.policy.plugin import ValidatingPolicies
from apiserver.admission import Attributes
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object, Resource
from apiserver.patch.json_and_merge import merge_patch
from apiserver.request.context import User
from tests.admission.policy.policy_objects import Namespaces, plugin
from tests.apiserver.endpoints.request_contexts import make_context
from tests.policies.cases import NAMESPACES, Case

NAME = "judged"
_NAMESPACES = Namespaces(*({"metadata": {"name": name, "labels": dict(each)}} for name, each in NAMESPACES.items()))


def judge_of(policy: Object, binding: Object) -> ValidatingPolicies:
    return plugin([policy], [binding], namespaces=_NAMESPACES)


def attributes(case: Case) -> Attributes:
    user = User(name=case.user, groups=(*case.groups, "system:authenticated"))
    old = None if case.old is None else _whole(case, case.old)
    new = _whole(case, case.new) if old is None else merge_patch(old, case.new)
    return Attributes(
        operation=case.operation,
        resource=_resource(case),
        subresource=case.subresource,
        namespace=case.namespace,
        name=NAME,
        object=new,
        old_object=old,
        user=user,
        context=make_context("POST", user=user),
    )


async def refused(judge: ValidatingPolicies, request: Attributes) -> StatusError | None:
    try:
        await judge.validate(request)
    except StatusError as error:
        return error
    return None


def _whole(case: Case, content: Mapping[str, object]) -> Object:
    placed = {"namespace": case.namespace} if case.namespace else {}
    named = {"metadata": {"name": NAME, "labels": {"kubernetes.io/metadata.name": NAME}, **placed}}
    base: Object = {"apiVersion": case.api_version, "kind": case.kind, **named}
    made: Object = merge_patch(base, content)
    return made


def _resource(case: Case) -> Resource:
    return Resource(
        group=case.group,
        version=case.version,
        kind=case.kind,
        plural=case.plural,
        singular=case.kind.lower(),
        namespaced=bool(case.namespace),
    )
