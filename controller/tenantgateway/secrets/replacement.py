"""Decides when the wildcard Secret that a TenantGateway names replaces the certificates that its Gateway serves. Pure.

We have no right to read the Secret, so a listener of the Gateway tries it: as soon as the Gateway's controller reports
that this listener is programmed, the Secret is there and holds a certificate. Until then, what serves stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from apiserver.meta.resource import Object
from controller.runtime.conditions import find_condition
from controller.tenantgateway.hostname_validation import SECRET_MISSING
from controller.tenantgateway.listener_status import listener_state
from controller.tenantgateway.listeners import HTTPS_PORT, MAX_LISTENERS
from controller.tenantgateway.model import PlannedListener, TenantGateway
from controller.tenantgateway.parse import mapping, mappings, string
from registry.names import canonical_host

INVALID_CERTIFICATE = "InvalidCertificateRef"
SECRET_NOT_CONFIRMED = "SecretNotConfirmed"

_KEPT = "until then, listeners and certificates stay as they are"


class Trial(NamedTuple):
    """A Secret that may not replace the certificates of before yet, if there is a `reason`. `listeners` try it: one, or
    none if there is no room."""

    reason: str = ""
    message: str = ""
    listeners: tuple[PlannedListener, ...] = ()


NO_TRIAL = Trial()


def trial(gateway: TenantGateway, current: Object | None) -> Trial:
    """The trial of the Secret that a TenantGateway names; NO_TRIAL if its Gateway may use the Secret: because it is
    proven, or because nothing would be lost. `current` is the existing Gateway."""
    if gateway.cert_mode != "existingSecret" or not gateway.wildcard_secret:
        return NO_TRIAL
    statuses = {
        string(each, "name"): each for each in mappings(mapping((current or {}).get("status")).get("listeners"))
    }
    existing = [*mappings(mapping((current or {}).get("spec")).get("listeners"))]
    probe = _probe(gateway)
    others = [each for each in existing if string(each, "name") != probe.name]
    serving = (each for each in others if not _uses(each, gateway) and _is_programmed(each, statuses))
    if next(serving, None) is None:
        return NO_TRIAL
    found = statuses.get(probe.name)
    if found is not None and listener_state(found).ready and not is_invalid(found):
        return NO_TRIAL
    return _describe(gateway, found, (probe,) if len(others) < MAX_LISTENERS else ())


def describe_secret(gateway: TenantGateway) -> str:
    return f"Secret {gateway.wildcard_secret_namespace or gateway.key.namespace}/{gateway.wildcard_secret}"


def is_invalid(listener: Mapping[str, Any]) -> bool:
    """True if the status of a listener says that its Secret is missing, or holds no certificate."""
    found = find_condition(listener.get("conditions"), "ResolvedRefs") or {}
    return (found.get("status"), found.get("reason")) == ("False", INVALID_CERTIFICATE)


def remedy(gateway: TenantGateway) -> str:
    namespace = gateway.wildcard_secret_namespace or gateway.key.namespace
    return f"create it in namespace {namespace}, with type kubernetes.io/tls, or correct spec.wildcardSecretRef"


def _describe(gateway: TenantGateway, found: Mapping[str, Any] | None, listeners: tuple[PlannedListener, ...]) -> Trial:
    secret = describe_secret(gateway)
    if found is not None and is_invalid(found):
        message = f"{secret} is missing or holds no certificate, as the Gateway's controller says: {remedy(gateway)}"
        return Trial(SECRET_MISSING, f"{message}; {_KEPT}", listeners)
    message = f"the Gateway's controller has not confirmed yet that it can use {secret}"
    if not listeners:
        message += f": a listener has to try it, but there are {MAX_LISTENERS}; remove a hostname"
    return Trial(SECRET_NOT_CONFIRMED, f"{message}; {_KEPT}", listeners)


def _probe(gateway: TenantGateway) -> PlannedListener:
    """Its name tells Secrets apart, so that no status of one is mistaken for that of another."""
    name = f"{gateway.wildcard_secret_namespace or gateway.key.namespace}/{gateway.wildcard_secret}"
    label = f"wildcard-secret-{sha256(name.encode()).hexdigest()[:8]}"
    return PlannedListener(
        name=label,
        protocol="HTTPS",
        port=HTTPS_PORT,
        hostname=f"{label}.{canonical_host(gateway.apex)}",
        certificate=gateway.wildcard_secret,
        certificate_namespace=gateway.wildcard_secret_namespace,
    )


def _uses(listener: Mapping[str, Any], gateway: TenantGateway) -> bool:
    """True if a listener needs no other Secret than that of the TenantGateway."""
    references = mappings(mapping(listener.get("tls")).get("certificateRefs"))
    wanted = (gateway.wildcard_secret, gateway.wildcard_secret_namespace or gateway.key.namespace)
    return all(
        (string(each, "name"), string(each, "namespace") or gateway.key.namespace) == wanted for each in references
    )


def _is_programmed(listener: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]]) -> bool:
    """True if the Gateway's controller has programmed the listener, at present or before its latest change."""
    found = statuses.get(string(listener, "name"))
    return found is not None and listener_state(found).ready
