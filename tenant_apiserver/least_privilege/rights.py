"""The table of the rights of our ServiceAccount. Everything that the server may do in the cluster is a row of it.

To add a right:

1. Add a row, or a verb or a name to a row, with the reason and with what somebody who has taken over the Pod can do
   with it. A row that writes has a `place`, and limits for each field that could give more rights than the row itself.
2. Run `make manifests`, which writes the role, the policy of each kind, and the table of docs/security.md.
3. Let tests/e2e/privilege/test_rights_are_used.py use the right: it fails on a verb that kube-apiserver's audit log
   does not show. A right that shows in no log of its own, such as `bind`, names its test in `proofs`.
4. Add the writes that must be refused, and some that must not, to tests/policies/account.

Several rows can name one kind, as for Secrets: a write must have the place of one of them, and keep its limits.
"""

from __future__ import annotations

from collections.abc import Sequence

from admission.tenant.claims.claim_lease import NAME as CLAIMS_LEASE
from controller.platform.package import PACKAGE, PACKAGES
from controller.tenant.quota.rendering import LIMIT_RANGE_NAME, QUOTA_NAME
from controller.tenant.rbac_step import ROLES
from controller.tenant.self_access import RESOURCES
from controller.tenant.values_secret_step import SECRET_NAME as VALUES_SECRET
from registry.application.kept_forms import NAME as KEPT_FORMS
from registry.cluster.interface import APPLICATIONDEFINITIONS
from registry.names import GROUP, NAMESPACE_PREFIX, SELF_ROLE_PREFIX
from registry.tenant.pool_quotas import POOL_NAME, WITNESS_NAME
from registry.tenant.release_settings import ReleaseSettings
from registry.tenantgateway.types import TENANTGATEWAY_NAME
from tenant_apiserver.certificates.cluster_secret import SECRET_NAME as SERVING_SECRET
from tenant_apiserver.certificates.delegated_authentication import NAME, NAMESPACE
from tenant_apiserver.least_privilege import limits, places
from tenant_apiserver.least_privilege.gateway_rights import gateway_rights
from tenant_apiserver.least_privilege.isolation_rights import isolation_rights
from tenant_apiserver.least_privilege.projection_rights import TENANTSECRETS_ROLE, projection_rights
from tenant_apiserver.least_privilege.right import Installation, Place, Right, Role
from tenant_apiserver.serve import API_SERVICES
from tenant_apiserver.wiring.controllers import LEASE, REPORTING_CONTROLLER
from tenant_apiserver.wiring.platform_ratios import CONFIGMAP

_RELEASE = ReleaseSettings()
INSTALLATION = Installation(
    chart={"kind": _RELEASE.chart_kind, "name": _RELEASE.chart_name, "namespace": _RELEASE.chart_namespace},
    values_secret=_RELEASE.values_secret,
)
CLUSTER_ROLE = Role("tenant-apiserver", file="clusterrole.yaml")
CA_BUNDLE_ROLE = Role("tenant-apiserver:serving-certificate", file="clusterrole-serving-certificate.yaml")
LEASE_ROLE = Role("tenant-apiserver:lease", "cozy-system", "role-lease.yaml")
SERVING_SECRET_ROLE = Role("tenant-apiserver:serving-certificate", "cozy-system", "role-serving-certificate.yaml")
DELEGATOR = Role("system:auth-delegator")
AUTHENTICATION_READER = Role("extension-apiserver-authentication-reader", NAMESPACE)
KEPT_FORMS_ROLE = Role("tenant-apiserver:application-kinds", "cozy-system", "role-application-kinds.yaml")
OWN_ROLES = (CLUSTER_ROLE, CA_BUNDLE_ROLE, LEASE_ROLE, SERVING_SECRET_ROLE, KEPT_FORMS_ROLE)
"""Those of every installation."""
OPTIONAL_ROLES = (TENANTSECRETS_ROLE,)

