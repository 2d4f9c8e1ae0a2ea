"""The subresource `tenants/explain`: reads what the user may know, and answers by a pure function of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from apiserver import rest
from apiserver.authorization.authorizer import AccessAttributes, Authorizer
from apiserver.encoding.encoded_object import CachedObject, encode
from apiserver.meta.resource import Key, Object, Resource
from apiserver.request.context import RequestContext, User
from registry.cluster.interface import CLUSTERROLEBINDINGS, ROLEBINDINGS, ClusterClient
from registry.explain.chains.host import explain_host
from registry.explain.chains.namespace import explain_namespace
from registry.explain.chains.route import explain_route
from registry.explain.chains.tenant import explain_tenant
from registry.explain.chains.user import explain_readers, explain_user
from registry.explain.known import KnownTenant
from registry.explain.read import read_host, read_namespace, read_route, read_tenant
from registry.explain.read_quota import read_quota
from registry.explain.readers import read_readers
from registry.explain.reading_slots import ReadingSlots
from registry.explain.rights import AskedUser, read_user
from registry.explain.sight import Sight
from registry.explain.sources import ExplainSources
from registry.explain.subject import ExplainedSubject, parse_subject
from registry.explain.types import explanation_resource

_ACCOUNT, _NODE, _ANONYMOUS = "system:serviceaccount:", "system:node:", "system:anonymous"
_EVERYBODY = ("system:authenticated",)
_REVIEWS_GROUP, _REVIEWS = "authorization.k8s.io", "subjectaccessreviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """Explains one subject to one user."""

    cluster: ClusterClient
    authorizer: Authorizer
    sources: ExplainSources
    slots: ReadingSlots = field(default_factory=ReadingSlots)

    async def explain(self, user: User, tenant: Object, subject: ExplainedSubject) -> Object:
        """`tenant` is one that the user may get. Raises AccessDenied for rights that the subject needs besides,
        TooManyRequests, and ClusterUnreachable."""
        sight, sources, about = Sight(self.cluster, self.authorizer, user), self.sources, str(subject)
        known = await read_tenant(sources, sight, tenant)
        match subject.kind:
            case "tenant":
                return explain_tenant(known, await read_quota(sources.tree, sight, tenant), about)
            case "host":
                return explain_host(await read_host(sources, sight, known, subject.name, self.slots), about)
            case "route":
                return explain_route(
                    await read_route(sources, sight, known, Key(subject.namespace, subject.name)), about
                )
            case "namespace":
                return explain_namespace(await read_namespace(sources, sight, known, subject.name), about)
            case "user":
                return await self._explain_user(sight, known, subject)
            case "who-can-see":
                return await self._explain_readers(sight, known, about)

    async def _explain_user(self, sight: Sight, known: KnownTenant, subject: ExplainedSubject) -> Object:
        if subject.name == sight.user.name and not subject.groups:
            return explain_user(await read_user(sight, known, self._asked(sight.user)), str(subject))
        # whoever may create these learns the same from kube-apiserver
        review = AccessAttributes(user=sight.user, verb="create", group=_REVIEWS_GROUP, version="v1", resource=_REVIEWS)
        await sight.require(review)
        by_name = groups_of(subject.name)
        user = User(name=subject.name, groups=tuple(dict.fromkeys([*by_name, *subject.groups])))
        known_groups = bool(subject.groups) or by_name != _EVERYBODY
        asked = replace(self._asked(user), groups=subject.groups, groups_are_known=known_groups)
        return explain_user(await read_user(sight, known, asked), str(subject))

    def _asked(self, user: User) -> AskedUser:
        return AskedUser(user=user, may_set_host=self.sources.may_set_host(user))

    async def _explain_readers(self, sight: Sight, known: KnownTenant, about: str) -> Object:
        bindings = AccessAttributes(
            user=sight.user,
            verb="list",
            group=ROLEBINDINGS.group,
            version=ROLEBINDINGS.version,
            resource=ROLEBINDINGS.plural,
            namespace=known.key.namespace,
        )
        await sight.require(bindings)
        cluster_wide = await sight.may("list", CLUSTERROLEBINDINGS)
        async with self.slots.held(sight.user.name):
            readers = await read_readers(self.cluster, known, cluster_wide=cluster_wide)
        return explain_readers(readers, about)


class TenantExplain(rest.Getter):
    """Answers `get` of `tenants/explain` to those who may also get the Tenant. An answer is about other Tenants, too,
    so it has this replica's writes to all of them."""

    def __init__(
        self, tenants: rest.Getter, explainer: Explainer, *, wait_for_own_writes: Callable[[], Awaitable[None]]
    ) -> None:
        self._tenants = tenants
        self._wait_for_own_writes = wait_for_own_writes
        self._explainer = explainer
        self._resource = explanation_resource()

    @property
    def resource(self) -> Resource:
        return self._resource

    async def get(self, context: RequestContext, key: Key, *, at_least: int = 0) -> CachedObject:
        """The explanation of the subject that the parameters `about` and `group` name. Raises BadRequest for another
        form, AccessDenied, NotFound, TooManyRequests, and ClusterUnreachable."""
        subject = parse_subject(context.query.get("about"), context.query.all("group"))
        sight = Sight(self._explainer.cluster, self._explainer.authorizer, context.user)
        await sight.require(sight.tenant_access("get", key))
        await self._wait_for_own_writes()
        tenant = (await self._tenants.get(context, key, at_least=at_least)).object()
        return encode(self._resource, await self._explainer.explain(context.user, tenant, subject))


def groups_of(name: str) -> tuple[str, ...]:
    """The groups that every user of this name has: all of them of an account, a node and anonymous users."""
    if name == _ANONYMOUS:
        return ("system:unauthenticated",)
    if name.startswith(_NODE):
        return ("system:nodes", "system:authenticated")
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if name.startswith(_ACCOUNT) and namespace and account and ":" not in account:
        return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return _EVERYBODY
