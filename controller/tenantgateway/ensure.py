"""Makes the Gateway, Issuer, Certificates and redirect of a TenantGateway, and takes away what it no longer has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from controller.platform.settings import ACME_SERVERS, PlatformSettings, acme_server
from controller.runtime.apply import Apply, Owner
from controller.tenantgateway import names
from controller.tenantgateway.collected_errors import Faults
from controller.tenantgateway.index import Derived
from controller.tenantgateway.model import GatewayFacts, Plan
from controller.tenantgateway.render.certificates import render_certificates
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.render.issuer import IssuerNotRenderable, render_issuer
from controller.tenantgateway.render.redirect import render_redirect
from controller.tenantgateway.watched_kinds import Kind, Kinds
from registry.tenantgateway.types import KIND

# Of an object that was handed over, what makes another thing of it.
_OTHER_ISSUERS = ("ca", "vault", "selfSigned", "venafi")
_OTHER_NAMES = ("ipAddresses", "uris", "emailAddresses", "otherNames", "literalSubject")


@dataclass(frozen=True, slots=True)
class Guard:
    """The TenantGateway as an owner: an ownerReference with its uid is enough (R-211 to R-226, PEER-15)."""

    gateway: GatewayFacts
    kind: str

    def refusal(self, current: Object) -> str:
        if is_owned(current, self.gateway.uid):
            return ""
        metadata, key = current["metadata"], self.gateway.key
        owner = f"{KIND} {key.namespace}/{key.name}"
        return (
            f"{self.kind.lower()} {metadata['namespace']}/{metadata['name']} exists but is not owned by {owner}: "
            f"rename or delete it, or give it an ownerReference to that, with the uid {self.gateway.uid}"
        )


def is_owned(obj: Object, uid: str) -> bool:
    return any(each.get("uid") == uid for each in obj["metadata"].get("ownerReferences") or ())


class Maker:
    """Every fault is collected, and stops nothing but what depends on it."""

    def __init__(
        self, *, apply: Apply, kinds: Kinds, certificates: Derived, settings: Callable[[], PlatformSettings]
    ) -> None:
        """`certificates` tells who owns which."""
        self._apply = apply
        self._kinds = kinds
        self._certificates = certificates
        self._settings = settings

    def current(self, gateway: GatewayFacts) -> Object | None:
        """The Gateway as it is, None if there is none of its own."""
        found = self._kinds.gateways.get(gateway.key)
        return found if found is not None and is_owned(found, gateway.uid) else None

    def certificates(self, gateway: GatewayFacts, plan: Plan) -> dict[str, Object]:
        """The planned Certificates that are there, by name."""
        found = (self._kinds.certificates.get(Key(gateway.key.namespace, each.name)) for each in plan.certificates)
        return {each["metadata"]["name"]: each for each in found if each is not None and is_owned(each, gateway.uid)}

    async def make(self, gateway: GatewayFacts, plan: Plan, faults: Faults) -> None:
        desired = render_gateway(gateway, plan, port443_kinds=self._settings().gateway.port443_kinds)
        await self._ensure(self._kinds.gateways, gateway, desired, faults)
        await self._certify(gateway, plan, faults)
        await self._ensure(self._kinds.httproutes, gateway, render_redirect(gateway), faults)
        await self._prune(gateway, plan, faults)

    async def _certify(self, gateway: GatewayFacts, plan: Plan, faults: Faults) -> None:
        """No Certificate without the Issuer: somebody else's of that name would sign it, and cert-manager would keep
        that until it expires."""
        if gateway.cert_mode == "existingSecret":
            return
        missing = [each for each in (self._kinds.issuers, self._kinds.certificates) if not each.seen]
        for kind in missing:
            faults.add(kind.lack)
        if missing or not await self._make_issuer(gateway, faults):
            return
        for desired in render_certificates(gateway, plan):
            _remove(desired, _OTHER_NAMES)
            await self._ensure(self._kinds.certificates, gateway, desired, faults)

    async def _make_issuer(self, gateway: GatewayFacts, faults: Faults) -> bool:
        settings = self._settings()
        acme = acme_server(settings, gateway.issuer_name)
        if acme is None:
            known = ", ".join(sorted({*ACME_SERVERS, *settings.publishing.certificates.acme_servers}))
            faults.add(f'issuer: spec.issuerName "{gateway.issuer_name}" is not known: must be one of {known}')
            return False
        try:
            desired = render_issuer(gateway, acme)
        except IssuerNotRenderable as e:
            faults.add(f"issuer: {e}")
            return False
        _remove(desired, _OTHER_ISSUERS)
        return await self._ensure(self._kinds.issuers, gateway, desired, faults)

    async def _ensure(self, kind: Kind, gateway: GatewayFacts, desired: Object, faults: Faults) -> bool:
        """Whether it is there as it is wanted."""
        key = Key(gateway.key.namespace, desired["metadata"]["name"])
        observed = kind.get(key)
        owner: Owner = Guard(gateway, kind.kind)
        made: Object | None = None
        with faults.collected(f"{kind.kind.lower()} {key.namespace}/{key.name}"):
            made = await self._apply.ensure(kind.resource, lambda _: desired, observed=observed, owner=owner)
        if made is not None and made is not observed:
            kind.wrote(made)
        return made is not None

    async def _prune(self, gateway: GatewayFacts, plan: Plan, faults: Faults) -> None:
        """What another mode or a former route left, and only what is ours (R-101, R-158, R-179)."""
        kinds = self._kinds
        if kinds.certificates.seen:
            kept = {each.name for each in plan.certificates} | served_secrets(self.current(gateway))
            surplus = [key for key in self._certificates.owned(gateway.uid) if key.name not in kept]
            await self._delete(kinds.certificates, gateway, surplus, faults)
        if kinds.issuers.seen and gateway.cert_mode == "existingSecret":
            issuer = Key(gateway.key.namespace, names.issuer_name(gateway.key.name))
            await self._delete(kinds.issuers, gateway, [issuer], faults)

    async def _delete(self, kind: Kind, gateway: GatewayFacts, keys: Sequence[Key], faults: Faults) -> None:
        for key in keys:
            observed = kind.get(key)
            if observed is None or not is_owned(observed, gateway.uid) or observed["metadata"].get("deletionTimestamp"):
                continue
            with faults.collected(f"{kind.kind.lower()} {key.namespace}/{key.name}"):
                await self._apply.delete(kind.resource, observed)


def served_secrets(gateway: Object | None) -> set[str]:
    """What a Gateway takes its certificates from: as long as it does, they stay."""
    listeners = ((gateway or {}).get("spec") or {}).get("listeners") or ()
    return {
        reference.get("name")
        for each in listeners
        for reference in (each.get("tls") or {}).get("certificateRefs") or ()
        if not reference.get("namespace")
    }


def _remove(desired: Object, fields: Sequence[str]) -> None:
    desired["spec"] |= dict.fromkeys(fields)
