"""Installs the kinds that ApplicationDefinitions describe as endpoints, as they come and go."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.authorization.authorizer import Authorizer
from apiserver.endpoints.installer import ApiGroupVersion
from apiserver.server.healthz import READINESS
from registry.application.kinds import ServedApplication
from registry.names import GROUP, VERSION
from tenant_apiserver.process import Process, ServedGroupVersion, install_groups
from tenant_apiserver.wiring.applications.api import ApplicationApi


class InstalledApplications:
    """The endpoints of the kinds that ApplicationDefinitions describe, beside those of Tenants."""

    def __init__(self, process: Process, applications: ApplicationApi, authorizer: Authorizer) -> None:
        self._process = process
        self._applications = applications
        self._authorizer = authorizer
        self._known: dict[ServedApplication, ApiGroupVersion] = {}
        self._extended: tuple[ApiGroupVersion, Sequence[ServedApplication], ApiGroupVersion] | None = None

    def extend(self, group: ApiGroupVersion) -> ApiGroupVersion:
        """The group with the kinds that are served now. The same object as before if nothing has changed."""
        served = self._applications.served
        if (group.group, group.version) != (GROUP, VERSION) or not served:
            return group
        if self._extended is not None and self._extended[0] is group and self._extended[1] == served:
            return self._extended[2]
        self._known = {each: self._known.get(each) or self._install(each) for each in served}
        endpoints = {name: each for kind in self._known.values() for name, each in kind.endpoints.items()}
        extended = group.extended_with(ApiGroupVersion(group=GROUP, version=VERSION, endpoints=endpoints))
        self._extended = group, served, extended
        return extended

    def _install(self, application: ServedApplication) -> ApiGroupVersion:
        served = ServedGroupVersion(
            group=GROUP,
            version=VERSION,
            storages={application.definition.plural: application.store},
            admission=self._applications.admission(application),
        )
        return install_groups(self._process, [served], self._authorizer)[0]


def add_applications_check(process: Process, applications: ApplicationApi) -> None:
    """Waits for the kinds that are served at start, and shows the definitions that cannot be served."""
    process.health.add("applications", applications.describe, endpoints=READINESS)
