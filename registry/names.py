"""Names that other components read from the API, and the rules by which they are built. Pure.

Names shared with other platform components are fixed; names private to this server are under `apps.cozystack.io/`.
"""

from __future__ import annotations

import re

from apiserver.meta.errors import FieldError, invalid
from apiserver.meta.go_quote import go_quote

GROUP = "apps.cozystack.io"
VERSION = "v1alpha1"
KIND = "Tenant"

# Boolean fields of a Tenant's spec that enable a service. `gateway` is separate, because it may also be unset.
SERVICE_FLAGS = ("etcd", "monitoring", "ingress", "seaweedfs", "computeplane")

ROOT_NAME = "root"
ROOT_NAMESPACE = "tenant-root"
NAMESPACE_PREFIX = "tenant-"
RELEASE_PREFIX = "tenant-"
SELF_ROLE_PREFIX = "cozy:tenant-self:"
"""Of the Role in the parent's namespace by which the people of a Tenant see it, and of its RoleBinding."""

# Labels of a HelmRelease that stores a Tenant.
APPLICATION_KIND_LABEL = "apps.cozystack.io/application.kind"
APPLICATION_GROUP_LABEL = "apps.cozystack.io/application.group"
APPLICATION_NAME_LABEL = "apps.cozystack.io/application.name"
SHARD_LABEL = "sharding.fluxcd.io/key"
USER_KEY_PREFIX = "apps.cozystack.io-"
RELEASE_SELECTOR = f"{APPLICATION_KIND_LABEL}={KIND},{APPLICATION_GROUP_LABEL}={GROUP}"
"""Selects the HelmReleases of all applications that are no Tenants."""

# Annotations of that HelmRelease that are never shown to clients.
MANAGED_FIELDS_ANNOTATION = "apps.cozystack.io/managed-fields"
FINDINGS_ANNOTATION = "apps.cozystack.io/tenant-status"
APPLICATION_STATUS_ANNOTATION = "apps.cozystack.io/application-status"
LONG_KEYS_ANNOTATION = "apps.cozystack.io/long-keys"
APP_VERSION_ANNOTATION = "apps.cozystack.io/app-version"
DELETION_MARK_ANNOTATION = "apps.cozystack.io/deletion-mark"
UNCONFIRMED_ANNOTATION = "apps.cozystack.io/unconfirmed"
"""On a HelmRelease whose last write of a host has not been judged at its own event, as far as the cluster shows."""

POOL_QUOTA_NAME = "tenant-pool"
"""The ResourceQuota of a pool, which the controller writes into each of its namespaces."""

# The annotation of the Lease that replicas record their claims in.
CLAIMS_ANNOTATION = "apps.cozystack.io/claims"

TENANT_FINALIZER = "apps.cozystack.io/tenant"
FLUX_FINALIZER = "finalizers.fluxcd.io"
HIDDEN_FINALIZERS = frozenset((TENANT_FINALIZER, FLUX_FINALIZER))

# An annotation of the Tenant itself.
CASCADE_ANNOTATION = "tenant.cozystack.io/allow-cascading-deletion"

# Labels and annotations of a Tenant's Namespace.
ANCESTOR_LABEL_PREFIX = "tenant.cozystack.io/"
NAMESPACE_LABEL_PREFIX = "namespace.cozystack.io/"
HOST_LABEL = f"{NAMESPACE_LABEL_PREFIX}host"
GATEWAY_LABEL = f"{NAMESPACE_LABEL_PREFIX}gateway"
GATEWAY_ATTACHED_BY_ANNOTATION = "cozystack.io/gateway-attached-by"
NO_DELETE_LABEL = "platform.cozystack.io/no-delete"
SCHEDULING_CLASS_LABEL = "scheduler.cozystack.io/scheduling-class"
SYSTEM_LABEL = "cozystack.io/system"
"""On the platform's own Namespaces. Their Pods reach the Pods of all tenants."""
TENANT_ANNOTATION = "apps.cozystack.io/tenant"
"""`<namespace>/<name>` of the Tenant for which we created the Namespace."""

# Annotations of an object that Helm created.
RELEASE_NAME_ANNOTATION = "meta.helm.sh/release-name"
RELEASE_NAMESPACE_ANNOTATION = "meta.helm.sh/release-namespace"

