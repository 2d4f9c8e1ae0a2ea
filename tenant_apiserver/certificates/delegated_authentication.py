"""Client CAs and request-header settings from kube-system/extension-apiserver-authentication (WIRE-A6 to WIRE-A10).

Flags take precedence over the ConfigMap. CA files named by flags are reloaded when they change.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.meta.resource import Object
from apiserver.tls.certificates import parse_bundle
from registry.cluster.event_handlers import NoOpEventHandler

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAuthenticationInfo:
    """The CA of client certificates (PEM), and the front proxies whose identity headers are trusted."""

    client_ca: bytes = b""
    request_header: RequestHeaderConfig = field(default_factory=RequestHeaderConfig)

    def bundle(self) -> bytes:
        """All CAs that may have signed a client's certificate (WIRE-A24)."""
        return b"\n".join(part for part in (self.client_ca, self.request_header.ca_pem) if part)


class DelegatedAuthentication(NoOpEventHandler):
    """Handles events of the ConfigMap and provides the current settings.

    `from_flags` takes precedence; parts that it leaves empty come from the cluster. If a CA does not parse, or a list
    is not a JSON list of strings, the previous settings stay in force.
    """

    def __init__(self, *, from_flags: ClusterAuthenticationInfo, on_change: Callable[[bytes], None]) -> None:
        self._from_flags = from_flags
        self._on_change = on_change
        self._current = from_flags

    @property
    def current(self) -> ClusterAuthenticationInfo:
        return self._current

    @property
    def complete_by_flags(self) -> bool:
        """True if flags set both CAs, so that the ConfigMap is not needed."""
        return bool(self._from_flags.client_ca and self._from_flags.request_header.ca_pem)

    def client_ca(self) -> bytes:
        return self._current.client_ca

    def request_header(self) -> RequestHeaderConfig:
        return self._current.request_header

    def reload_client_ca(self, pem: bytes) -> None:
        """Replaces the client CA of the flag. Raises ValueError, and changes nothing, if `pem` has no certificate."""
        self._replace_flags(replace(self._from_flags, client_ca=_require_certificate(pem)))

    def reload_request_header_ca(self, pem: bytes) -> None:
        """Replaces the request-header CA of the flag. Raises ValueError like `reload_client_ca`."""
        self._replace_flags(
            replace(
                self._from_flags,
                request_header=replace(self._from_flags.request_header, ca_pem=_require_certificate(pem)),
            )
        )

    def _replace_flags(self, from_flags: ClusterAuthenticationInfo) -> None:
        self._from_flags = from_flags
        self._set_current(_overlay_flags(from_flags, self._current))

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        for item in items:
            self._apply_configmap(item)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type != "DELETED":
            self._apply_configmap(obj)

    def _apply_configmap(self, configmap: Object) -> None:
        data = configmap.get("data") or {}
        try:
            from_cluster = parse_configmap(data)
        except ValueError as error:
            _logger.warning("cannot use ConfigMap %s/%s, keeping the previous settings: %s", NAMESPACE, NAME, error)
            return
        self._set_current(_overlay_flags(self._from_flags, from_cluster))

    def _set_current(self, settings: ClusterAuthenticationInfo) -> None:
        if settings != self._current:
            self._current = settings
            self._on_change(settings.bundle())


def parse_configmap(data: Mapping[str, Any]) -> ClusterAuthenticationInfo:
    """Parses the data of the ConfigMap. Raises ValueError if a part of it is invalid."""
    client_ca, proxy_ca = _ca_bundle(data, "client-ca-file"), _ca_bundle(data, "requestheader-client-ca-file")
    return ClusterAuthenticationInfo(
        client_ca=client_ca,
        request_header=RequestHeaderConfig(
            ca_pem=proxy_ca,
            allowed_names=_string_list(data, "requestheader-allowed-names"),
            username_headers=_string_list(data, "requestheader-username-headers"),
            uid_headers=_string_list(data, "requestheader-uid-headers"),
            group_headers=_string_list(data, "requestheader-group-headers"),
            extra_prefixes=_string_list(data, "requestheader-extra-headers-prefix"),
        ),
    )


def _overlay_flags(
    from_flags: ClusterAuthenticationInfo, from_cluster: ClusterAuthenticationInfo
) -> ClusterAuthenticationInfo:
    """A CA set by a flag takes precedence, together with all settings that belong to it."""
    return replace(
        from_cluster,
        client_ca=from_flags.client_ca or from_cluster.client_ca,
        request_header=from_flags.request_header if from_flags.request_header.ca_pem else from_cluster.request_header,
    )


def _ca_bundle(data: Mapping[str, Any], key: str) -> bytes:
    pem = str(data.get(key) or "").encode()
    if pem and not parse_bundle(pem):
        raise ValueError(f"{key} holds no certificate")
    return pem


def _require_certificate(pem: bytes) -> bytes:
    if not parse_bundle(pem):
        raise ValueError("it holds no certificate")
    return pem


def _string_list(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    text = data.get(key) or "[]"
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{key} is not JSON") from error
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{key} is not a list of strings")
    return tuple(value)
