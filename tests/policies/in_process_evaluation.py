"""Evaluates cases in the test process, with the plugin that the standalone server uses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from admission.policy.plugin import ValidatingPolicies
from apiserver.admission import Attributes
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object, Resource
from apiserver.patch.json_and_merge import merge_patch
from apiserver.request.context import RequestContext, User
from tests.admission.policy.policy_objects import StubNamespaces, plugin
from tests.apiserver.endpoints.request_contexts import make_context
from tests.policies.cases import NAMESPACES, Case

NAME = "evaluated"
_NAMESPACES = StubNamespaces(*({"metadata": {"name": name, "labels": dict(each)}} for name, each in NAMESPACES.items()))


def plugin_for(policy: Object, binding: Object) -> ValidatingPolicies:
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
        context=context_of(user.name, user.groups),
    )


@cache
def context_of(name: str, groups: tuple[str, ...]) -> RequestContext:
    """The context of a request of this user. It is made once, because that takes longer than most evaluations, which
    only read it."""
    return make_context("POST", user=User(name=name, groups=groups))


async def rejection(policy_plugin: ValidatingPolicies, request: Attributes) -> StatusError | None:
    try:
        await policy_plugin.validate(request)
    except StatusError as error:
        return error
    return None


def _whole(case: Case, content: Mapping[str, object]) -> Object:
    namespaced = {"namespace": case.namespace} if case.namespace else {}
    named = {"metadata": {"name": NAME, "labels": {"kubernetes.io/metadata.name": NAME}, **namespaced}}
    base: Object = {"apiVersion": case.api_version, "kind": case.kind, **named}
    whole: Object = merge_patch(base, content)
    return whole


def _resource(case: Case) -> Resource:
    return Resource(
        group=case.group,
        version=case.version,
        kind=case.kind,
        plural=case.plural,
        singular=case.kind.lower(),
        namespaced=bool(case.namespace),
    )
