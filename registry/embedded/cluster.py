"""The embedded cluster: a Kubernetes API and its controllers in this process, over one SQLite file.

It is meant for evaluation, development and CI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from apiserver import rest
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import GroupKind, Resource
from apiserver.schema.rules import RuleCompiler
from apiserver.storage.event_history import HistoryLimits
from apiserver.storage.watch_cache import WatchCache
from registry import names
from registry.application.release_errors import ApplicationNames
from registry.embedded.api_groups import (
    ServedVersion,
    StoredGroupVersion,
    build_served_versions,
    primary_backends,
    storages_by_group_version,
)
from registry.embedded.auth.bound_tokens import BoundTokens
from registry.embedded.auth.rbac_authorizer import RbacAuthorizer, RoleIndexUpdater
from registry.embedded.auth.secret_tokens import SECRETS, SERVICEACCOUNTS, SecretTokenIndex, TokenController
from registry.embedded.auth.signing_key import SigningKey
from registry.embedded.auth.token_authenticator import ServiceAccountTokens, TokenAuthenticator
from registry.embedded.bootstrap import bootstrap
from registry.embedded.controllers.clusterrole_aggregation import ClusterRoleAggregationController
from registry.embedded.controllers.default_serviceaccount import DefaultServiceAccountController
from registry.embedded.controllers.event_ttl import EventTtlController
from registry.embedded.controllers.garbage_collector import GarbageCollector
from registry.embedded.controllers.namespace_lifecycle import NamespaceController
from registry.embedded.controllers.ownership_graph import OwnerKind, ServedOwnerKinds
from registry.embedded.custom.bootstrap import bootstrap_definitions
from registry.embedded.custom.controller import DefinitionController
from registry.embedded.custom.definition_kind import DEFINITIONS
from registry.embedded.custom.kinds import CustomKinds
from registry.embedded.custom.names import BuiltInNames
from registry.embedded.kinds.core import EVENT
from registry.embedded.kinds.policy_validation import ExpressionErrors
from registry.embedded.kinds.reviews import REVIEWS
from registry.embedded.storage.reviews import review_storages
from registry.embedded.storage.token_request import TokenRequestStorage
from registry.generic.backend import Backend
from registry.rbac.role_index import RoleIndex
from registry.sqlite.backend import NAMESPACES
from registry.sqlite.database import Database

_RELEASES = "helmreleases.helm.toolkit.fluxcd.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTrust:
    """`authentication` is the data of the ConfigMap extension-apiserver-authentication, `ca` the PEM of the CA that
    signed the serving certificate, `signing_key` the key that signs service account tokens."""

    authentication: Mapping[str, str]
    ca: str
    signing_key: SigningKey


class EmbeddedCluster:
    """Call `open` first. Then `group_versions`, `authorizer` and `authenticator` can be used, and `run` runs the
    controllers. Call `close` at the end."""

    def __init__(
        self,
        *,
        path: Path,
        trust: ClusterTrust,
        compiler: RuleCompiler,
        policy_errors: ExpressionErrors,
        history: HistoryLimits | None = None,
    ) -> None:
        """`history` limits the watch history of each kind, `compiler` compiles the rules of custom kinds, and
        `policy_errors` the expressions of ValidatingAdmissionPolicies."""
        self._trust = trust
        self._database = database = Database(path)
        caches = partial(WatchCache, history=history or HistoryLimits())
        self._served = build_served_versions(database, compiler, policy_errors, caches)
        self._backends = primary_backends(self._served)
        stored_kinds = owner_kinds_of(self._served)
        self._owner_kinds = owner_kinds = ServedOwnerKinds(stored_kinds)
        self._custom = CustomKinds(
            database=database,
            caches=caches,
            compiler=compiler,
            backends=self._backends,
            owner_kinds=stored_kinds,
        )
        self._definition_controller = DefinitionController(
            database=database,
            definitions=self._backends[DEFINITIONS],
            kinds=self._custom,
        )
        self.reserve_names(())
        self._index = RoleIndex()
        accounts, secrets = self._backends[SERVICEACCOUNTS], self._backends[SECRETS]
        self._secret_tokens = SecretTokenIndex(database=database, accounts=accounts)
        self._bound_tokens = BoundTokens(key=trust.signing_key, accounts=accounts, secrets=secrets)
        self._tokens = ServiceAccountTokens(secret_tokens=self._secret_tokens, bound_tokens=self._bound_tokens)
        self._role_index_updater = RoleIndexUpdater(database=database, index=self._index)
        self._namespace_controller = NamespaceController(database=database, backends=self._backends)
        self._garbage_collector = GarbageCollector(database=database, backends=self._backends, kinds=owner_kinds)
        self._aggregation_controller = ClusterRoleAggregationController(database=database, backends=self._backends)
        self._token_controller = TokenController(database=database, backends=self._backends, ca=trust.ca)
        self._default_account_controller = DefaultServiceAccountController(database=database, backends=self._backends)
        self._built_in: Mapping[tuple[str, str], Mapping[str, rest.Storage]] | None = None
        self._event_ttl = EventTtlController(self._backends[str(EVENT.group_resource)])

    @property
    def index(self) -> RoleIndex:
        """The RBAC index of the stored roles and bindings."""
        return self._index

    @property
    def authorizer(self) -> Authorizer:
        return RbacAuthorizer(self._index)

    @property
    def authenticator(self) -> TokenAuthenticator:
        """Authenticates service account tokens."""
        return TokenAuthenticator(self._tokens)

    @property
    def caches(self) -> Sequence[WatchCache]:
        """The watch caches of all kinds, for metrics."""
        custom = (version.backend.cache for version in self._custom.versions)
        return [*(each.backend.cache for each in self._served), *custom]

    def on_kinds_changed(self, listener: Callable[[], None]) -> None:
        """Calls `listener` whenever `group_versions` returns something else than before."""
        self._definition_controller.on_change = listener

    def reserve_names(self, resources: Iterable[Resource]) -> None:
        """From now on, no CustomResourceDefinition gets the names of these kinds, which are served beside this cluster,
        or of its built-in ones."""
        stored = (each.backend.resource for each in self._served)
        self._definition_controller.reserve(BuiltInNames.of((*stored, *REVIEWS, *resources)))

    def own_by_releases(self, kinds: Iterable[ApplicationNames]) -> None:
        """From now on, owners of objects may have these kinds and no others of those that are stored as HelmReleases,
        besides Tenant. A dependent is deleted with its owner. No CustomResourceDefinition gets their names."""
        kinds = list(kinds)
        self._owner_kinds.released = {each.kind: OwnerKind(_RELEASES, True, each.release_name) for each in kinds}
        self._definition_controller.take_names((each.resource, each.kind) for each in kinds)

    @property
    def namespaces(self) -> Backend:
        """The backend that stores Namespaces."""
        return self._backends[NAMESPACES]

    async def open(self) -> None:
        """Opens the database, fills the caches and creates the system objects. Raises DatabaseUnusable."""
        await self._database.open()
        for each in self._served:
            await each.backend.load()
        await bootstrap_definitions(self._backends[DEFINITIONS])
        await self._definition_controller.serve_established()
        self._role_index_updater.load(self._backends)
        self._secret_tokens.load(self._backends[SECRETS])
        await bootstrap(self._backends, authentication=self._trust.authentication)

    def group_versions(self, authorizer: Authorizer) -> list[StoredGroupVersion]:
        """Returns everything that the API serves now. The storages of kinds that are served as before are the same
        objects. `authorizer` decides access reviews: it is the one that authorizes requests."""
        groups = {key: dict(storages) for key, storages in self._built_in_storages(authorizer).items()}
        for group_version, custom in self._custom.storages().items():
            # a built-in kind takes precedence
            groups[group_version] = {**custom, **groups.get(group_version, {})}
        return [StoredGroupVersion(group, version, storages) for (group, version), storages in groups.items()]

    def _built_in_storages(self, authorizer: Authorizer) -> Mapping[tuple[str, str], Mapping[str, rest.Storage]]:
        if self._built_in is not None:
            return self._built_in
        groups = storages_by_group_version(self._served, self._index)
        for plural, storage in review_storages(authorizer=authorizer, index=self._index, tokens=self._tokens).items():
            groups.setdefault((storage.resource.group, "v1"), {})[plural] = storage
        groups["", "v1"][f"{SERVICEACCOUNTS}/token"] = TokenRequestStorage(self._bound_tokens)
        self._built_in = groups
        return groups

    async def run(self) -> None:
        """Runs the controllers until cancelled. If one of them fails, all are stopped."""
        controllers = (
            self._definition_controller,
            self._namespace_controller,
            self._garbage_collector,
            self._aggregation_controller,
            self._token_controller,
            self._default_account_controller,
        )
        for controller in controllers:
            controller.load()
        async with asyncio.TaskGroup() as tasks:
            for controller in controllers:
                tasks.create_task(controller.run(), name=type(controller).__name__)
            tasks.create_task(self._event_ttl.run(), name=type(self._event_ttl).__name__)

    async def copy_to(self, path: Path) -> None:
        """Writes a copy of all stored objects into a new file, while requests are served. Raises ServiceUnavailable."""
        await self._database.copy_to(path)

    async def close(self) -> None:
        """Ends all watches, completes pending writes and closes the database."""
        for cache in self.caches:
            cache.close()
        await self._database.close()


def owner_kinds_of(served: Sequence[ServedVersion]) -> dict[GroupKind, OwnerKind]:
    """The built-in kinds, and Tenant, which owners of objects may have."""
    kinds = {
        each.backend.resource.group_kind: OwnerKind(each.backend.storage, each.backend.resource.namespaced)
        for each in served
    }
    # a Tenant is stored as a HelmRelease and has its uid
    tenant = GroupKind(names.GROUP, names.KIND)
    return {**kinds, tenant: OwnerKind(_RELEASES, True, names.release_name)}
