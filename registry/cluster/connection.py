"""Connection settings from a pod's service account or a kubeconfig, and HTTP sessions over kubernetes-asyncio."""

from __future__ import annotations

import asyncio
import os
import urllib.request
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import aiohttp
from isal import isal_zlib
from yaml import YAMLError
from yarl import URL

from registry.cluster.kubernetes_asyncio_shim import ConfigException, Configuration, RESTClientObject, config

_READ_BUFFER = 2 * 1024 * 1024
# Of all sessions of the process: ISA-L decompresses what a cluster lists in a quarter of zlib's time.
aiohttp.set_zlib_backend(isal_zlib)
# those of watches and of pages contain versions and are used once
_QUERIES = 128
# The exceptions that the library raises for an invalid kubeconfig; not all of them are documented.
_UNREADABLE = (ConfigException, OSError, YAMLError, LookupError, ValueError)


def load_in_cluster(configuration: Configuration) -> bool:
    """Loads the service account of the pod into `configuration`. Returns False outside a cluster."""
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except ConfigException:
        return False
    return True


async def load_kubeconfig(configuration: Configuration, path: Path | None) -> None:
    """Loads a kubeconfig in a thread with an event loop of its own, because it reads files and may run a credential
    plugin. Raises ValueError."""
    if path is None and not any(each.is_file() for each in _default_paths()):
        found = " or ".join(map(str, _default_paths()))
        raise ValueError(f"this process is not in a cluster, and there is no kubeconfig in {found}")
    loading = config.load_kube_config(
        config_file=str(path) if path is not None else None, client_configuration=configuration
    )
    try:
        await asyncio.to_thread(asyncio.run, loading)
    except (AttributeError, TypeError) as e:
        # of the library, which takes for granted what a kubeconfig has
        raise ValueError("no usable kubeconfig: it has not the form of one") from e
    except _UNREADABLE as e:
        raise ValueError(f"no usable kubeconfig: {' '.join(str(e).split())}") from e


def _default_paths() -> list[Path]:
    named = os.environ.get("KUBECONFIG") or "~/.kube/config"
    return [Path(each).expanduser() for each in named.split(os.pathsep) if each]


RequestObserver = Callable[[str, str, int | None], None]
"""Called after each request with its method, host and status code, None if there was no response."""


class ClusterSession:
    """Requests over the library's connector. Unlike the library's own session it does not read proxy variables and
    .netrc for each request. `observe` is called when the response headers arrive or the request fails: aiohttp's
    tracing calls more, and takes a tenth of the time of a request.
    """

    def __init__(self, transport: RESTClientObject, observe: RequestObserver, *, host: str) -> None:
        """`host` is the authority of all requests, as it is observed."""
        self._session = aiohttp.ClientSession(
            connector=transport.pool_manager.connector,
            connector_owner=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER,
        )
        self._observe = observe
        self._host = host

    async def request(self, method: str, url: URL, **options: Any) -> aiohttp.ClientResponse:
        """The response, whose body has not been read. `options` and errors are those of aiohttp."""
        try:
            response = await self._session.request(method, url, **options)
        except BaseException:
            self._observe(method, self._host, None)
            raise
        self._observe(method, self._host, response.status)
        return response

    async def close(self) -> None:
        await self._session.close()


@lru_cache(maxsize=_QUERIES)
def query_string(parameters: tuple[tuple[str, str], ...]) -> str:
    """The escaped query of a URL. Few of them are ever used, and escaping takes longer than the rest of a URL."""
    return URL.build(path="/", query=parameters).raw_query_string


def write_query(dry_run: bool, field_manager: str) -> dict[str, str]:
    return {"dryRun": "All" if dry_run else "", "fieldManager": field_manager}


def without_internals(error: Exception) -> Exception:
    """The error for the log: aiohttp says of a connection that ends amid a stream how HTTP would have ended it."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return ConnectionError("the connection was closed while the response was sent")
    return error


def environment_proxy(url: URL) -> str | None:
    """The proxy for this URL according to the environment variables."""
    if urllib.request.proxy_bypass(url.host or ""):
        return None
    return urllib.request.getproxies().get(url.scheme)
