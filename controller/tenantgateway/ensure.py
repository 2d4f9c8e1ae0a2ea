"""Creates and updates the objects that a TenantGateway owns, and deletes those that it no longer needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from controller.platform.settings import ACME_SERVERS, PlatformSettings, acme_server
from controller.runtime.apply import ClusterWriter, Owner
from controller.tenantgateway import names
from controller.tenantgateway.collected_errors import CollectedErrors
from controller.tenantgateway.index import OwnedObjectIndex
from controller.tenantgateway.model import Plan, TenantGateway
from controller.tenantgateway.render.certificates import render_certificates
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.render.issuer import IssuerNotRenderable, render_issuer
from controller.tenantgateway.render.redirect import render_redirect
from controller.tenantgateway.watched_kinds import WatchedKind, WatchedKinds
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
        settings: Callable[[], PlatformSettings],
    ) -> None:
        """`certificates` indexes the existing Certificates by owner."""
        self._writer = writer
        self._kinds = kinds
        self._certificates = certificates
        self._settings = settings

    def observed_gateway(self, gateway: TenantGateway) -> Object | None:
        """The existing Gateway; None if it is missing or not owned by this TenantGateway."""
        found = self._kinds.gateways.get(gateway.key)
        return found if found is not None and is_owned(found, gateway.uid) else None

    def observed_certificates(self, gateway: TenantGateway, plan: Plan) -> dict[str, Object]:
        """The planned Certificates that exist and are owned by this TenantGateway, by name."""
        found = (self._kinds.certificates.get(Key(gateway.key.namespace, each.name)) for each in plan.certificates)
        return {each["metadata"]["name"]: each for each in found if each is not None and is_owned(each, gateway.uid)}

    async def ensure(self, gateway: TenantGateway, plan: Plan, errors: CollectedErrors) -> None:
        desired = render_gateway(gateway, plan, port443_kinds=self._settings().gateway.port443_kinds)
        await self._ensure_object(self._kinds.gateways, gateway, desired, errors)
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
        if ensured is not None and ensured is not observed:
            kind.record_write(ensured)
        return ensured is not None

    async def _prune(self, gateway: TenantGateway, plan: Plan, errors: CollectedErrors) -> None:
        """Deletes owned objects that are not needed in the current mode or with the current routes (R-101, R-158,
        R-179)."""
        kinds = self._kinds
        if kinds.certificates.synced:
            needed = {each.name for each in plan.certificates} | referenced_secrets(self.observed_gateway(gateway))
            surplus = [key for key in self._certificates.owned_by(gateway.uid) if key.name not in needed]
            await self._delete(kinds.certificates, gateway, surplus, errors)
        if kinds.issuers.synced and gateway.cert_mode == "existingSecret":
            issuer = Key(gateway.key.namespace, names.issuer_name(gateway.key.name))
            await self._delete(kinds.issuers, gateway, [issuer], errors)

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
    """Names of the Secrets that the listeners of a Gateway use; their Certificates must not be deleted yet."""
    listeners = ((gateway or {}).get("spec") or {}).get("listeners") or ()
    return {
        reference.get("name")
        for each in listeners
        for reference in (each.get("tls") or {}).get("certificateRefs") or ()
        if not reference.get("namespace")
    }


def _remove_fields(desired: Object, fields: Sequence[str]) -> None:
    desired["spec"] |= dict.fromkeys(fields)
