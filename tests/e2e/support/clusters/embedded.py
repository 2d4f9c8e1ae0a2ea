"""The stand-alone server that the end-to-end tests run on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tenant_apiserver.certificates import local_pki
from tenant_apiserver.options.command_line import KubeconfigOptions, parse_command_line
from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import ROOT_HOST, E2eCluster
from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.processes import Process, free_port, run_command


class EmbeddedCluster(E2eCluster):
    """`tenant-apiserver standalone`."""

    kind = "embedded"

    def __init__(self, directory: Path, *, flags: Sequence[str] = ()) -> None:
        super().__init__(directory)
        self.flags = flags or self.flags
        self.data = directory / "data"
        self.port = free_port()
        self.url = self.direct_url = f"https://127.0.0.1:{self.port}"
        self.start()

    def run(self, *arguments: str, log: Path) -> Process:
        return run_command(*arguments, log=log)

    def start(self) -> None:
        """Starts the server, each time with the same data and port."""
        self.server = self.run(
            "standalone",
            f"--data-dir={self.data}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--root-host={ROOT_HOST}",
            *self.flags,
            log=self.directory / "standalone.log",
        )
        self.processes = (self.server,)
        kubeconfig = self.data / "kubeconfig"
        try:
            self.wait_until("the kubeconfig is written", kubeconfig.is_file)
            self.admin = credentials.from_kubeconfig(kubeconfig)
            self._wait_until_ready(self.client())
        except BaseException:
            self.server.stop()
            raise

    def create_user(self, user: str, groups: tuple[str, ...]) -> Identity:
        output = self.directory / f"user-{next(self._numbers)}"
        flags = [f"--data-dir={self.data}", f"--user={user}", f"--output={output}"]
        if groups:
            flags.append(f"--groups={','.join(groups)}")
        # in this process: starting another Python for each user would take longer than most tests
        # and in a thread, as the command reads files, while the test may have an event loop
        with ThreadPoolExecutor(max_workers=1) as executor:
            assert executor.submit(_run_kubeconfig_command, flags).result() == 0
        return credentials.from_kubeconfig(output)

    def restart(self) -> None:
        self.server.stop()
        self.start()

    def stop(self) -> int:
        return self.server.stop()


def _run_kubeconfig_command(flags: Sequence[str]) -> int:
    options = parse_command_line(["kubeconfig", *flags], {})
    assert isinstance(options, KubeconfigOptions)
    return local_pki.kubeconfig(options)
