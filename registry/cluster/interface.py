"""The interface to the cluster: the Kubernetes API that this server is aggregated into, and that stores its state.

Responses are plain JSON objects. An error response is raised as the StatusError that kube-apiserver sent; callers
translate it into an error of their own resource.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

from apiserver.meta import errors
from apiserver.meta.go_quote import go_quote
from apiserver.meta.resource import GroupResource, Object
from registry.cluster.outage_log import OutageLog

REQUEST_SECONDS: Final = 30.0
"""The longest time until a call that is no watch has its result, or is given up; it is not sent again then."""
FORBIDDEN: Final = 403
# of kube-apiserver's authorization, as opposed to admission
_DENIED = re.compile(r' is forbidden: User "[^"]*" cannot ([a-z]+) resource "([^"]+)"(?: in API group "([^"]*)")?')


@dataclass(frozen=True, slots=True)
class ClusterResource:
    """A resource of the cluster and the paths of its objects."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection, an object or its subresource. Raises BadRequest for a name that cannot be a
        path segment."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        # kube-apiserver splits the path after it has decoded it, so that no escape protects a slash
        if any(part in (".", "..") or "/" in part for part in parts):
            raise errors.BadRequest(f"{go_quote(name or namespace)} may not be part of a path")
        return "/" + "/".join(quote(part, safe="") for part in parts)


HELMRELEASES = ClusterResource("helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease")
NAMESPACES = ClusterResource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = ClusterResource("", "v1", "secrets", "Secret")
CONFIGMAPS = ClusterResource("", "v1", "configmaps", "ConfigMap")
SERVICES = ClusterResource("", "v1", "services", "Service")
SERVICEACCOUNTS = ClusterResource("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS = ClusterResource("events.k8s.io", "v1", "events", "Event")
RESOURCEQUOTAS = ClusterResource("", "v1", "resourcequotas", "ResourceQuota")
LIMITRANGES = ClusterResource("", "v1", "limitranges", "LimitRange")
ROLES = ClusterResource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLEBINDINGS = ClusterResource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTERROLES = ClusterResource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTERROLEBINDINGS = ClusterResource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
VALIDATINGADMISSIONPOLICIES = ClusterResource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
VALIDATINGADMISSIONPOLICYBINDINGS = ClusterResource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
VALIDATINGWEBHOOKCONFIGURATIONS = ClusterResource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATINGWEBHOOKCONFIGURATIONS = ClusterResource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
NETWORKPOLICIES = ClusterResource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
INGRESSES = ClusterResource("networking.k8s.io", "v1", "ingresses", "Ingress")
SERVICECIDRS = ClusterResource("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", namespaced=False)
ENDPOINTSLICES = ClusterResource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
PERSISTENTVOLUMES = ClusterResource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
NODES = ClusterResource("", "v1", "nodes", "Node", namespaced=False)
LEASES = ClusterResource("coordination.k8s.io", "v1", "leases", "Lease")
APPLICATIONDEFINITIONS = ClusterResource(
    "cozystack.io", "v1alpha1", "applicationdefinitions", "ApplicationDefinition", namespaced=False
)
APISERVICES = ClusterResource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)

TOKEN_REVIEWS_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
SUBJECT_ACCESS_REVIEWS_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class WatchEvent(NamedTuple):
    """An event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK. An ERROR event is raised instead."""

    type: str
    object: Object


class Visited(NamedTuple):
    """The number of objects that were visited, and the bytes of JSON that were received. `truncated`: there are more
    objects."""

    objects: int
    size: int
    truncated: bool


class ClusterUnreachable(errors.ServiceUnavailable):
    """There was no usable response. The reason is the exception's cause, which is logged and not sent to clients."""

    def __init__(self, message: str = "kube-apiserver cannot be reached", *, retry_after: int = 1) -> None:
        super().__init__(message, retry_after=retry_after)


def reason_for_log(error: errors.StatusError) -> str:
    """The text of the cause, or of the error itself if there is no cause or it has no text, as a TimeoutError."""
    return str(error.__cause__ or "") or str(error)


