"""`kubectl tenant ui` as a process, and the URL that it prints."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.e2e.support.clusters.cluster import KUBECTL
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.processes import REPOSITORY, Process, wait_until

_MAIN = "import sys; from tenant_apiserver.kubectl_tenant.main import main; sys.exit(main())"
_URL = re.compile(r"http://\S+/login\?code=\S+")


class PageProcess:
    """Serves the page with the credentials of a user, until it is stopped."""

    def __init__(self, identity: Identity, directory: Path, *flags: str) -> None:
        environment = {"KUBECONFIG": str(identity.kubeconfig), "KUBECTL": str(KUBECTL), "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-c", _MAIN, "ui", *flags]
        self.process = Process("kubectl tenant ui", command, log=directory / "ui.log", environment=environment)

    def login_url(self) -> str:
        """Valid once. Raises WaitTimeout."""
        return wait_for_login_url(self.process)

    def stop(self) -> int:
        return self.process.stop()


def wait_for_login_url(process: Process) -> str:
    """The URL that the process has printed. Raises WaitTimeout."""
    found = wait_until("the URL is printed", lambda: _URL.search(process.log()), processes=(process,))
    return found.group()
