"""Renders the Issuer of a TenantGateway, an ACME account of its own, as a desired object for `ClusterWriter`. Pure.

Fields that the settings leave out are None, so that values of earlier settings are removed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Protocol

from apiserver.meta.resource import Object
from controller.tenantgateway.model import TenantGateway
from controller.tenantgateway.names import account_secret_name, issuer_name, metadata, tenantgateway_labels
from controller.tenantgateway.render.redirect import http_listener

DEFAULT_PROVIDER = "cloudflare"
_PEM = "-----BEGIN"


class AcmeDirectory(Protocol):
    """The URL of an ACME directory (`server`), and the account there. `ca_bundle` is PEM or base64 of PEM; it and
    `email` may be empty."""

    @property
    def server(self) -> str: ...
    @property
    def email(self) -> str: ...
    @property
    def ca_bundle(self) -> str: ...


class IssuerNotRenderable(ValueError):
    """The TenantGateway lacks a value that the Issuer needs; the message names the field."""


def render_issuer(gateway: TenantGateway, acme: AcmeDirectory) -> Object:
    """The Issuer for the modes http01 and dns01 (R-141 to R-148, R-160 to R-173, PEER-16, PEER-17).

    Raises IssuerNotRenderable.
    """
    name = gateway.key.name
    return {
        "metadata": metadata(gateway, issuer_name(name), tenantgateway_labels(gateway)),
        "spec": {
            "acme": {
                "server": acme.server,
                "email": acme.email or None,
                "caBundle": _base64(acme.ca_bundle) or None,
                "privateKeySecretRef": {"name": account_secret_name(name)},
                "solvers": [_solver(gateway)],
            },
        },
    }


def _solver(gateway: TenantGateway) -> Object:
    if gateway.cert_mode == "http01":
        return {"http01": {"gatewayHTTPRoute": {"parentRefs": [http_listener(gateway)]}}, "dns01": None}
    block = gateway.dns01 or {}
    provider = str(block.get("provider") or DEFAULT_PROVIDER)
    if provider not in _PROVIDERS:
        raise IssuerNotRenderable(f'spec.dns01.provider "{provider}" is none of {", ".join(_PROVIDERS)}')
    settings = block.get(provider)
    rendered = _PROVIDERS[provider](settings if isinstance(settings, Mapping) else {})
    return {"dns01": {provider: rendered}, "http01": None}


def _cloudflare(settings: Mapping[str, object]) -> Object:
    default = {"name": "cloudflare-api-token-secret", "key": "api-token"}
    return {"apiTokenSecretRef": _secret(settings.get("apiTokenSecretRef"), default)}


def _route53(settings: Mapping[str, object]) -> Object:
    """Without a Secret cert-manager uses its ambient credentials: IRSA or the instance profile (R-163)."""
    secret = settings.get("secretAccessKeySecretRef")
    return {
        "region": _required(settings, "route53", "region"),
        "accessKeyID": _string(settings, "accessKeyID") or None,
        "secretAccessKeySecretRef": _optional_secret(secret, "secret-access-key"),
    }


def _digitalocean(settings: Mapping[str, object]) -> Object:
    default = {"name": "digitalocean-api-token-secret", "key": "access-token"}
    return {"tokenSecretRef": _secret(settings.get("tokenSecretRef"), default)}


def _rfc2136(settings: Mapping[str, object]) -> Object:
    """Only the name server is required (R-166 to R-168)."""
    return {
        "nameserver": _required(settings, "rfc2136", "nameserver"),
        "tsigKeyName": _string(settings, "tsigKeyName") or None,
        "tsigAlgorithm": _string(settings, "tsigAlgorithm") or "HMACSHA256",
        "tsigSecretSecretRef": _optional_secret(settings.get("tsigSecretSecretRef"), "tsig-secret-key"),
    }


_PROVIDERS: Mapping[str, Callable[[Mapping[str, object]], Object]] = {
    "cloudflare": _cloudflare,
    "route53": _route53,
    "digitalocean": _digitalocean,
    "rfc2136": _rfc2136,
}


def _secret(reference: object, default: Mapping[str, str]) -> Object:
    fields = reference if isinstance(reference, Mapping) else {}
    return {"name": _string(fields, "name") or default["name"], "key": _string(fields, "key") or default["key"]}


def _optional_secret(reference: object, key: str) -> Object | None:
    fields = reference if isinstance(reference, Mapping) else {}
    return {"name": name, "key": _string(fields, "key") or key} if (name := _string(fields, "name")) else None


def _required(settings: Mapping[str, object], provider: str, field: str) -> str:
    if not (value := _string(settings, field)):
        raise IssuerNotRenderable(f"spec.dns01.{provider}.{field} must not be empty")
    return value


def _string(settings: Mapping[str, object], field: str) -> str:
    value = settings.get(field)
    return value if isinstance(value, str) else ""


def _base64(ca_bundle: str) -> str:
    """The base64 form of a bundle that may be PEM or base64 already."""
    return base64.b64encode(ca_bundle.encode()).decode() if _PEM in ca_bundle else ca_bundle
