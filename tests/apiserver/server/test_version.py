"""The version document and its path."""

from __future__ import annotations

import json
import re

import pytest
from aiohttp.test_utils import make_mocked_request

from apiserver.meta import errors
from apiserver.request import request_info
from apiserver.request.context import RequestContext
from apiserver.request.request_info import Query
from apiserver.server.version import Version, version_document


def context(path: str, *, method: str = "GET", accept: str = "") -> RequestContext:
    http = make_mocked_request(method, path, headers={"Accept": accept})
    query = Query("")
    return RequestContext(
        http=http, info=request_info.parse_request_info(method, path, query), query=query, audit_id="a"
    )


@pytest.mark.parametrize("path", ["/version", "/version/"])
async def test_the_version_has_every_key_that_clients_read(path: str) -> None:
    response = await Version("wardle-0.1.0").respond(context(path))
    assert response is not None
    assert isinstance(response.body, bytes)
    assert set(json.loads(response.body)) == {
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    }
    assert response.body.startswith(b'{\n  "major": "1"')


def test_major_and_minor_are_numbers_and_agree_with_the_git_version() -> None:
    document = version_document("wardle-0.1.0")
    assert re.fullmatch("[1-9]", document["major"])
    assert re.fullmatch("[0-9]+", document["minor"])
    assert document["gitVersion"] == f"v{document['major']}.{document['minor']}.0+wardle-0.1.0"


@pytest.mark.parametrize(
    ("build", "metadata"),
    [
        pytest.param("wardle-0.1.0", "wardle-0.1.0", id="unchanged"),
        pytest.param(
            "wardle 0.1.dev3+g12ab_x", "wardle-0.1.dev3-g12ab-x", id="characters that are invalid in a version"
        ),
    ],
)
def test_the_git_version_is_a_semantic_version_for_any_build_name(build: str, metadata: str) -> None:
    version = version_document(build)["gitVersion"]
    assert version.partition("+")[2] == metadata
    assert re.fullmatch(r"v\d+\.\d+\.\d+\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*", version)


async def test_version_does_not_answer_other_paths() -> None:
    assert await Version("wardle-0.1.0").respond(context("/versions")) is None


async def test_the_version_is_json_only() -> None:
    with pytest.raises(errors.NotAcceptable):
        await Version("wardle-0.1.0").respond(context("/version", accept="text/html"))


@pytest.mark.parametrize("method", ["HEAD", "POST"])
async def test_the_version_is_read_by_get_only(method: str) -> None:
    with pytest.raises(errors.MethodNotAllowed):
        await Version("wardle-0.1.0").respond(context("/version", method=method))
