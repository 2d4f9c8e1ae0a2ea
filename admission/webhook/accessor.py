"""Parses webhook configurations and compiles their match conditions (WIRE-H41, WIRE-H42). Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from admission.cel.environment import BOOL, Environment
from admission.cel.evaluation import Expression, compile_expression, compile_problems, shape_of, values_read_by
from admission.cel.loops import LoopShape
from admission.matching.match_rules import MatchCriteria, parse_match_criteria
from apiserver.meta.resource import Object

_SECONDS = 10
_MOST_SECONDS = 30
_HTTPS = 443
# values of sideEffects with which a dry run may call the webhook
NO_SIDE_EFFECTS = frozenset(("None", "NoneOnDryRun"))


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """The address of a webhook. With `service`, the URL's host names a Service. `error` is Kubernetes' message if the
    clientConfig is unusable."""

    url: str = ""
    service: bool = False
    ca_bundle: bytes = b""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """One webhook of a configuration. `match` is None if it has no rules: it is then never called."""

    configuration: str
    name: str
    endpoint: WebhookEndpoint
    match: MatchCriteria | None
    conditions: tuple[Expression, ...]
    ignores_failures: bool
    seconds: int
    side_effects: str
    reinvoked: bool
    versions: tuple[str, ...]

    @cached_property
    def reads(self) -> frozenset[str]:
        """The values that its match conditions read."""
        return values_read_by(self.conditions)

    @cached_property
    def shape(self) -> LoopShape:
        return shape_of(self.conditions)

    @property
    def problems(self) -> list[str]:
        """Compile errors of the match conditions."""
        return compile_problems(self.conditions)


def compile_webhooks(obj: Object) -> tuple[Webhook, ...]:
    """The webhooks of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration, in order, with
    Kubernetes' defaults. A field of the wrong type counts as unset."""
    return tuple(_webhook(obj["metadata"]["name"], each) for each in _list(obj.get("webhooks")))


def conditions_environment() -> Environment:
    """The environment of match conditions: no params and no variables (WIRE-H12)."""
    return Environment(authorizer=True)


def _webhook(configuration: str, document: Mapping[str, Any]) -> Webhook:
    seconds = document.get("timeoutSeconds")
    environment = conditions_environment()
    conditions = _list(document.get("matchConditions"))
    return Webhook(
        configuration=configuration,
        name=_string(document.get("name")),
        endpoint=_endpoint(_string(document.get("name")), _map(document.get("clientConfig"))),
        match=parse_match_criteria({**document, "resourceRules": _list(document["rules"])})
        if document.get("rules")
        else None,
        conditions=tuple(
            compile_expression(environment, _string(each.get("expression")), (BOOL,)) for each in conditions
        ),
        ignores_failures=document.get("failurePolicy") == "Ignore",
        seconds=min(max(seconds, 1), _MOST_SECONDS) if isinstance(seconds, int) else _SECONDS,
        side_effects=_string(document.get("sideEffects")),
        reinvoked=document.get("reinvocationPolicy") == "IfNeeded",
        versions=tuple(str(each) for each in document.get("admissionReviewVersions") or ()),
    )


def _endpoint(name: str, config: Mapping[str, Any]) -> WebhookEndpoint:
    try:
        ca_bundle = base64.b64decode(_string(config.get("caBundle")), validate=True)
    except binascii.Error:
        return WebhookEndpoint(error="could not get REST client: unable to load root certificates: invalid caBundle")
    if service := _map(config.get("service")):
        host = f"{_string(service.get('name'))}.{_string(service.get('namespace'))}.svc"
        port = service.get("port") or _HTTPS
        return WebhookEndpoint(f"https://{host}:{port}{_path(_string(service.get('path')))}", True, ca_bundle)
    why = f'could not get REST client: failed calling webhook "{name}": '
    try:
        url = urlsplit(_string(config.get("url")))
    except ValueError as error:
        return WebhookEndpoint(error=f"{why}Unparsable URL: {error}")
    if not url.netloc:
        return WebhookEndpoint(error=f"{why}webhook configuration must have either service or URL")
    if url.scheme != "https":
        # kube-apiserver's validation rejects such a URL
        return WebhookEndpoint(error=f"{why}'https' is the only allowed URL scheme")
    return WebhookEndpoint(f"https://{url.netloc}{_path(url.path)}", False, ca_bundle)


def _path(path: str) -> str:
    """The path as Go's REST client normalizes it: one leading slash, no trailing one."""
    return "/" + "/".join(part for part in path.split("/") if part)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
