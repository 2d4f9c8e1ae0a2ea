"""Keeps what a Gateway serves while Certificates that it is to use next are being issued, after a change of mode. Pure.

A listener whose Secret does not exist yet serves nothing: its hostname keeps the Secret of before until its Certificate
is ready. Nothing is kept for a listener that has its own Certificate already, such as one that is being renewed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from apiserver.meta.resource import Object
from controller.tenantgateway.hostname_ownership import WILDCARD
from controller.tenantgateway.listener_status import listener_state
from controller.tenantgateway.listenersets.existing_sets import ExistingSets
from controller.tenantgateway.model import PlannedListener
from controller.tenantgateway.parse import mapping, mappings, string

CERTIFICATES_PENDING = "CertificatesPending"

IsIssued = Callable[[str], bool | None]
"""True if the Certificate of ours with that name is ready, so that its Secret exists; None if there is none."""


def all_issued(certificate: str) -> bool | None:
    return True


class _Secret(NamedTuple):
    name: str
    namespace: str


class ServedSecrets:
    """The Secrets that an existing Gateway and its ListenerSets serve HTTPS with, by hostname. A Secret that is itself
    still to be issued, and that no listener is programmed with, serves nothing."""

    def __init__(self, current: Object | None, sets: ExistingSets, is_issued: IsIssued) -> None:
        self._is_issued = is_issued
        self._by_hostname = {
            string(listener, "hostname"): secret
            for obj in (current or {}, *sets.owned.values())
            for listener, secret in _terminating(obj)
            if is_issued(secret.name) is not False or string(listener, "name") in _programmed(obj)
        }

    def hold(self, listener: PlannedListener) -> PlannedListener:
        """The listener, with the Secret that its hostname has now if its own is still to be issued."""
        if listener.protocol != "HTTPS" or self._is_issued(listener.certificate):
            return listener
        hostname = next((each for each in _covering(listener.hostname) if each in self._by_hostname), None)
        if hostname is None:
            return listener
        found = self._by_hostname[hostname]
        return replace(listener, certificate=found.name, certificate_namespace=found.namespace)

    def outlast(self, certificate: str) -> bool:
        """True if what is served has to stay until a Certificate that replaces all of it is issued."""
        others = bool(self._by_hostname) and _Secret(certificate, "") not in self._by_hostname.values()
        return others and not self._is_issued(certificate)


def _terminating(obj: Object) -> Iterator[tuple[Mapping[str, Any], _Secret]]:
    for each in mappings(mapping(obj.get("spec")).get("listeners")):
        reference = next(iter(mappings(mapping(each.get("tls")).get("certificateRefs"))), None)
        if string(each, "protocol") == "HTTPS" and reference is not None:
            yield each, _Secret(string(reference, "name"), string(reference, "namespace"))


def _programmed(obj: Object) -> set[str]:
    """The names of the listeners that the Gateway's controller reports as programmed."""
    statuses = mappings(mapping(obj.get("status")).get("listeners"))
    return {string(each, "name") for each in statuses if listener_state(each).ready}


def _covering(hostname: str) -> Iterator[str]:
    """The hostname and the wildcards that cover it, the most specific one first."""
    yield hostname
    domain = hostname.removeprefix(WILDCARD)
    while "." in domain:
        domain = domain.partition(".")[2]
        yield WILDCARD + domain
