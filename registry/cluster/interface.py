"""The only code that calls the host: the Kubernetes API that this server aggregates under and keeps its state in.

Answers are plain JSON objects. A refusal of the host is raised as the host's own StatusError; whoever knows what the
call was for makes it an error of its resource.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

from apiserver.meta import errors
from apiserver.meta.resource import Object

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class ClusterResource:
    """A kind of the host: where its objects are found."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of a collection, an object or its subresource. Raises BadRequest for a name that is no segment
        of a path."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        if "." in parts or ".." in parts:
            raise errors.BadRequest(f'"{name or namespace}" may not be part of a path')
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
LEASES = ClusterResource("coordination.k8s.io", "v1", "leases", "Lease")
APISERVICES = ClusterResource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)

TOKEN_REVIEWS_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
SUBJECT_ACCESS_REVIEWS_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class WatchEvent(NamedTuple):
    """One frame of a watch: ADDED, MODIFIED, DELETED or BOOKMARK. An ERROR is raised, not yielded."""

    type: str
    object: Object


class ClusterUnreachable(errors.ServiceUnavailable):
    """No usable answer came from the host. What went wrong on the way is the cause, for the log and not for clients."""

    def __init__(self, message: str = "the host API cannot be reached", *, retry_after: int = 1) -> None:
        super().__init__(message, retry_after=retry_after)


class NotServed(ClusterUnreachable):
    """The host serves nothing of the kind's group. To clients that is no better than a host that is away."""

    def __init__(self) -> None:
        super().__init__("the host does not serve the kind")


def is_terminating(namespace: Object) -> bool:
    phase = (namespace.get("status") or {}).get("phase")
    return phase == "Terminating" or bool(namespace["metadata"].get("deletionTimestamp"))


def is_namespace_terminating_error(error: errors.StatusError) -> bool:
    """Whether the host takes nothing new into the namespace any more. It never will again: what ends stays ended."""
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes)


class ClusterClient(Protocol):
    """Every method raises the host's StatusError, or ClusterUnreachable if there was no usable answer."""

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
        """The List document: one page if `limit` is given."""
        ...

    async def each_list_item(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        take: Callable[[Object], None],
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> str:
        """Give every object to `take` as it comes, and the List's resourceVersion when all are there.

        With a `resource_version` the host may answer from its cache, with nothing older than that; "0" is any.
        Items of a list need not say what kind they are. What was taken before an error is to be thrown away.
        """
        ...

    async def create(
        self, res: ClusterResource, obj: Object, *, namespace: str = "", dry_run: bool = False, field_manager: str = ""
    ) -> Object:
        """`namespace` is the object's own where it is empty."""
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
        """A Status, or the object while something keeps it. `options` are the fields of DeleteOptions."""
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
    ) -> AsyncIterator[WatchEvent]:
        """Events after `resource_version`, bookmarks included, until the host ends the stream. Raises what an ERROR
        event says. Whoever stops early closes the iterator."""
        ...

    async def review(self, path: str, body: Object) -> Object:
        """POST a document that is answered and not stored, such as a TokenReview."""
        ...
