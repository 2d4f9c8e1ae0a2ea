"""Creates and updates the objects that a TenantGateway owns, and deletes those that it no longer needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from controller.platform.settings import ACME_SERVERS, PlatformSettings, acme_server
from controller.runtime.apply import ClusterWriter, Owner
from controller.runtime.planning_writer import PlanningWriter
from controller.tenantgateway import names
from controller.tenantgateway.collected_errors import CollectedErrors
from controller.tenantgateway.index import OwnedObjectIndex
from controller.tenantgateway.listener_status import condition_state
from controller.tenantgateway.listenersets.existing_sets import NO_SETS, ExistingSets, may_grow
from controller.tenantgateway.model import Plan, TenantGateway
from controller.tenantgateway.render.certificates import render_certificates
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.render.issuer import IssuerNotRenderable, render_issuer
from controller.tenantgateway.render.listenerset import render_listener_sets
from controller.tenantgateway.render.redirect import render_redirect
from controller.tenantgateway.watched_kinds import WatchedKind, WatchedKinds
from registry.cluster.interface import is_terminating
from registry.tenantgateway.types import KIND

# Fields that a user may have set on an adopted object, and that would give it another purpose: they are removed.
_OTHER_ISSUER_TYPES = ("ca", "vault", "selfSigned", "venafi")
_OTHER_SUBJECT_FIELDS = ("ipAddresses", "uris", "emailAddresses", "otherNames", "literalSubject")


@dataclass(frozen=True, slots=True)
class TenantGatewayOwner:
    """An Owner whose objects carry an ownerReference with its uid, controller or not (R-211 to R-226, PEER-15)."""

    gateway: TenantGateway
    kind: str

    def refusal(self, current: Object) -> str:
        if is_owned(current, self.gateway.uid):
            return ""
        metadata, key = current["metadata"], self.gateway.key
        owner = f"{KIND} {key.namespace}/{key.name}"
        return (
            f"{self.kind.lower()} {metadata['namespace']}/{metadata['name']} exists but is not owned by {owner}: "
            f"rename or delete it, or add an ownerReference to that TenantGateway, uid {self.gateway.uid}"
        )


def is_owned(obj: Object, uid: str) -> bool:
    return any(each.get("uid") == uid for each in obj["metadata"].get("ownerReferences") or ())


class ObjectEnsurer:
    """Writes and deletes owned objects as planned. Errors are collected; each prevents only the writes that depend on
    the failed one."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        kinds: WatchedKinds,
        certificates: OwnedObjectIndex,
        listener_sets: OwnedObjectIndex,
        settings: Callable[[], PlatformSettings],
        remembers: bool = True,
    ) -> None:
        """`certificates` and `listener_sets` index the existing ones by owner. `remembers` is False for a `writer` that
        sends nothing: then nothing counts as written."""
        self._remembers = remembers
        self._writer = writer
        self._kinds = kinds
        self._certificates = certificates
        self._listener_sets = listener_sets
        self._settings = settings

    def planning(self, writer: PlanningWriter) -> ObjectEnsurer:
        """Plans instead of writing, by `writer`."""
        return ObjectEnsurer(
            writer=writer,
            kinds=self._kinds,
            certificates=self._certificates,
            listener_sets=self._listener_sets,
            settings=self._settings,
            remembers=False,
        )

    async def delete_all(self, gateway: TenantGateway, writer: ClusterWriter) -> None:
        """Delete what the TenantGateway owns, as the garbage collector does after it. Raises StatusError."""
        kinds, namespace, name = self._kinds, gateway.key.namespace, gateway.key.name
        redirect = Key(namespace, render_redirect(gateway)["metadata"]["name"])
        owned: Sequence[tuple[WatchedKind, Sequence[Key]]] = (
            (kinds.gateways, [gateway.key]),
            (kinds.listener_sets, self._listener_sets.owned_by(gateway.uid)),
            (kinds.certificates, self._certificates.owned_by(gateway.uid)),
            (kinds.issuers, [Key(namespace, names.issuer_name(name))]),
            (kinds.httproutes, [redirect]),
        )
        for kind, keys in owned:
            found = (kind.get(key) for key in keys)
            for each in [each for each in found if each is not None and is_owned(each, gateway.uid)]:
                await writer.delete(kind.resource, each)

    def observed_gateway(self, gateway: TenantGateway) -> Object | None:
        """The existing Gateway; None if it is missing or not owned by this TenantGateway."""
        found = self._kinds.gateways.get(gateway.key)
        return found if found is not None and is_owned(found, gateway.uid) else None

    def observed_certificates(self, gateway: TenantGateway, plan: Plan) -> dict[str, Object]:
        """The planned Certificates that exist and are owned by this TenantGateway, by name."""
        found = (self._kinds.certificates.get(Key(gateway.key.namespace, each.name)) for each in plan.certificates)
        return {each["metadata"]["name"]: each for each in found if each is not None and is_owned(each, gateway.uid)}

    def is_issued(self, gateway: TenantGateway, certificate: str) -> bool | None:
        """True if a Certificate of this TenantGateway is ready, so that its Secret exists; None if there is none."""
        found = self._kinds.certificates.get(Key(gateway.key.namespace, certificate))
        if found is None or not is_owned(found, gateway.uid):
            return None
        return condition_state(found, "Ready").ready

    def observed_sets(self, gateway: TenantGateway) -> ExistingSets:
        """The ListenerSets of the TenantGateway, as far as the settings allow them."""
        kind, settings = self._kinds.listener_sets, self._settings().gateway
        if not kind.synced:
            return NO_SETS
        class_ = self._kinds.gateway_classes.get(Key("", gateway.class_name))
        if settings.listener_sets == "never":
            return ExistingSets(withheld=may_grow("auto", class_))
        owned = (kind.get(key) for key in self._listener_sets.owned_by(gateway.uid))
        found = [each for each in owned if each is not None and not is_terminating(each)]
        numbered = {self._number_of(gateway, each): each for each in found}
        return ExistingSets(
            owned={number: each for number, each in numbered.items() if number},
            is_taken=lambda number: self._find_set(gateway, number) is not None,
            may_grow=may_grow(settings.listener_sets, class_),
        )

    def _number_of(self, gateway: TenantGateway, listener_set: Object) -> int:
        name, number = names.split_listener_set(listener_set["metadata"]["name"]) or ("", 0)
        return number if name == gateway.key.name else 0

    def _find_set(self, gateway: TenantGateway, number: int) -> Object | None:
        name = names.listener_set_name(gateway.key.name, number)
        return self._kinds.listener_sets.get(Key(gateway.key.namespace, name))

    async def ensure(self, gateway: TenantGateway, plan: Plan, errors: CollectedErrors) -> None:
        settings = self._settings().gateway
        kinds, grpc = settings.port443_kinds, settings.grpc_routes
        desired = render_gateway(gateway, plan, port443_kinds=kinds, grpc_routes=grpc)
        await self._ensure_object(self._kinds.gateways, gateway, desired, errors)
        for desired in render_listener_sets(gateway, plan, port443_kinds=kinds, grpc_routes=grpc):
            await self._ensure_object(self._kinds.listener_sets, gateway, desired, errors)
        await self._ensure_certificates(gateway, plan, errors)
        await self._ensure_object(self._kinds.httproutes, gateway, render_redirect(gateway), errors)
        await self._prune(gateway, plan, errors)

    async def _ensure_certificates(self, gateway: TenantGateway, plan: Plan, errors: CollectedErrors) -> None:
        """Writes no Certificate before the Issuer is ours: a foreign Issuer of that name would sign it, and
        cert-manager would keep that certificate until it expires."""
        if gateway.cert_mode == "existingSecret":
            return
        unavailable = [each for each in (self._kinds.issuers, self._kinds.certificates) if not each.synced]
        for kind in unavailable:
            errors.add(kind.unavailable_reason)
        if unavailable or not await self._ensure_issuer(gateway, errors):
            return
        for desired in render_certificates(gateway, plan):
            _remove_fields(desired, _OTHER_SUBJECT_FIELDS)
            await self._ensure_object(self._kinds.certificates, gateway, desired, errors)

    async def _ensure_issuer(self, gateway: TenantGateway, errors: CollectedErrors) -> bool:
        settings = self._settings()
        acme = acme_server(settings, gateway.issuer_name)
        if acme is None:
            issuers = ", ".join(sorted({*ACME_SERVERS, *settings.publishing.certificates.acme_servers}))
            errors.add(f'issuer: spec.issuerName "{gateway.issuer_name}" is not known: must be one of {issuers}')
            return False
        try:
            desired = render_issuer(gateway, acme)
        except IssuerNotRenderable as e:
            errors.add(f"issuer: {e}")
            return False
        _remove_fields(desired, _OTHER_ISSUER_TYPES)
        return await self._ensure_object(self._kinds.issuers, gateway, desired, errors)

    async def _ensure_object(
        self, kind: WatchedKind, gateway: TenantGateway, desired: Object, errors: CollectedErrors
    ) -> bool:
        """Returns whether the object now exists as desired."""
        key = Key(gateway.key.namespace, desired["metadata"]["name"])
        observed = kind.get(key)
        owner: Owner = TenantGatewayOwner(gateway, kind.kind)
        ensured: Object | None = None
        with errors.collecting(f"{kind.kind.lower()} {key.namespace}/{key.name}"):
            ensured = await self._writer.ensure(kind.resource, lambda _: desired, observed=observed, owner=owner)
        if self._remembers and ensured is not None and ensured is not observed:
            kind.record_write(ensured)
        return ensured is not None

    async def _prune(self, gateway: TenantGateway, plan: Plan, errors: CollectedErrors) -> None:
        """Deletes owned objects that are not needed in the current mode or with the current routes (R-101, R-158,
        R-179)."""
        kinds = self._kinds
        await self._prune_sets(gateway, plan, errors)
        # Certificates of ListenerSets that cannot be read would seem to be unused
        if kinds.certificates.synced and (kinds.listener_sets.synced or kinds.listener_sets.not_served):
            users = [self.observed_gateway(gateway), *self.observed_sets(gateway).owned.values()]
            needed = {each.name for each in plan.certificates}.union(*map(referenced_secrets, users))
            owned = self._certificates.owned_by(gateway.uid)
            await self._delete(kinds.certificates, gateway, [key for key in owned if key.name not in needed], errors)
            if any(key.name in needed for key in owned):
                return
        if kinds.issuers.synced and gateway.cert_mode == "existingSecret":
            issuer = Key(gateway.key.namespace, names.issuer_name(gateway.key.name))
            await self._delete(kinds.issuers, gateway, [issuer], errors)

    async def _prune_sets(self, gateway: TenantGateway, plan: Plan, errors: CollectedErrors) -> None:
        kind = self._kinds.listener_sets
        if kind.synced:
            needed = {each.name for each in plan.sets}
            owned = self._listener_sets.owned_by(gateway.uid)
            await self._delete(kind, gateway, [key for key in owned if key.name not in needed], errors)

    async def _delete(
        self, kind: WatchedKind, gateway: TenantGateway, keys: Sequence[Key], errors: CollectedErrors
    ) -> None:
        for key in keys:
            observed = kind.get(key)
            if observed is None or not is_owned(observed, gateway.uid) or observed["metadata"].get("deletionTimestamp"):
                continue
            with errors.collecting(f"{kind.kind.lower()} {key.namespace}/{key.name}"):
                await self._writer.delete(kind.resource, observed)


def referenced_secrets(gateway: Object | None) -> set[str]:
    """Names of the Secrets that the listeners of a Gateway or ListenerSet use; their Certificates must not be deleted
    yet."""
    listeners = ((gateway or {}).get("spec") or {}).get("listeners") or ()
    return {
        reference.get("name")
        for each in listeners
        for reference in (each.get("tls") or {}).get("certificateRefs") or ()
        if not reference.get("namespace")
    }


def _remove_fields(desired: Object, fields: Sequence[str]) -> None:
    desired["spec"] |= dict.fromkeys(fields)
