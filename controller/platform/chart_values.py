"""Renders the platform's settings: the values that charts read, and the spec of TenantGateways. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from apiserver.meta.resource import Object
from controller.platform.settings import Dns01Settings, PlatformSettings


def cluster_values(settings: PlatformSettings, root_host: str) -> dict[str, str]:
    """The keys of the settings in `_cluster`, which charts read (R-171)."""
    publishing, gateway = settings.publishing, settings.gateway
    certificates = publishing.certificates
    return {
        "root-host": root_host,
        "solver": certificates.solver,
        "issuer-name": certificates.issuer_name,
        "wildcard-secret-name": certificates.wildcard_secret_name,
        "gateway-enabled": "true" if gateway.enabled else "false",
        "gateway-attached-namespaces": ",".join(gateway.attached_namespaces),
        "expose-services": ",".join(publishing.exposed_services),
        "expose-ingress": publishing.ingress_name,
        "expose-ingress-admin": publishing.ingress_name_admin or publishing.ingress_name,
        **_dns01_values(certificates.dns01),
    }


def unconfirmed_keys(settings: PlatformSettings, is_tenant: Callable[[str], bool]) -> Collection[str]:
    """The keys of `cluster_values` that name the namespace of no tenant: a typing error there would take the platform's
    services off, so charts keep the value of before."""
    publishing = settings.publishing
    publishers = {
        "expose-ingress": publishing.ingress_name,
        "expose-ingress-admin": publishing.ingress_name_admin or publishing.ingress_name,
    }
    return frozenset(key for key, namespace in publishers.items() if not is_tenant(namespace))


def _dns01_values(dns01: Dns01Settings) -> dict[str, str]:
    return {
        "dns01-provider": dns01.provider,
        "dns01-cloudflare-secret-name": dns01.cloudflare.secret_name,
        "dns01-cloudflare-secret-key": dns01.cloudflare.secret_key,
        "dns01-route53-region": dns01.route53.region,
        "dns01-route53-access-key-id": dns01.route53.access_key_id,
        "dns01-route53-secret-name": dns01.route53.secret_name,
        "dns01-route53-secret-key": dns01.route53.secret_key,
        "dns01-digitalocean-secret-name": dns01.digitalocean.secret_name,
        "dns01-digitalocean-secret-key": dns01.digitalocean.secret_key,
        "dns01-rfc2136-nameserver": dns01.rfc2136.nameserver,
        "dns01-rfc2136-tsig-key-name": dns01.rfc2136.tsig_key_name,
        "dns01-rfc2136-tsig-algorithm": dns01.rfc2136.tsig_algorithm,
        "dns01-rfc2136-secret-name": dns01.rfc2136.secret_name,
        "dns01-rfc2136-secret-key": dns01.rfc2136.secret_key,
    }


def tenantgateway_spec(settings: PlatformSettings, apex: str) -> Object:
    """The spec of a TenantGateway, with the block of the chosen DNS-01 provider only (R-088 to R-092, R-160 to
    R-168)."""
    certificates, gateway = settings.publishing.certificates, settings.gateway
    spec: Object = {
        "apex": apex,
        "certMode": "existingSecret" if certificates.wildcard_secret_name else certificates.solver,
        "issuerName": certificates.issuer_name,
        "gatewayClassName": gateway.gateway_class_name,
        "attachedNamespaces": list(gateway.attached_namespaces),
        "tlsPassthroughServices": list(gateway.tls_passthrough_services),
    }
    if certificates.wildcard_secret_name:
        namespace = certificates.wildcard_secret_namespace
        spec["wildcardSecretRef"] = {
            "name": certificates.wildcard_secret_name,
            **({"namespace": namespace} if namespace else {}),
        }
    elif certificates.solver == "dns01":
        provider = certificates.dns01.provider
        spec["dns01"] = {"provider": provider, provider: _PROVIDERS[provider](certificates.dns01)}
    return spec


def _cloudflare(dns01: Dns01Settings) -> Object:
    return {"apiTokenSecretRef": _key_ref(dns01.cloudflare.secret_name, dns01.cloudflare.secret_key)}


def _route53(dns01: Dns01Settings) -> Object:
    route53 = dns01.route53
    block: Object = {"region": route53.region}
    if route53.access_key_id:
        block["accessKeyID"] = route53.access_key_id
    if route53.secret_name:
        block["secretAccessKeySecretRef"] = _key_ref(route53.secret_name, route53.secret_key)
    return block


def _digitalocean(dns01: Dns01Settings) -> Object:
    return {"tokenSecretRef": _key_ref(dns01.digitalocean.secret_name, dns01.digitalocean.secret_key)}


def _rfc2136(dns01: Dns01Settings) -> Object:
    rfc2136 = dns01.rfc2136
    block: Object = {"nameserver": rfc2136.nameserver, "tsigAlgorithm": rfc2136.tsig_algorithm}
    if rfc2136.tsig_key_name:
        block["tsigKeyName"] = rfc2136.tsig_key_name
    if rfc2136.secret_name:
        block["tsigSecretSecretRef"] = _key_ref(rfc2136.secret_name, rfc2136.secret_key)
    return block


_PROVIDERS: Mapping[str, Callable[[Dns01Settings], Object]] = {
    "cloudflare": _cloudflare,
    "route53": _route53,
    "digitalocean": _digitalocean,
    "rfc2136": _rfc2136,
}


def _key_ref(name: str, key: str) -> Object:
    return {"name": name, "key": key}
