"""Limits of what the account writes, in CEL: the fields that could give more rights than the row of the table itself.

A field that an object has already may stay as it is, whatever its value: charts and older versions have set others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.publishing.services import PlatformService
from controller.tenant.helm_ownership import MANAGED_BY_LABEL
from controller.tenant.rbac_step import ROLE
from controller.tenant.rbac_subjects import LEVELS
from controller.tenant.self_access import RESOURCES, VERBS
from controller.tenantgateway.model import RouteKind
from controller.tenantgateway.names import CONTROLLER_NAME, GATEWAY_API_GROUP, VERTEX_LABEL
from registry.names import (
    ANCESTOR_LABEL_PREFIX,
    APPLICATION_GROUP_LABEL,
    APPLICATION_KIND_LABEL,
    GATEWAY_ATTACHED_BY_ANNOTATION,
    GATEWAY_LABEL,
    GROUP,
    KIND,
    NAMESPACE_LABEL_PREFIX,
    NAMESPACE_PREFIX,
    NO_DELETE_LABEL,
    RELEASE_PREFIX,
    ROOT_NAMESPACE,
    SCHEDULING_CLASS_LABEL,
    SELF_ROLE_PREFIX,
    SYSTEM_LABEL,
)
from registry.tenantgateway.types import GROUP as TENANTGATEWAY_GROUP
from registry.tenantgateway.types import KIND as TENANTGATEWAY_KIND
from tenant_apiserver.least_privilege.right import Installation, Limit

_HELM_ANNOTATIONS = "meta.helm.sh/"
_OUR_ANNOTATIONS = "apps.cozystack.io/"
_NAME_LABEL = "kubernetes.io/metadata.name"
_RELEASE_FIELDS = (
    *("chartRef", "interval", "suspend", "maxHistory", "install", "upgrade", "valuesFrom", "values"),
    *("waitStrategy", "healthCheckExprs"),
)
_ACTION_FIELDS = ("timeout", "strategy", "disableWait")
_IDENTITY = (APPLICATION_KIND_LABEL, APPLICATION_GROUP_LABEL)
_OWN_GROUP = f"subject.name in {list(LEVELS)}.map(level, variables.ownNamespace + '-' + level)"
_OWN_ACCOUNT = "subject.name == variables.ownNamespace"
_FAMILY_ACCOUNT = (
    f"(subject.name == '{ROOT_NAMESPACE}' || subject.name.startsWith('{NAMESPACE_PREFIX}') && "
    "(variables.namespaceName + '-').startsWith(subject.name + '-'))"
)


def changed_keys(field: str, allowed: str, message: str) -> Limit:
    """Only labels or annotations change for whose `key` the CEL expression `allowed` is true."""
    old, changed = f"old{field.title()}", f"changed{field.title()}"
    new_entries, old_entries = f"variables.{field}", f"variables.{old}"
    return Limit(
        variables={
            field: f"object.metadata.?{field}.orValue({{}})",
            old: f"oldObject == null ? {{}} : oldObject.metadata.?{field}.orValue({{}})",
            changed: (
                f"{new_entries}.filter(key, !(key in {old_entries}) || {old_entries}[key] != {new_entries}[key]) + "
                f"{old_entries}.filter(key, !(key in {new_entries}))"
            ),
        },
        expression=f"variables.{changed}.all(key, {allowed})",
        message=message,
    )


def namespace_limits() -> Sequence[Limit]:
    """Outside tenants, only the gateway label and its annotation change. Inside, labels that others trust do not, such
    as those of pod security."""
    tenant = f"variables.name.startsWith('{NAMESPACE_PREFIX}')"
    ours = [SCHEDULING_CLASS_LABEL, NO_DELETE_LABEL, MANAGED_BY_LABEL, _NAME_LABEL]
    labels = (
        f"key == '{GATEWAY_LABEL}' || {tenant} && (key.startsWith('{ANCESTOR_LABEL_PREFIX}') || "
        f"key.startsWith('{NAMESPACE_LABEL_PREFIX}') || key in {ours} || "
        f"key == '{SYSTEM_LABEL}' && !(key in variables.labels))"
    )
    annotations = (
        f"key == '{GATEWAY_ATTACHED_BY_ANNOTATION}' || {tenant} && (key.startsWith('{_OUR_ANNOTATIONS}') || "
        f"key.startsWith('{_HELM_ANNOTATIONS}'))"
    )
    unchanged = " && ".join(
        f"object.metadata.?{field}.orValue([]) == oldObject.metadata.?{field}.orValue([])"
        for field in ("ownerReferences", "finalizers")
    )
    return (
        changed_keys(
            "labels",
            labels,
            f"of a Namespace, only the label {GATEWAY_LABEL} may change, and in a tenant's those that the controllers "
            "set",
        ),
        changed_keys(
            "annotations",
            annotations,
            f"of a Namespace, only the annotation {GATEWAY_ATTACHED_BY_ANNOTATION} may change, and in a tenant's those "
            "that the controllers set",
        ),
        Limit(
            operation="UPDATE",
            expression=f"{tenant} || {unchanged}",
            message="owners and finalizers change only in the Namespaces of tenants",
        ),
    )


def secret_type(type_: str) -> Limit:
    return Limit(expression=f"object.type == '{type_}'", message=f"this Secret has type {type_}, which holds no token")


def service_account_limits() -> Sequence[Limit]:
    """Annotations of ServiceAccounts give rights in clouds."""
    allowed = f"key.startsWith('{_HELM_ANNOTATIONS}')"
    message = f"of a ServiceAccount, only annotations below {_HELM_ANNOTATIONS} may change"
    return (changed_keys("annotations", allowed, message),)


def role_binding_limits() -> Sequence[Limit]:
    cluster_role = f"object.roleRef.name == '{ROLE}' || object.roleRef.name.startsWith('{ROLE}:')"
    own_role = (
        f"object.roleRef.kind == 'Role' && object.roleRef.name.startsWith('{SELF_ROLE_PREFIX}') && "
        "object.roleRef.name == object.metadata.name"
    )
    group = f"subject.kind == 'Group' && ({_of_own_role(_OWN_GROUP)} || {_of_cluster_role(_family_group())})"
    account = (
        "subject.kind == 'ServiceAccount' && subject.name == subject.namespace && "
        f"({_of_own_role(_OWN_ACCOUNT)} || {_of_cluster_role(_FAMILY_ACCOUNT)})"
    )
    subjects = f"object.?subjects.orValue([]).all(subject, subject in variables.oldSubjects || {group} || {account})"
    tenant = f"object.roleRef.name.substring({len(SELF_ROLE_PREFIX)})"
    return (
        Limit(
            expression=f"object.roleRef.kind == 'ClusterRole' && ({cluster_role}) || {own_role}",
            message=f"only the ClusterRoles {ROLE} and {ROLE}:* may be bound, and Roles {SELF_ROLE_PREFIX}* by a "
            "RoleBinding of their name",
        ),
        Limit(
            variables={
                "oldSubjects": "oldObject == null ? [] : oldObject.?subjects.orValue([])",
                # the workload namespace of the Tenant that the Role names
                "ownNamespace": f"variables.namespaceName == '{ROOT_NAMESPACE}' ? '{NAMESPACE_PREFIX}' + {tenant} : "
                f"variables.namespaceName + '-' + {tenant}",
            },
            expression=subjects,
            message="a role is bound only to the groups and the ServiceAccounts of the tenant and its ancestors, and "
            "the Role of one Tenant to its own",
        ),
    )


def _family_group() -> str:
    """The name of a group is that of a namespace, a dash and a level."""
    namespace_and_dash = "subject.name.substring(0, subject.name.size() - level.size())"
    ancestor = (
        f"subject.name == '{ROOT_NAMESPACE}-' + level || subject.name != '{NAMESPACE_PREFIX}' + level && "
        f"(variables.namespaceName + '-').startsWith({namespace_and_dash})"
    )
    return f"{list(LEVELS)}.exists(level, subject.name.endsWith('-' + level) && ({ancestor}))"


def _of_own_role(condition: str) -> str:
    return f"object.roleRef.kind == 'Role' && {condition}"


def _of_cluster_role(condition: str) -> str:
    return f"object.roleRef.kind == 'ClusterRole' && {condition}"


def role_limits() -> Sequence[Limit]:
    """A Role that lets people see their own Tenant, which has its name."""
    rule = " && ".join(
        (
            f"object.rules[0].apiGroups == ['{GROUP}']",
            f"object.rules[0].resources.all(resource, resource in {list(RESOURCES)})",
            f"object.rules[0].?resourceNames.orValue([]) == [object.metadata.name.substring({len(SELF_ROLE_PREFIX)})]",
            f"object.rules[0].verbs.all(verb, verb in {list(VERBS)})",
        )
    )
    return (
        Limit(
            expression=f"object.?rules.orValue([]).size() == 1 && {rule}",
            message="a Role has one rule, which allows to get, list and watch the Tenant that it is named after",
        ),
    )


def is_application_release() -> str:
    """A HelmRelease that stores an application, before the write if there is one. That of a Tenant has its prefix."""
    kind, group = (f"variables.target.metadata.?labels[?'{label}'].orValue('')" for label in _IDENTITY)
    return (
        f"{group} == '{GROUP}' && {kind} != '' && ({kind} != '{KIND}' || variables.name.startsWith('{RELEASE_PREFIX}'))"
    )


def release_limits(installation: Installation) -> Sequence[Limit]:
    """Flux renders the chart with its own rights: the account decides on the values only.

    The chart of an application is that of its ApplicationDefinition, which no expression can read. Its source lies in
    the namespace of the tenants' chart, where only the platform writes.
    """
    chart, secret = installation.chart, {"kind": "Secret", "name": installation.values_secret}
    kind = f"metadata.?labels[?'{APPLICATION_KIND_LABEL}'].orValue('')"
    return (
        Limit(
            variables={"chart": _literal(chart)},
            operation="CREATE",
            expression="object.spec.?chartRef.orValue({}) == variables.chart || "
            f"object.{kind} != '{KIND}' && "
            f"object.spec.?chartRef.?namespace.orValue('') == '{chart['namespace']}'",
            message=f"spec.chartRef of a new HelmRelease is {_words(chart)}, or another one of this namespace if it "
            "stores no Tenant",
        ),
        Limit(
            operation="UPDATE",
            expression=f"object.{kind} == oldObject.{kind}",
            message="a HelmRelease keeps the kind of its application",
        ),
        Limit(
            operation="CREATE",
            expression=f"dyn(object.spec).all(field, field in {list(_RELEASE_FIELDS)})",
            message=f"spec of a new HelmRelease has only the fields {', '.join(_RELEASE_FIELDS)}",
        ),
        Limit(
            operation="CREATE",
            expression="['install', 'upgrade'].all(action, dyn(object.spec)[?action].orValue({})"
            f".all(field, field in {list(_ACTION_FIELDS)}))",
            message=f"install and upgrade of a new HelmRelease have only the fields {', '.join(_ACTION_FIELDS)}",
        ),
        Limit(
            variables={"valuesSecret": _literal(secret)},
            operation="CREATE",
            expression="object.spec.?valuesFrom.orValue([]).all(source, source == variables.valuesSecret)",
            message=f"spec.valuesFrom of a new HelmRelease names only {_words(secret)}",
        ),
        only_fields_change("values", message="of the spec of a HelmRelease, only values may change"),
    )


def only_fields_change(*fields: str, message: str) -> Limit:
    """In an update, no other field of the spec changes, appears or disappears."""
    allowed = f"field in {list(fields)}" if len(fields) > 1 else f"field == '{fields[0]}'"
    return Limit(
        operation="UPDATE",
        expression=(
            f"dyn(object.spec).all(field, {allowed} || field in dyn(oldObject.spec) && "
            "dyn(oldObject.spec)[field] == dyn(object.spec)[field]) && "
            f"dyn(oldObject.spec).all(field, {allowed} || field in dyn(object.spec))"
        ),
        message=message,
    )


def has_tenantgateway_owner(variable: str) -> str:
    return (
        f"{variable}.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind == '{TENANTGATEWAY_KIND}' && "
        f"owner.apiVersion.startsWith('{TENANTGATEWAY_GROUP}/'))"
    )


def owner_stays() -> Limit:
    return Limit(
        expression=has_tenantgateway_owner("object"), message=f"its owner of kind {TENANTGATEWAY_KIND} must remain"
    )


def is_flat_route(variable: str, kind: RouteKind) -> str:
    """A route that another of its kind owns, with the labels by which we know it again (delegation/flat_routes.py)."""
    owners = f"{variable}.metadata.?ownerReferences.orValue([])"
    labels = f"{variable}.metadata.?labels.orValue({{}})"
    return (
        f"{owners}.exists(owner, owner.kind == '{kind}' && "
        f"owner.apiVersion.startsWith('{GATEWAY_API_GROUP}/')) && '{VERTEX_LABEL}' in {labels}"
    )


def flat_route_stays(kind: RouteKind) -> Limit:
    return Limit(
        expression=is_flat_route("object", kind), message=f"its owner of kind {kind} and its labels must remain"
    )


def annotations_stay() -> Limit:
    """Annotations let others act: cert-manager issues a certificate with any subject for an annotated Gateway, into a
    Secret that the Gateway names, and external-dns publishes any target of a route."""
    return changed_keys("annotations", "false", "annotations of Gateways and routes stay as they are")


def platform_route_annotations() -> Limit:
    """Helm's let a chart take a route over."""
    allowed = f"key.startsWith('{_OUR_ANNOTATIONS}') || key.startsWith('{_HELM_ANNOTATIONS}')"
    return changed_keys("annotations", allowed, "of the annotations of platform routes, only ours and Helm's change")