_NAME = re.compile(r"[a-z][a-z0-9]*")
_TENANT_ACCOUNTS = "system:serviceaccount:tenant-"
_TENANT_ACCOUNT = re.compile(f"{_TENANT_ACCOUNTS}[^-:]+")
"""Up to the first child of the root in a namespace's name: no tenant has a dash in its own."""
_NAME_RULE = (
    "tenant names must start with a lowercase letter and contain only lowercase letters and digits; "
    "dashes are not allowed"
)
# The name of a Helm release has at most 53 characters, and starts with `tenant-`.
MAX_NAME = 53 - len(RELEASE_PREFIX)
MAX_NAMESPACE = 63
MAX_HOST = 253
MAX_LABEL_VALUE = 63
_NO_DNS_NAME = "must be a DNS name: "
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def is_root(namespace: str, name: str) -> bool:
    return namespace == ROOT_NAMESPACE and name == ROOT_NAME


def workload_namespace(parent_namespace: str, name: str) -> str:
    """The workload namespace of the Tenant `name` in `parent_namespace` (R-039 to R-041)."""
    if parent_namespace == ROOT_NAMESPACE:
        return ROOT_NAMESPACE if name == ROOT_NAME else NAMESPACE_PREFIX + name
    return f"{parent_namespace}-{name}"


def release_name(name: str) -> str:
    return RELEASE_PREFIX + name


def flow_of(user: str) -> str:
    """The flow by which the limits of a process count a user: its own name. ServiceAccounts of a child of the root and
    of all tenants below it are one flow, because a tenant can make any number of them (ATTACK-19)."""
    if user.startswith(_TENANT_ACCOUNTS) and (found := _TENANT_ACCOUNT.match(user)):
        return found[0]
    return user


def tenant_name(release: str) -> str | None:
    """The name of the Tenant that a HelmRelease of this name stores, None if it cannot store one."""
    return release[len(RELEASE_PREFIX) :] or None if release.startswith(RELEASE_PREFIX) else None


def tenant_name_errors(parent_namespace: str, name: str) -> list[FieldError]:
    """All errors in the name of a new Tenant in this namespace (R-032 to R-034, R-044, WIRE-D41)."""
    problems = []
    if not _NAME.fullmatch(name):
        problems.append(_NAME_RULE)
    if len(name) > MAX_NAME:
        problems.append(f"tenant names must be no more than {MAX_NAME} characters")
    if name == "super":
        problems.append(
            "the name is reserved: the group <namespace>-super-admin of a tenant of that name would be its parent's"
        )
    namespace = workload_namespace(parent_namespace, name)
    if len(namespace) > MAX_NAMESPACE:
        problems.append(
            f'the workload namespace "{namespace}" would have {len(namespace)} characters, '
            f"and must have no more than {MAX_NAMESPACE}"
        )
    return [invalid("metadata.name", name, problem) for problem in problems]


def canonical_host(host: str) -> str:
    """The form in which hosts are compared: lower case, without a trailing dot (ATTACK-08, FACT-5)."""
    return host.lower().removesuffix(".")


def host_errors(host: str) -> list[str]:
    """The reasons why `host` is not a domain name in canonical form (ATTACK-08), empty for a valid one."""
    if not host:
        return ["must not be empty"]
    problems = []
    if "*" in host:
        problems.append("must not contain a wildcard")
    if host != canonical_host(host):
        problems.append("must be in lower case and without a trailing dot")
    if len(host) > MAX_HOST:
        problems.append(f"must be no more than {MAX_HOST} characters")
    labels = canonical_host(host).removeprefix("*.").split(".")
    if not all(_DNS_LABEL.fullmatch(label) for label in labels):
        problems.append(
            f"{_NO_DNS_NAME}labels of at most 63 lower case letters, digits and '-', that start and end with a "
            "letter or digit, separated by dots"
        )
    elif labels[-1].isdigit():
        problems.append("must be a DNS name, not an IP address: the last label must not be a number")
    return problems


def asked_host_error(host: str) -> str:
    """The reason why nobody can serve a `host` that a user asks about, in any case and with or without a wildcard;
    empty for one that can be served."""
    problems = host_errors(canonical_host(host).removeprefix("*."))
    return f"{go_quote(host)} is not a DNS name: {problems[0].removeprefix(_NO_DNS_NAME)}" if problems else ""


def user_key(stored: str) -> str | None:
    """The key of the user's label or annotation that is stored as `stored`, None if it is not a user's."""
    if not stored.startswith(USER_KEY_PREFIX):
        return None
    key = stored[len(USER_KEY_PREFIX) :]
    return key if key and not key.startswith("/") else None


def stored_key(key: str) -> str | None:
    """The key under which a user's label or annotation is stored: its own with the prefix `apps.cozystack.io-`.

    None if that exceeds the limits of a key (63 characters for its name, 253 for its prefix).
    """
    prefix, slash, _ = key.rpartition("/")
    fits = len(USER_KEY_PREFIX) + len(prefix if slash else key) <= (253 if slash else 63)
    return USER_KEY_PREFIX + key if fits else None
