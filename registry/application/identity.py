"""The identity of an application, by the labels of the HelmRelease that stores it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from apiserver.meta.resource import Object
from registry.application.release_metadata import string_entries
from registry.names import APPLICATION_GROUP_LABEL, APPLICATION_KIND_LABEL, APPLICATION_NAME_LABEL, GROUP


class ApplicationIdentity(NamedTuple):
    kind: str
    name: str


def application_of(release: Object) -> ApplicationIdentity | None:
    """The application that the labels name, None if they name none of the group."""
    labels = string_entries(release["metadata"].get("labels"))
    kind = labels.get(APPLICATION_KIND_LABEL)
    if not kind or labels.get(APPLICATION_GROUP_LABEL) != GROUP:
        return None
    return ApplicationIdentity(kind, labels.get(APPLICATION_NAME_LABEL, ""))
