"""Validation of ValidatingWebhookConfigurations and MutatingWebhookConfigurations, with the messages of kube-apiserver.
Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from apiserver.json.values import equal
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.name_validation import dns1035_label_errors, dns1123_subdomain_errors
from apiserver.meta.resource import Object
from registry.embedded.kinds.admission_rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    condition_errors,
    duplicates,
    rule_errors,
    selector_errors,
    unsupported,
)
from registry.embedded.kinds.kind import NoValidation

_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REINVOCATION_POLICIES = ("IfNeeded", "Never")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_SECONDS = range(1, 31)
_PORTS = range(1, 65536)
_FORM = "; desired format: https://host[/path]"


class WebhookValidation(NoValidation):
    """A stored configuration may be invalid, by an earlier version of this server: only a new one, and a change of the
    webhooks, is judged."""

    def validate_create(self, obj: Object) -> list[FieldError]:
        webhooks = obj.get("webhooks") or ()
        found = [
            problem
            for index, webhook in enumerate(webhooks)
            for problem in _webhook_errors(webhook, f"webhooks[{index}]")
        ]
        return [*found, *duplicates([each["name"] for each in webhooks], "webhooks", ".name")]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [] if equal(new.get("webhooks"), old.get("webhooks")) else self.validate_create(new)


def _webhook_errors(webhook: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from _name_errors(webhook["name"], f"{path}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from rule_errors(rule, f"{path}.rules[{index}]")
    yield from unsupported(webhook, path, "failurePolicy", FAILURE_POLICIES)
    yield from unsupported(webhook, path, "matchPolicy", MATCH_POLICIES)
    yield from unsupported(webhook, path, "reinvocationPolicy", _REINVOCATION_POLICIES)
    if webhook.get("sideEffects") is None:
        yield errors.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    yield from unsupported(webhook, path, "sideEffects", _SIDE_EFFECTS)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and seconds not in _SECONDS:
        why = "the timeout value must be between 1 and 30 seconds"
        yield errors.invalid(f"{path}.timeoutSeconds", seconds, why)
    yield from selector_errors(webhook, path)
    yield from _client_errors(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from condition_errors(webhook.get("matchConditions") or (), f"{path}.matchConditions")
    yield from _version_errors(webhook.get("admissionReviewVersions") or (), f"{path}.admissionReviewVersions")


def _name_errors(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path)
    elif problems := dns1123_subdomain_errors(name):
        yield errors.invalid(path, name, ",".join(problems))
    elif name.count(".") < 2:
        yield errors.invalid(path, name, "should be a domain with at least three segments separated by dots")


def _client_errors(client: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield errors.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_errors(url, f"{path}.url")
    elif service is not None:
        yield from _service_errors(service, f"{path}.service")


def _url_errors(text: str, path: str) -> Iterator[FieldError]:
    try:
        url = urlsplit(text)
    except ValueError as error:
        yield errors.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if url.scheme != "https":
        yield errors.invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    user, _, host = url.netloc.rpartition("@")
    if not host:
        yield errors.invalid(path, host, f"host must be specified{_FORM}")
    if user:
        yield errors.invalid(path, user, "user information is not permitted in the URL")
    if url.fragment:
        yield errors.invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield errors.invalid(path, url.query, "query parameters are not permitted in the URL")


def _service_errors(service: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Kubernetes has the names of these two errors the wrong way round."""
    for field, reported in (("name", "namespace"), ("namespace", "name")):
        if not service.get(field):
            yield errors.required(f"{path}.{reported}")
    port = service.get("port", 443)
    if port not in _PORTS:
        yield errors.invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    yield from _path_errors(service.get("path") or "", f"{path}.path")


def _path_errors(text: str, path: str) -> Iterator[FieldError]:
    if text in ("", "/"):
        return
    if text == "//":
        yield errors.invalid(path, text, "segment[0] may not be empty")
        return
    if not text.startswith("/"):
        yield errors.invalid(path, text, "must start with a '/'")
    # as in Kubernetes, whatever the first character is
    for index, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            yield errors.invalid(path, text, f"segment[{index}] may not be empty")
            continue
        for why in dns1123_subdomain_errors(segment):
            yield errors.invalid(path, text, f"segment[{index}]: {why}")


def _version_errors(versions: Sequence[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield errors.required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield errors.invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for why in dns1035_label_errors(version):
            yield errors.invalid(f"{path}[{index}]", version, why)
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield errors.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
