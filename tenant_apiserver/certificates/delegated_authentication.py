"""What kube-system/extension-apiserver-authentication says of client CAs and front proxies, followed (WIRE-A6 to
WIRE-A10).

Flags take the place of the ConfigMap; CA files that flags name are read again when they change.
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
    """CAs of client certificates (PEM), and the front proxies that may speak for users."""

    client_ca: bytes = b""
    request_header: RequestHeaderConfig = field(default_factory=RequestHeaderConfig)

    def bundle(self) -> bytes:
        """Every CA that a client's certificate may come from (WIRE-A24)."""
        return b"\n".join(part for part in (self.client_ca, self.request_header.ca_pem) if part)


class DelegatedAuthentication(NoOpEventHandler):
    """The EventHandler of the ConfigMap's informer, and the settings in force.

    `fixed` is what flags set; parts that they leave empty come from the host. A CA that does not parse, or a list
    that is no JSON list of strings, leaves the old setting in place.
    """

    def __init__(self, *, fixed: ClusterAuthenticationInfo, on_change: Callable[[bytes], None]) -> None:
        self._fixed = fixed
        self._on_change = on_change
        self._current = fixed

    @property
    def current(self) -> ClusterAuthenticationInfo:
        return self._current

    @property
    def set_in_full_by_flags(self) -> bool:
        """Whether flags name every CA, so that the host has nothing to say."""
        return bool(self._fixed.client_ca and self._fixed.request_header.ca_pem)

    def client_ca(self) -> bytes:
        return self._current.client_ca

    def request_header(self) -> RequestHeaderConfig:
        return self._current.request_header

    def reload_client_ca(self, pem: bytes) -> None:
        """The file of a flag has changed. Raises ValueError, and changes nothing, if it holds no certificate."""
        self._fix(replace(self._fixed, client_ca=_require_certificate(pem)))

    def reload_request_header_ca(self, pem: bytes) -> None:
        """Raises ValueError, as above."""
        self._fix(
            replace(self._fixed, request_header=replace(self._fixed.request_header, ca_pem=_require_certificate(pem)))
        )

    def _fix(self, fixed: ClusterAuthenticationInfo) -> None:
        self._fixed = fixed
        self._put(_overlay_flags(fixed, self._current))

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        for item in items:
            self._apply_configmap(item)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if type != "DELETED":
            self._apply_configmap(obj)

    def _apply_configmap(self, configmap: Object) -> None:
        data = configmap.get("data") or {}
        try:
            told = from_configmap(data)
        except ValueError as error:
            _logger.warning("%s/%s is not usable, the old settings stay: %s", NAMESPACE, NAME, error)
            return
        self._put(_overlay_flags(self._fixed, told))

    def _put(self, settings: ClusterAuthenticationInfo) -> None:
        if settings != self._current:
            self._current = settings
            self._on_change(settings.bundle())


def from_configmap(data: Mapping[str, Any]) -> ClusterAuthenticationInfo:
    """The settings in the ConfigMap's data. Raises ValueError if a part of it cannot be read."""
    client_ca, proxy_ca = _ca(data, "client-ca-file"), _ca(data, "requestheader-client-ca-file")
    return ClusterAuthenticationInfo(
        client_ca=client_ca,
        request_header=RequestHeaderConfig(
            ca_pem=proxy_ca,
            allowed_names=_names(data, "requestheader-allowed-names"),
            username_headers=_names(data, "requestheader-username-headers"),
            uid_headers=_names(data, "requestheader-uid-headers"),
            group_headers=_names(data, "requestheader-group-headers"),
            extra_prefixes=_names(data, "requestheader-extra-headers-prefix"),
        ),
    )


def _overlay_flags(fixed: ClusterAuthenticationInfo, told: ClusterAuthenticationInfo) -> ClusterAuthenticationInfo:
    """Flags go before the host, a CA with all that belongs to it."""
    return replace(
        told,
        client_ca=fixed.client_ca or told.client_ca,
        request_header=fixed.request_header if fixed.request_header.ca_pem else told.request_header,
    )


def _ca(data: Mapping[str, Any], key: str) -> bytes:
    pem = str(data.get(key) or "").encode()
    if pem and not parse_bundle(pem):
        raise ValueError(f"{key} holds no certificate")
    return pem


def _require_certificate(pem: bytes) -> bytes:
    if not parse_bundle(pem):
        raise ValueError("it holds no certificate")
    return pem


def _names(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    text = data.get(key) or "[]"
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{key} is not JSON") from error
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{key} is not a list of strings")
    return tuple(value)