def missing_right(error: errors.StatusError) -> str:
    """The right that the server lacks, such as "list secrets"; empty if the cluster has refused nothing, or something
    else."""
    denied = _DENIED.search(error.message) if error.code == FORBIDDEN else None
    return f"{denied[1]} {GroupResource(denied[3] or '', denied[2])}" if denied else ""


class UnexpectedAnswer(ClusterUnreachable):
    """The body of the answer is none of the API's, as that of kube-apiserver's aggregator if an aggregated server is
    down. The cause has the code and the beginning of the body."""


class NotServed(ClusterUnreachable):
    """The API group of the resource is not served. Clients see the same error as for an unreachable cluster."""

    def __init__(self) -> None:
        super().__init__("kube-apiserver does not serve the kind")


def is_terminating(namespace: Object) -> bool:
    """True if the Namespace is being deleted, by its phase or its deletionTimestamp."""
    phase = (namespace.get("status") or {}).get("phase")
    return phase == "Terminating" or bool(namespace["metadata"].get("deletionTimestamp"))


def is_namespace_terminating_error(error: errors.StatusError) -> bool:
    """True if a write failed because its namespace is being deleted, which a retry cannot change."""
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes)


def do_nothing() -> None:
    pass


ServedResource = tuple[str, str, str]
"""Group, version and plural."""


class ClusterClient(Protocol):
    """Every method raises the StatusError of an error response, or ClusterUnreachable without a usable response."""

    @property
    def outages(self) -> OutageLog:
        """The log of lost connections, for all informers."""
        ...

    async def get(self, res: ClusterResource, namespace: str, name: str) -> Object: ...

    async def list(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> Object:
        """The List document, or a page of it with `limit`. With both a `limit` and a `resource_version` other than "0",
        the list is exactly of that version; raises Expired if the cluster no longer has it."""
        ...

    async def served_resources(self) -> Collection[ServedResource] | None:
        """Everything that is served, by two requests for all callers at a time; None if the cluster has no aggregated
        discovery."""
        ...

    async def each_list_item(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        visit: Callable[[Object], None],
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> str:
        """Calls `visit` with each object as it arrives, and returns the resourceVersion of the list.

        With a `resource_version` the list may come from kube-apiserver's watch cache, at least as new as that; "0" is
        any version. Items may lack apiVersion and kind. After an error the caller discards what it has collected.
        """
        ...

    async def visit_first(
        self, res: ClusterResource, namespace: str = "", *, visit: Callable[[Object], None], limit: int, max_bytes: int
    ) -> Visited:
        """Calls `visit` with each of the first `limit` objects as it arrives, until more than `max_bytes` have been
        received. Items may lack apiVersion and kind. After an error the caller discards what it has collected.
        """
        ...

    async def create(
        self, res: ClusterResource, obj: Object, *, namespace: str = "", dry_run: bool = False, field_manager: str = ""
    ) -> Object:
        """Creates the object in `namespace`, or in that of its metadata if `namespace` is empty."""
        ...

    async def update(
        self,
        res: ClusterResource,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object: ...

    async def patch(
        self,
        res: ClusterResource,
        namespace: str,
        name: str,
        body: Any,
        *,
        content_type: str,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> Object: ...

    async def delete(
        self, res: ClusterResource, namespace: str, name: str, *, options: Mapping[str, Any] | None = None
    ) -> Object:
        """Returns a Status, or the object while finalizers block its removal. `options` are fields of DeleteOptions."""
        ...

    def watch(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        send_initial_events: bool = False,
        timeout_seconds: int = 300,
        on_open: Callable[[], object] = do_nothing,
    ) -> AsyncIterator[WatchEvent]:
        """Yields events after `resource_version`, including bookmarks, until kube-apiserver ends the stream. Calls
        `on_open` when it has accepted the watch. Raises the StatusError of an ERROR event. A caller that stops early
        closes the iterator."""
        ...

    async def review(self, path: str, body: Object) -> Object:
        """POSTs a document that is not stored, such as a TokenReview."""
        ...
