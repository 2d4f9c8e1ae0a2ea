"""Limits of the Issuers and Certificates that the account writes, in CEL.

cert-manager acts on them with its own rights: an Issuer of another type than ACME signs with the key in any Secret of
its namespace, or, of type vault, sends any Secret there to a server of its author's choice; and a Certificate can name
a Secret that the account may read, and any subject. Anything that an object has already may stay as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenant_apiserver.least_privilege.right import Limit

_ACME_FIELDS = ("server", "email", "caBundle", "privateKeySecretRef", "solvers")
_PROVIDERS = ("cloudflare", "route53", "digitalocean", "rfc2136")
_CERTIFICATE_FIELDS = ("secretName", "issuerRef", "dnsNames")
# the ends of names.issuer_name, and of names.certificate_name and wildcard_certificate_name
_ISSUER_SUFFIX, _CERTIFICATE_SUFFIX = "-gateway", "-tls"
_SPECS = {
    "spec": "dyn(object.spec)",
    "oldSpec": "oldObject == null ? {} : dyn(oldObject.spec)",
}


def issuer_limits() -> Sequence[Limit]:
    return (
        Limit(
            variables=_SPECS,
            expression=_only_fields("spec", "oldSpec", "acme"),
            message="an Issuer is of type acme",
        ),
        Limit(
            variables={
                "acme": "variables.spec[?'acme'].orValue({})",
                "oldAcme": "variables.oldSpec[?'acme'].orValue({})",
            },
            expression=_only_fields("acme", "oldAcme", *_ACME_FIELDS),
            message=f"spec.acme of an Issuer has only the fields {', '.join(_ACME_FIELDS)}",
        ),
        Limit(
            variables={
                "solvers": "variables.acme[?'solvers'].orValue([])",
                "oldSolvers": "variables.oldAcme[?'solvers'].orValue([])",
            },
            expression=f"variables.solvers.all(solver, solver in variables.oldSolvers || {_is_own_solver()})",
            message="the solvers of an Issuer are http01.gatewayHTTPRoute with parentRefs only, and dns01 with "
            f"{', '.join(_PROVIDERS)}",
        ),
    )


def certificate_limits() -> Sequence[Limit]:
    return (
        Limit(
            variables=_SPECS,
            expression=_only_fields("spec", "oldSpec", *_CERTIFICATE_FIELDS),
            message=f"a Certificate has only the fields {', '.join(_CERTIFICATE_FIELDS)}",
        ),
        Limit(
            expression=f"variables.name.endsWith('{_CERTIFICATE_SUFFIX}') && variables.spec.secretName == "
            f"variables.name || {_unchanged('secretName')}",
            message=f"the Secret of a Certificate has its name, which ends with {_CERTIFICATE_SUFFIX}",
        ),
        Limit(
            expression="variables.spec.issuerRef[?'kind'].orValue('Issuer') == 'Issuer' && "
            f"variables.spec.issuerRef.name.endsWith('{_ISSUER_SUFFIX}') || {_unchanged('issuerRef')}",
            message=f"the issuer of a Certificate is an Issuer whose name ends with {_ISSUER_SUFFIX}",
        ),
    )


def _only_fields(new: str, old: str, *fields: str) -> str:
    """Only these fields appear or change."""
    allowed = f"field in {list(fields)}" if len(fields) > 1 else f"field == '{fields[0]}'"
    unchanged = f"field in variables.{old} && variables.{old}[field] == variables.{new}[field]"
    return f"variables.{new}.all(field, {allowed} || {unchanged})"


def _unchanged(field: str) -> str:
    return f"variables.oldSpec[?'{field}'] == variables.spec[?'{field}']"


def _is_own_solver() -> str:
    """With other fields, solvers create Pods with a ServiceAccount, or call a webhook or any host with a Secret."""
    providers = f"dyn(solver)[?'dns01'].orValue({{}}).all(provider, provider in {list(_PROVIDERS)})"
    ways = "dyn(solver)[?'http01'].orValue({}).all(way, way == 'gatewayHTTPRoute')"
    fields = "dyn(solver)[?'http01'].orValue({})[?'gatewayHTTPRoute'].orValue({}).all(field, field == 'parentRefs')"
    return f"dyn(solver).all(field, field in ['dns01', 'http01']) && {providers} && {ways} && {fields}"
