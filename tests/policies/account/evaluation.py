"""Evaluates the cases of our ServiceAccount in the test process, with the plugin that the standalone server uses."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import Literal, cast

from admission.policy.plugin import ValidatingPolicies
from apiserver.admission import Attributes
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object, Resource
from apiserver.patch.json_and_merge import merge_patch
from apiserver.request.context import User
from controller.publishing.services import SERVICES
from tenant_apiserver.least_privilege.policies import policies
from tenant_apiserver.least_privilege.rights import INSTALLATION, RIGHTS
from tests.admission.policy.policy_objects import StubNamespaces, plugin
from tests.policies.account.case import NAMESPACES, AccountCase
from tests.policies.in_process_evaluation import context_of

LIMITS: Mapping[str, tuple[Object, Object]] = policies(RIGHTS, INSTALLATION)
"""The policies and their bindings, by name."""
_PLATFORM = sorted({each.namespace for each in SERVICES.values()})
_NAMESPACES = StubNamespaces(*({"metadata": {"name": each}} for each in (*NAMESPACES, "kube-system", *_PLATFORM)))


def policy_of(case: AccountCase) -> str:
    """The name of the policy that limits the kind of the case."""
    return _policy_of(
        case.kind.group, f"{case.kind.plural}/{case.subresource}" if case.subresource else case.kind.plural
    )


@cache
def _policy_of(group: str, resource: str) -> str:
    [name] = [each for each, (policy, _) in LIMITS.items() if _covers(policy, group, resource)]
    return name


def plugin_for(policy: Object, binding: Object) -> ValidatingPolicies:
    return plugin([policy], [binding], namespaces=_NAMESPACES)


async def refusal(policy_plugin: ValidatingPolicies, case: AccountCase) -> str:
    """The status and the message of the refusal, empty if the write is admitted."""
    try:
        await policy_plugin.validate(_attributes(case))
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


def whole(case: AccountCase, content: Object) -> Object:
    """The object with the fields that every object has."""
    # kube-apiserver sets the label of Namespaces
    labels = {} if case.kind.namespaced else {"labels": {"kubernetes.io/metadata.name": case.name}}
    metadata = {"name": case.name, **labels} | ({"namespace": case.namespace} if case.kind.namespaced else {})
    base = {"apiVersion": case.kind.api_version, "kind": case.kind.kind, "metadata": metadata}
    document: Object = merge_patch(base, content)
    return document


def _covers(policy: Object, group: str, resource: str) -> bool:
    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
    return rule["apiGroups"] == [group] and resource in rule["resources"]


def _attributes(case: AccountCase) -> Attributes:
    user = User(name=case.user, groups=("system:masters", "system:authenticated"))
    kind = case.kind
    return Attributes(
        operation=cast(Literal["CREATE", "UPDATE", "DELETE"], case.operation),
        resource=Resource(
            group=kind.group,
            version=kind.version,
            kind=kind.kind,
            plural=kind.plural,
            singular=kind.kind.lower(),
            namespaced=kind.namespaced,
        ),
        subresource=case.subresource,
        namespace=case.namespace,
        name=case.name,
        object=None if case.new is None else whole(case, copy.deepcopy(case.new)),
        old_object=None if case.old is None else whole(case, copy.deepcopy(case.old)),
        user=user,
        context=context_of(user.name, user.groups),
    )