def platform_route_backends(services: Sequence[PlatformService]) -> Limit:
    backends = sorted({each.backend for each in services})
    return Limit(
        expression="object.spec.?rules.orValue([]).all(rule, !has(rule.filters) && "
        f"rule.?backendRefs.orValue([]).all(ref, ref.name in {backends} && !has(ref.namespace)))",
        message="platform routes lead to Services of the platform in their own namespace",
    )


def route_status_limit() -> Limit:
    """The status of a route has an entry of each controller that serves it."""
    return Limit(
        expression=f"{_foreign_entries('object')} == {_foreign_entries('oldObject')}",
        message=f"in the status of a route, only entries of {CONTROLLER_NAME} may change",
    )


def _foreign_entries(variable: str) -> str:
    foreign = f"entry.?controllerName.orValue('') != '{CONTROLLER_NAME}'"
    return f"{variable}.?status.?parents.orValue([]).filter(entry, {foreign})"


def api_service_limits() -> Sequence[Limit]:
    return (
        only_fields_change(
            "caBundle", "insecureSkipTLSVerify", message="of the spec of an APIService, only the CA may change"
        ),
        Limit(
            expression="!object.spec.?insecureSkipTLSVerify.orValue(false)",
            message="the aggregator must verify the server's certificate",
        ),
    )


def _literal(fields: Mapping[str, str]) -> str:
    """A CEL map."""
    return "{" + ", ".join(f"'{key}': '{value}'" for key, value in fields.items()) + "}"


def _words(fields: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in fields.items())
