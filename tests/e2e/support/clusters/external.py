"""A cluster that is already running, accessed with the kubeconfig of its administrator."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
import yaml

from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.processes import Process


class ExternalCluster(E2eCluster):
    """Other users are impersonated by the administrator.

    The kubeconfig has one cluster and one user with an inline token or certificate. `server` is the address of our
    server behind an aggregator, empty if unknown.
    """

    kind = "external"
    processes: Sequence[Process] = ()

    def __init__(self, directory: Path, kubeconfig: Path, server: str) -> None:
        super().__init__(directory)
        self._kubeconfig = Path(shutil.copy(kubeconfig, directory / "kubeconfig"))
        self._users = count()
        self.admin = credentials.from_kubeconfig(self._kubeconfig)
        self.url = self.admin.server
        self.direct_url = server or self.url
        self._wait_until_ready(self.client())

    def create_user(self, user: str, groups: tuple[str, ...]) -> Identity:
        document = yaml.load(self._kubeconfig.read_text(), Loader=yaml.CSafeLoader)
        document["users"][0]["user"] |= {"as": user, "as-groups": list(groups)}
        path = self.directory / f"user-{next(self._users)}"
        path.write_text(yaml.safe_dump(document))
        return credentials.from_kubeconfig(path)

    def restart(self) -> None:
        pytest.skip("a server that was already running is not restarted")

    def stop(self) -> int:
        return 0
