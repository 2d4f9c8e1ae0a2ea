"""Finds the listener that serves a hostname among those of a Gateway and its ListenerSets. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from controller.tenantgateway.hostname_ownership import WILDCARD

GATEWAY_ITSELF = ""
"""The place of the listeners that are not on a ListenerSet."""


def place_of(hostname: str, places: Mapping[str, str]) -> str | None:
    """The place of the listener that serves the hostname: its own, or the nearest wildcard above it. `places` are the
    names of ListenerSets, or GATEWAY_ITSELF, by the hostname of the listener."""
    labels = hostname.removeprefix(WILDCARD).split(".")
    first = 0 if hostname.startswith(WILDCARD) else 1
    candidates = (hostname, *(WILDCARD + ".".join(labels[start:]) for start in range(first, len(labels))))
    return next((places[each] for each in candidates if each in places), None)
