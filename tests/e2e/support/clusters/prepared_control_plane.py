"""A control plane that was installed once and stopped, from which others begin: they start in half of the time."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.e2e.support.clusters.cluster import KUBECTL
from tests.e2e.support.clusters.control_plane import Binaries, ControlPlane
from tests.e2e.support.clusters.installation import install, install_crds

_COMMAND_SECONDS = 180


def prepared_control_plane(shared: Path, binaries: Binaries, crds: Path, *, with_manifests: bool = True) -> Path:
    """Returns the directory of a stopped control plane without our server, with the CRDs, and with our manifests.

    The first process that needs it prepares it in `shared`; the others of the session wait for it.
    """
    name = "prepared" if with_manifests else "prepared-crds"
    directory, done = shared / name, shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            directory.mkdir()
            _prepare(directory, binaries, crds, install if with_manifests else install_crds)
            done.touch()
    return directory


def _prepare(directory: Path, binaries: Binaries, crds: Path, install_into: Callable[..., None]) -> None:
    running = ControlPlane(directory, binaries)
    environment = {**os.environ, "HOME": str(directory)}

    def kubectl(*arguments: str) -> None:
        command = [str(KUBECTL), f"--kubeconfig={running.admin.kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_SECONDS, env=environment)
        assert done.returncode == 0, done.stderr

    try:
        install_into(kubectl, directory, crds)
    finally:
        running.stop()
