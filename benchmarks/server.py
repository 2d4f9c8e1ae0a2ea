"""A stand-alone server in a process of its own, and a client that is an ordinary user of it."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml

GROUP = "/apis/apps.cozystack.io/v1alpha1"
_START_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    pid: int
    data: Path

    def rss_mib(self) -> float:
        """Resident memory of the server's process, in MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("the process is gone")

    def tls(self, user: str = "bench", groups: str = "system:masters") -> ssl.SSLContext:
        """A TLS context that holds a client certificate of `user`."""
        config = yaml.safe_load(self._kubeconfig(user, groups).read_text())
        context = ssl.create_default_context(
            cadata=base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        )
        pair = self.data / f"{user}.pem"
        data = config["users"][0]["user"]
        pair.write_bytes(base64.b64decode(data["client-certificate-data"]) + base64.b64decode(data["client-key-data"]))
        context.load_cert_chain(pair)
        return context

    def _kubeconfig(self, user: str, groups: str) -> Path:
        import subprocess

        target = self.data / f"{user}.kubeconfig"
        command = [sys.executable, "-m", "tenant_apiserver", "kubeconfig", "--data-dir", str(self.data)]
        subprocess.run([*command, "--user", user, "--groups", groups, "--output", str(target)], check=True)
        return target


@asynccontextmanager
async def standalone(data: Path | None = None) -> AsyncIterator[Server]:
    """A server over `data` (default: an empty directory of its own), ready when it is handed out."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = data or Path(scratch)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tenant_apiserver", "standalone", "--data-dir", str(directory), "--secure-port", str(port)),
            *("--bind-address", "127.0.0.1", "--max-requests-inflight", "100000", "-v", "0"),
            stdout=asyncio.subprocess.DEVNULL,
            env=dict(os.environ),
        )
        try:
            url = f"https://127.0.0.1:{port}"
            await _ready(url)
            yield Server(url=url, pid=process.pid, data=directory)
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()


async def _ready(url: str) -> None:
    """Wait for /readyz, which asks for no credentials."""
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    async with aiohttp.ClientSession() as session, asyncio.timeout(_START_TIMEOUT):
        while True:
            try:
                async with session.get(f"{url}/readyz", ssl=unverified) as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)
