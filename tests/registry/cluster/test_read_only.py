"""A process that promises to only read cannot write, whatever it tries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from apiserver.patch.media_types import MERGE_PATCH
from registry.cluster.interface import NAMESPACES, TOKEN_REVIEWS_PATH
from registry.cluster.read_only import ReadOnlyClusterClient, WriteRefused
from tests.plain_http import plain_http
from tests.registry.cluster.http_server import Server

OBJECT = {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda client: client.create(NAMESPACES, OBJECT), id="create"),
        pytest.param(lambda client: client.update(NAMESPACES, OBJECT), id="update"),
        pytest.param(lambda client: client.patch(NAMESPACES, "", "a", {}, content_type=MERGE_PATCH), id="patch"),
        pytest.param(lambda client: client.delete(NAMESPACES, "", "a"), id="delete"),
        pytest.param(lambda client: client.create(NAMESPACES, OBJECT, dry_run=True), id="dry run"),
    ],
)
async def test_writes_are_refused_and_reads_and_reviews_sent(
    write: Callable[[ReadOnlyClusterClient], Awaitable[Any]], server: Server, address: str
) -> None:
    client = ReadOnlyClusterClient(plain_http(address))
    with pytest.raises(WriteRefused):
        await write(client)
    await client.get(NAMESPACES, "", "a")
    await client.get_path("/version")
    await client.review(TOKEN_REVIEWS_PATH, {})
    await client.close()
    assert [(method, path) for method, path, _, _ in server.requests] == [
        ("GET", "/api/v1/namespaces/a"),
        ("GET", "/version"),
        ("POST", TOKEN_REVIEWS_PATH),
    ]
