"""How the host is reached: kubernetes-asyncio's configuration out of a cluster or a kubeconfig, and its connections."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Callable
from pathlib import Path

import aiohttp
from yaml import YAMLError
from yarl import URL

from registry.cluster.kubernetes_asyncio_shim import ConfigException, Configuration, RESTClientObject, config

_READ_BUFFER = 2 * 1024 * 1024
# What the library says of a kubeconfig, and what it stumbles over in a file of another form.
_UNREADABLE = (ConfigException, OSError, YAMLError, AttributeError, LookupError, TypeError, ValueError)


def load_in_cluster(configuration: Configuration) -> bool:
    """Whether this process runs in a cluster, whose credentials `configuration` then has."""
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except ConfigException:
        return False
    return True


async def load_kubeconfig(configuration: Configuration, path: Path | None) -> None:
    """Raises ValueError. A thread has a loop for it: files are read, and a credential plugin may run."""
    loading = config.load_kube_config(
        config_file=str(path) if path is not None else None, client_configuration=configuration
    )
    try:
        await asyncio.to_thread(asyncio.run, loading)
    except _UNREADABLE as e:
        raise ValueError(f"no usable kubeconfig: {' '.join(str(e).split())}") from e


RequestObserver = Callable[[str, str, int | None], None]
"""Told of a request: method, host and status code, None if no answer came."""


def open_session(transport: RESTClientObject, observe: RequestObserver) -> aiohttp.ClientSession:
    """A session over the library's connections that does not read the environment, and .netrc in a thread, for every
    single request. `observe` is told once the head of an answer is there, or it is clear that none will come."""
    return aiohttp.ClientSession(
        connector=transport.pool_manager.connector,
        connector_owner=False,
        read_bufsize=_READ_BUFFER,
        trace_configs=[_tracing(observe)],
    )


def _tracing(observe: RequestObserver) -> aiohttp.TraceConfig:
    async def answered(_: object, __: object, params: aiohttp.TraceRequestEndParams) -> None:
        observe(params.method, params.url.authority, params.response.status)

    async def failed(_: object, __: object, params: aiohttp.TraceRequestExceptionParams) -> None:
        observe(params.method, params.url.authority, None)

    tracing = aiohttp.TraceConfig()
    tracing.on_request_end.append(answered)
    tracing.on_request_exception.append(failed)
    return tracing


def environment_proxy(url: URL) -> str | None:
    """The proxy that the environment names for this URL."""
    if urllib.request.proxy_bypass(url.host or ""):
        return None
    return urllib.request.getproxies().get(url.scheme)
