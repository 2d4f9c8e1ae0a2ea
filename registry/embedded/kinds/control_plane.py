"""The kinds that configure the API server itself: RBAC, admission, aggregation."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.meta.name_validation import path_segment_errors
from apiserver.meta.resource import Column, Schema
from registry.embedded.kinds import schema_builders as schemas
from registry.embedded.kinds import table_cells as cells
from registry.embedded.kinds.kind import CREATED_AT, Kind
from registry.embedded.kinds.policy_validation import ExpressionErrors, PolicyBindingValidation, PolicyValidation
from registry.embedded.kinds.rbac_validation import RoleBindingValidation, RoleValidation
from registry.embedded.kinds.schema_builders import (
    INTEGER,
    LABEL_SELECTOR,
    STRING,
    STRINGS,
    list_of,
    merged_list,
    open_struct,
    struct,
    with_default,
)
from registry.embedded.kinds.webhook_validation import WebhookValidation
from registry.rbac import role_index as rbac

_ADMISSION = "admissionregistration.k8s.io"

_RULE = struct(
    {
        "verbs": STRINGS,
        "apiGroups": STRINGS,
        "resources": STRINGS,
        "resourceNames": STRINGS,
        "nonResourceURLs": STRINGS,
    }
)
_RULES = list_of(_RULE, **{"x-kubernetes-list-type": "atomic"})
_SUBJECT = struct({"kind": STRING, "apiGroup": STRING, "name": STRING, "namespace": STRING})
_BINDING = {
    "subjects": list_of(_SUBJECT, **{"x-kubernetes-list-type": "atomic"}),
    "roleRef": struct(
        {"apiGroup": STRING, "kind": STRING, "name": STRING},
        **{"x-kubernetes-map-type": "atomic"},
    ),
}
_BINDING_COLUMNS = (
    Column("Role", description="The role that is granted."),
    Column("Users", description="Users to whom it is granted.", priority=1),
    Column("Groups", description="Groups to which it is granted.", priority=1),
    Column("ServiceAccounts", description="Service accounts to which it is granted.", priority=1),
)

ROLE = Kind(
    group=rbac.GROUP,
    kind="Role",
    plural="roles",
    description="Role is a set of permissions in a namespace.",
    name_errors=path_segment_errors,
    properties={"rules": _RULES},
    replaces_default_columns=True,
    columns=CREATED_AT,
    cells=cells.created_at,
    validation=RoleValidation(namespaced=True),
)
CLUSTERROLE = Kind(
    group=rbac.GROUP,
    kind="ClusterRole",
    plural="clusterroles",
    namespaced=False,
    description="ClusterRole is a set of permissions that is granted in one namespace or in all.",
    name_errors=path_segment_errors,
    properties={"rules": _RULES, "aggregationRule": struct({"clusterRoleSelectors": list_of(LABEL_SELECTOR)})},
    replaces_default_columns=True,
    columns=CREATED_AT,
    cells=cells.created_at,
    validation=RoleValidation(namespaced=False),
)
ROLEBINDING = Kind(
    group=rbac.GROUP,
    kind="RoleBinding",
    plural="rolebindings",
    description="RoleBinding grants a role in a namespace.",
    name_errors=path_segment_errors,
    properties=_BINDING,
    columns=_BINDING_COLUMNS,
    cells=cells.binding,
    validation=RoleBindingValidation(namespaced=True),
)
CLUSTERROLEBINDING = Kind(
    group=rbac.GROUP,
    kind="ClusterRoleBinding",
    plural="clusterrolebindings",
    namespaced=False,
    description="ClusterRoleBinding grants a role in all namespaces.",
    name_errors=path_segment_errors,
    properties=_BINDING,
    columns=_BINDING_COLUMNS,
    cells=cells.binding,
    validation=RoleBindingValidation(namespaced=False),
)
_NAMED = open_struct({"name": STRING, "expression": STRING}, required=("name",))
_MATCH_CONDITIONS = merged_list(_NAMED, "name")
_OPERATION_RULES = list_of(
    open_struct(
        {
            "scope": with_default("*"),
            **dict.fromkeys(("operations", "apiGroups", "apiVersions", "resources", "resourceNames"), STRINGS),
        }
    ),
    **{"x-kubernetes-list-type": "atomic"},
)
_MATCHING = {
    "matchPolicy": with_default("Equivalent"),
    "namespaceSelector": with_default({}, LABEL_SELECTOR),
    "objectSelector": with_default({}, LABEL_SELECTOR),
}
_MATCH_RESOURCES = open_struct(
    {**_MATCHING, "resourceRules": _OPERATION_RULES, "excludeResourceRules": _OPERATION_RULES}, **schemas.ATOMIC
)
_SERVICE_PORT = with_default(443, INTEGER)
_WEBHOOK: Mapping[str, Schema] = {
    **_MATCHING,
    "name": STRING,
    "failurePolicy": with_default("Fail"),
    "timeoutSeconds": with_default(10, INTEGER),
    "rules": _OPERATION_RULES,
    "matchConditions": _MATCH_CONDITIONS,
    "sideEffects": STRING,
    "admissionReviewVersions": STRINGS,
    "clientConfig": open_struct(
        {
            "url": STRING,
            "caBundle": {"type": "string", "format": "byte"},
            "service": open_struct({"name": STRING, "namespace": STRING, "path": STRING, "port": _SERVICE_PORT}),
        }
    ),
}
_MUTATING: Mapping[str, Schema] = {**_WEBHOOK, "reinvocationPolicy": with_default("Never")}
_POLICY_SPEC = open_struct(
    {
        "failurePolicy": with_default("Fail"),
        "matchConstraints": _MATCH_RESOURCES,
        "matchConditions": _MATCH_CONDITIONS,
        "variables": merged_list(open_struct({"name": STRING, "expression": STRING}), "name"),
        "paramKind": open_struct({"apiVersion": STRING, "kind": STRING}, **schemas.ATOMIC),
        "validations": list_of(
            open_struct(dict.fromkeys(("expression", "message", "messageExpression", "reason"), STRING)),
            **{"x-kubernetes-list-type": "atomic"},
        ),
        "auditAnnotations": list_of(
            open_struct({"key": STRING, "valueExpression": STRING}), **{"x-kubernetes-list-type": "atomic"}
        ),
    }
)
_BINDING_SPEC = open_struct(
    {
        "policyName": STRING,
        "paramRef": open_struct(
            {**dict.fromkeys(("name", "namespace", "parameterNotFoundAction"), STRING), "selector": LABEL_SELECTOR},
            **schemas.ATOMIC,
        ),
        "matchResources": _MATCH_RESOURCES,
        "validationActions": schemas.STRING_SET,
    }
)
_API_SERVICE_SPEC = open_struct(
    {
        **dict.fromkeys(("group", "version"), STRING),
        **dict.fromkeys(("groupPriorityMinimum", "versionPriority"), INTEGER),
        "insecureSkipTLSVerify": schemas.BOOLEAN,
        "caBundle": {"type": "string", "format": "byte"},
        "service": open_struct({"name": STRING, "namespace": STRING, "port": _SERVICE_PORT}),
    }
)


def _webhooks(properties: Mapping[str, Schema]) -> Mapping[str, Schema]:
    return {"webhooks": merged_list(open_struct(properties, required=("name",)), "name")}


def policy_kind(expression_errors: ExpressionErrors) -> Kind:
    """`expression_errors` compiles the expressions of a policy."""
    return Kind(
        group=_ADMISSION,
        kind="ValidatingAdmissionPolicy",
        plural="validatingadmissionpolicies",
        namespaced=False,
        description="ValidatingAdmissionPolicy says what may be written, in CEL.",
        status=True,
        initial_status={},
        generation=True,
        properties={"spec": _POLICY_SPEC, "status": schemas.STATUS},
        columns=(
            Column("Validations", "integer", description="Number of expressions."),
            Column("ParamKind", description="Kind of its parameters."),
        ),
        cells=cells.admissionpolicy,
        validation=PolicyValidation(expression_errors),
    )


CONTROL_PLANE_KINDS = (
    ROLE,
    CLUSTERROLE,
    ROLEBINDING,
    CLUSTERROLEBINDING,
    Kind(
        group=_ADMISSION,
        kind="ValidatingAdmissionPolicyBinding",
        plural="validatingadmissionpolicybindings",
        namespaced=False,
        description="ValidatingAdmissionPolicyBinding puts a policy into effect.",
        generation=True,
        properties={"spec": _BINDING_SPEC},
        columns=(Column("PolicyName", description="The policy."), Column("ParamRef", description="Its parameters.")),
        cells=cells.admissionpolicybinding,
        validation=PolicyBindingValidation(),
    ),
    Kind(
        group=_ADMISSION,
        kind="ValidatingWebhookConfiguration",
        plural="validatingwebhookconfigurations",
        namespaced=False,
        description="ValidatingWebhookConfiguration names webhooks that may refuse a write.",
        generation=True,
        properties=_webhooks(_WEBHOOK),
        columns=(Column("Webhooks", "integer", description="Number of webhooks."),),
        cells=cells.webhooks,
        validation=WebhookValidation(),
    ),
    Kind(
        group=_ADMISSION,
        kind="MutatingWebhookConfiguration",
        plural="mutatingwebhookconfigurations",
        namespaced=False,
        description="MutatingWebhookConfiguration names webhooks that may change what is written.",
        generation=True,
        properties=_webhooks(_MUTATING),
        columns=(Column("Webhooks", "integer", description="Number of webhooks."),),
        cells=cells.webhooks,
        validation=WebhookValidation(),
    ),
    Kind(
        group="apiregistration.k8s.io",
        kind="APIService",
        plural="apiservices",
        namespaced=False,
        categories=("api-extensions",),
        description="APIService names the server of one version of a group.",
        status=True,
        properties={"spec": _API_SERVICE_SPEC, "status": schemas.STATUS},
        columns=(
            Column("Service", description="The Service that gets the requests."),
            Column("Available", description="True if the Service responds."),
        ),
        cells=cells.apiservice,
    ),
)