READ = ("get", "list", "watch")
_CORE, _RBAC, _OURS = "", "rbac.authorization.k8s.io", "gateway.cozystack.io"
_PRIVILEGE = "tests/e2e/privilege/test_rights_are_used.py"
_KINDS = "tests/e2e/applications/test_every_kind.py"
_WHY_FINALIZERS = (
    "A cluster with the plugin OwnerReferencesPermissionEnforcement asks for it when an owned object is created with "
    "blockOwnerDeletion."
)
_OWNED_OBJECTS = {"update": f"{_PRIVILEGE}::test_owned_objects_need_the_right_to_the_owners_finalizers"}
RIGHTS: Sequence[Right] = (
    Right(
        role=CLUSTER_ROLE,
        group="helm.toolkit.fluxcd.io",
        resources=["helmreleases"],
        verbs=[*READ, "create", "update", "patch", "delete"],
        place=places.in_tenants(
            limits.is_application_release(), "labelled as an application, those of Tenants named tenant-*,"
        ),
        limits=limits.release_limits(INSTALLATION),
        why="Tenants and other applications are stored as HelmReleases.",
        remains="Read all HelmReleases of the cluster, with the values in them. Create, change and delete applications "
        "without any of the checks of admission. **Flux installs what a HelmRelease says with its own rights**, mostly "
        "those of an administrator: whatever the values of the platform's charts can do, the Pod can do. It cannot "
        "choose a chart from elsewhere, another cluster, account or namespace.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=APPLICATIONDEFINITIONS.group,
        resources=[APPLICATIONDEFINITIONS.plural],
        verbs=["list", "watch"],
        proofs=dict.fromkeys(("list", "watch"), f"{_KINDS}::test_a_kind_is_served_as_soon_as_its_definition_is_there"),
        why="Each of them is a kind that the server serves.",
        remains="Read all of them.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_CORE,
        resources=["namespaces"],
        verbs=[*READ, "create", "patch", "delete"],
        place=Place(
            expression=f"variables.name.startsWith('{NAMESPACE_PREFIX}') || request.operation == 'UPDATE'",
            words=f"{NAMESPACE_PREFIX}*; others may only be updated",
        ),
        limits=limits.namespace_limits(),
        proofs={
            "get": "tests/admission/test_namespace_lifecycle.py::test_cluster_namespaces_reads_the_cache_or_the_cluster"
        },
        why="Each Tenant has a Namespace. Namespaces that tenants' Gateways serve get a label.",
        remains="Delete the Namespaces of all tenants with all that is in them. Move hosts between tenants, and let "
        "routes of any Namespace attach to any tenant's Gateway.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_CORE,
        resources=["namespaces/finalizers"],
        verbs=["update"],
        why=_WHY_FINALIZERS,
        remains="Nothing: the subresource does not exist.",
        proofs=_OWNED_OBJECTS,
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_CORE,
        resources=["secrets"],
        verbs=[*READ, "create", "patch", "delete"],
        names=[VALUES_SECRET],
        place=places.named(VALUES_SECRET),
        limits=[limits.secret_type("Opaque")],
        why="The charts in a tenant's Namespace read their values from this Secret.",
        remains="Read and change the values of all charts in tenants, which Flux installs with its own rights. Read a "
        "Secret of this name in any other Namespace.",
    ),
    Right(
        role=SERVING_SECRET_ROLE,
        group=_CORE,
        resources=["secrets"],
        verbs=["get", "create", "update"],
        names=[SERVING_SECRET],
        place=places.at_home(SERVING_SECRET),
        limits=[limits.secret_type("kubernetes.io/tls")],
        why="The replicas share their CA and their serving certificate.",
        remains="Answer requests to the Tenant API in the place of the server, which it can do anyway.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_CORE,
        resources=["serviceaccounts"],
        verbs=[*READ, "create", "patch", "delete"],
        place=places.in_tenants("variables.name == variables.namespaceName", "the one with the name of its namespace,"),
        limits=limits.service_account_limits(),
        why="Each tenant has a ServiceAccount, to which the tenants below it grant access.",
        remains="Delete these accounts, so that their Pods lose access. It can issue no token for any account.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_CORE,
        resources=["resourcequotas"],
        verbs=[*READ, "create", "patch", "delete"],
        names=[QUOTA_NAME, POOL_NAME, WITNESS_NAME],
        place=places.named(QUOTA_NAME, POOL_NAME, WITNESS_NAME),
        why="`spec.resourceQuotas` of a Tenant, and its part of what its ancestors declare.",
        remains="Lift or tighten the quotas of tenants.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_CORE,
        resources=["limitranges"],
        verbs=[*READ, "create", "patch", "delete"],
        names=[LIMIT_RANGE_NAME],
        place=places.named(LIMIT_RANGE_NAME),
        why="Containers without limits must be able to start in a tenant with a quota.",
        remains="Prevent new Pods of tenants from starting.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_CORE,
        resources=["configmaps"],
        verbs=["list", "watch"],
        names=[CONFIGMAP],
        why="Older versions of Cozystack have the platform's host and the ratios of limits to requests there.",
        remains="Read the ConfigMaps of this name.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=PACKAGES.group,
        resources=[PACKAGES.plural],
        verbs=["list", "watch"],
        names=[PACKAGE],
        proofs={
            "watch": "tests/e2e/tenants/test_platform_package.py::"
            "test_the_package_of_the_platform_changes_settings_without_a_restart"
        },
        why="The settings of the platform are in this Package.",
        remains="Read it.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_RBAC,
        resources=["rolebindings"],
        verbs=[*READ, "create", "patch", "delete"],
        place=places.in_tenants(),
        limits=limits.role_binding_limits(),
        why=f"The groups and accounts of a tenant and its ancestors are bound to {ROLES[0]} and {ROLES[0]}:* in its "
        "Namespace, and those of a tenant to the Role of its own Tenant.",
        remains="Remove any RoleBinding in the Namespaces of tenants. Give the groups and accounts of a tenant and its "
        "ancestors any of these roles there; nobody else.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_RBAC,
        resources=["clusterroles"],
        verbs=["bind"],
        names=list(ROLES),
        why="A RoleBinding to a role with rights that the server does not have itself needs this verb.",
        remains="Nothing more: RoleBindings are limited as above, and ClusterRoleBindings it cannot write.",
        proofs={"bind": f"{_PRIVILEGE}::test_bindings_need_the_verb_bind"},
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_RBAC,
        resources=["roles"],
        verbs=[*READ, "create", "patch", "delete"],
        place=places.in_tenants(f"variables.name.startsWith('{SELF_ROLE_PREFIX}')", f"{SELF_ROLE_PREFIX}*"),
        limits=limits.role_limits(),
        why="A Role lets the people of a tenant see their own Tenant, which lies in the parent's Namespace. Visibility "
        "is computed from all Roles.",
        remains="Remove such a Role. Know who may do what.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=GROUP,
        resources=list(RESOURCES),
        verbs=READ,
        proofs=dict.fromkeys(READ, f"{_PRIVILEGE}::test_roles_need_the_rights_that_they_give"),
        why="Kubernetes lets an account write a Role only if it has the rights in it. The server never reads Tenants "
        "through its API.",
        remains="Read all Tenants, which it can do as HelmReleases anyway.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_OURS,
        resources=["tenantgateways"],
        verbs=[*READ, "create", "patch", "delete"],
        place=places.named(TENANTGATEWAY_NAME),
        why="A tenant with its own Gateway has a TenantGateway.",
        remains="Change which hostnames and certificates the Gateways of tenants have, and take Gateways from them.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_OURS,
        resources=["tenantgateways/status"],
        verbs=["patch"],
        why="Conditions of a TenantGateway.",
        remains="Show a wrong state.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_OURS,
        resources=["tenantgateways/finalizers"],
        verbs=["update"],
        why=_WHY_FINALIZERS,
        remains="Nothing: the subresource does not exist.",
        proofs=_OWNED_OBJECTS,
    ),
    *gateway_rights(CLUSTER_ROLE),
    *isolation_rights(CLUSTER_ROLE),
    *projection_rights(CLUSTER_ROLE),
    Right(
        role=CLUSTER_ROLE,
        group=_CORE,
        resources=["services"],
        verbs=READ,
        why="The status of a Tenant counts external addresses. Webhooks are called at Services. A "
        "route is told that its references are permitted only if the Services exist.",
        remains="Read all of them.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group="networking.k8s.io",
        resources=["ingresses"],
        verbs=["list", "watch"],
        why="While Gateways are off, Ingresses publish the platform's services. The publishing guard names those that "
        "nothing publishes.",
        remains="Read all of them.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group="cozystack.io",
        resources=["workloadmonitors"],
        verbs=["list", "watch"],
        proofs={
            "watch": "tests/e2e/tenants/test_workload_monitors.py::"
            "test_workload_monitors_determine_the_workloads_ready_condition"
        },
        why="The status of a Tenant or an application includes the state of its workloads.",
        remains="Read all of them.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group="events.k8s.io",
        resources=["events"],
        verbs=["create", "patch"],
        place=Place(
            expression=f"variables.target.?reportingController.orValue('') == '{REPORTING_CONTROLLER}'",
            words=f"of the reporting controller {REPORTING_CONTROLLER}",
        ),
        proofs={
            "patch": "tests/controller/runtime/test_event_recorder.py::"
            "test_a_hot_loop_writes_one_event_and_updates_its_series_once_a_minute"
        },
        why="Controllers report changes, and what is wrong with ApplicationDefinitions is told, as Events.",
        remains="Report what did not happen, under our name.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group=_RBAC,
        resources=["clusterroles", "clusterrolebindings"],
        verbs=["list", "watch"],
        why="Visibility is computed from the cluster's RBAC objects; roles and rolebindings are above. A Tenant whose "
        "people are bound to a missing ClusterRole is not ready.",
        remains="Know who may do what.",
    ),
    Right(
        role=CLUSTER_ROLE,
        group="admissionregistration.k8s.io",
        resources=[
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
            "mutatingwebhookconfigurations",
        ],
        verbs=["list", "watch"],
        why="The cluster's policies and webhooks apply to Tenants as well. Parameter kinds need a role of their own.",
        remains="Know which writes the cluster checks.",
    ),
    Right(
        role=CA_BUNDLE_ROLE,
        group="apiregistration.k8s.io",
        resources=["apiservices"],
        verbs=["get", "patch"],
        names=list(API_SERVICES),
        place=Place(
            expression="variables.target.spec.?service.orValue({}).?name.orValue('') == "
            f"'{INSTALLATION.service}' && variables.target.spec.service.namespace == variables.home",
            words=f"those that lead to Service {INSTALLATION.service} in the account's own namespace",
        ),
        limits=limits.api_service_limits(),
        why="The server writes its CA into the APIServices, so that the aggregator trusts it.",
        remains="Make the Tenant API unavailable.",
    ),
    Right(
        role=LEASE_ROLE,
        group="coordination.k8s.io",
        resources=["leases"],
        verbs=["get", "create", "update"],
        names=[LEASE, CLAIMS_LEASE, KEPT_FORMS],
        place=places.at_home(LEASE, CLAIMS_LEASE, KEPT_FORMS),
        why="One replica at a time runs the controllers, and one keeps the forms of kinds. Replicas record the hosts "
        "and quotas that they are about to write.",
        remains="Stop the controllers of all replicas. Keep all replicas from changing hosts and quotas, or let them "
        "store two Tenants that exclude each other.",
    ),
    Right(
        role=KEPT_FORMS_ROLE,
        group=_CORE,
        resources=["configmaps"],
        verbs=["list", "watch", "create", "patch"],
        names=[KEPT_FORMS],
        place=places.at_home(KEPT_FORMS),
        proofs=dict.fromkeys(
            ("list", "watch", "create", "patch"),
            f"{_KINDS}::test_a_changed_schema_applies_to_what_is_stored_and_a_bad_one_does_not",
        ),
        why="A kind is served in its last good form, also after a restart. That form is kept in this ConfigMap.",
        remains="Let a kind be served in an earlier or another form while its ApplicationDefinition cannot be served.",
    ),
    Right(
        role=DELEGATOR,
        group="authentication.k8s.io",
        resources=["tokenreviews"],
        verbs=["create"],
        why="The cluster decides whose token a request has.",
        remains="Test whether a token is valid.",
    ),
    Right(
        role=DELEGATOR,
        group="authorization.k8s.io",
        resources=["subjectaccessreviews"],
        verbs=["create"],
        why="The cluster decides what a user may do.",
        remains="Ask what anybody may do.",
    ),
    Right(
        role=AUTHENTICATION_READER,
        group=_CORE,
        resources=["configmaps"],
        verbs=READ,
        names=[NAME],
        why="The CAs of clients and of the aggregator are there.",
        remains="Read these CAs, which are public.",
    ),
)
