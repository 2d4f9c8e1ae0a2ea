"""What a webhook configuration says, with every condition compiled (WIRE-H41, WIRE-H42). Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from admission.cel.environment import BOOL, Environment
from admission.cel.evaluation import Expression, compiled, problems_of, reads_of
from admission.matching.match_rules import Match, match_of
from apiserver.meta.resource import Object

_SECONDS = 10
_MOST_SECONDS = 30
_HTTPS = 443
NO_SIDE_EFFECTS = frozenset(("None", "NoneOnDryRun"))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a webhook is called. `service` is the Service that stands behind the URL's host. `error` is why there is
    nothing to call, in Kubernetes' words."""

    url: str = ""
    service: bool = False
    ca_bundle: bytes = b""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """`match` is None for one without rules, which is never called."""

    configuration: str
    name: str
    endpoint: Endpoint
    match: Match | None
    conditions: tuple[Expression, ...]
    ignores_failures: bool
    seconds: int
    side_effects: str
    reinvoked: bool
    versions: tuple[str, ...]

    @cached_property
    def reads(self) -> frozenset[str]:
        """Which values its conditions read."""
        return reads_of(self.conditions)

    @property
    def problems(self) -> list[str]:
        """What keeps the webhook from working as it is written."""
        return problems_of(self.conditions)


def webhooks_of(obj: Object) -> tuple[Webhook, ...]:
    """Of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration, in their order. What is not set is what
    Kubernetes sets; what is of the wrong type counts as not set."""
    return tuple(_webhook(obj["metadata"]["name"], each) for each in _list(obj.get("webhooks")))


def conditions_environment() -> Environment:
    """What conditions of webhooks can read: there are no parameters and no variables (WIRE-H12)."""
    return Environment(authorizer=True)


def _webhook(configuration: str, document: Mapping[str, Any]) -> Webhook:
    seconds = document.get("timeoutSeconds")
    environment = conditions_environment()
    conditions = _list(document.get("matchConditions"))
    return Webhook(
        configuration=configuration,
        name=_text(document.get("name")),
        endpoint=_endpoint(_text(document.get("name")), _map(document.get("clientConfig"))),
        match=match_of({**document, "resourceRules": _list(document["rules"])}) if document.get("rules") else None,
        conditions=tuple(compiled(environment, _text(each.get("expression")), (BOOL,)) for each in conditions),
        ignores_failures=document.get("failurePolicy") == "Ignore",
        seconds=min(max(seconds, 1), _MOST_SECONDS) if isinstance(seconds, int) else _SECONDS,
        side_effects=_text(document.get("sideEffects")),
        reinvoked=document.get("reinvocationPolicy") == "IfNeeded",
        versions=tuple(str(each) for each in document.get("admissionReviewVersions") or ()),
    )


def _endpoint(name: str, config: Mapping[str, Any]) -> Endpoint:
    try:
        ca_bundle = base64.b64decode(_text(config.get("caBundle")), validate=True)
    except binascii.Error:
        return Endpoint(error="could not get REST client: unable to load root certificates: invalid caBundle")
    if service := _map(config.get("service")):
        host = f"{_text(service.get('name'))}.{_text(service.get('namespace'))}.svc"
        port = service.get("port") or _HTTPS
        return Endpoint(f"https://{host}:{port}{_path(_text(service.get('path')))}", True, ca_bundle)
    why = f'could not get REST client: failed calling webhook "{name}": '
    try:
        url = urlsplit(_text(config.get("url")))
    except ValueError as error:
        return Endpoint(error=f"{why}Unparsable URL: {error}")
    if not url.netloc:
        return Endpoint(error=f"{why}webhook configuration must have either service or URL")
    if url.scheme != "https":
        # a kube-apiserver lets nobody write this
        return Endpoint(error=f"{why}'https' is the only allowed URL scheme")
    return Endpoint(f"https://{url.netloc}{_path(url.path)}", False, ca_bundle)


def _path(path: str) -> str:
    """As Go's client puts it together: with a slash in front, and none behind."""
    return "/" + "/".join(part for part in path.split("/") if part)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
