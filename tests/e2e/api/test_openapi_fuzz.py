"""Requests generated from our OpenAPI document never cause a server error."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings

from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.http.https_client import Body, Client
from tests.e2e.support.tenants import Tenants
from tests.faults.support.sizes import size

if TYPE_CHECKING:
    from schemathesis import Case, GenerationMode

pytestmark = [pytest.mark.faults, pytest.mark.timeout(size(short=600, full=3600))]
EXAMPLES = size(short=40, full=1000)
# 503 and 504 are legitimate: an unreachable cluster, an exceeded deadline or a future resource version
EXPECTED_SERVER_ERRORS = {503, 504}


def operations(client: Client) -> Iterator[Any]:
    # takes half a second, in each process of the tests
    import schemathesis
    from schemathesis.core.result import Ok

    document = client.get(f"/openapi/v3{GROUP_VERSION}").expect(200)
    # Applications are served too, while other tests of this cluster have their definitions: requests for 31 kinds would
    # take minutes. The deprecated watch paths have the parameters of lists, but a request would last until its timeout.
    document["paths"] = {
        path: item for path, item in document["paths"].items() if "/tenants" in path and "/watch/" not in path
    }
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        assert isinstance(found, Ok)
        yield found.ok()


def send(client: Client, case: Case[Any], *, name: str) -> int:
    """Sends the case for an existing Tenant as a dry run with a short timeout, and returns the status."""
    parameters = {**case.path_parameters, "namespace": ROOT, "name": name}
    path = case.path.format_map({name: quote(str(value), safe="") for name, value in parameters.items()})
    query = {name: _query_value(value) for name, value in case.query.items()}
    query |= {"watch": "false", "timeoutSeconds": "1", "timeout": "3s"}
    if case.method != "GET":
        query["dryRun"] = "All"
    kind = case.media_type or "application/json"
    return client.request(case.method, path, _body(case.body), query=query, content_type=kind).status


def _query_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _body(value: object) -> Body:
    if isinstance(value, bytes):
        return value
    return json.dumps(value, default=str) if isinstance(value, dict | list | str | int | float | bool) else None


@pytest.mark.parametrize("generation", ["positive", "negative"])
def test_no_generated_request_is_a_server_error(embedded: EmbeddedCluster, tenants: Tenants, generation: str) -> None:
    from schemathesis import GenerationMode

    mode = GenerationMode(generation)
    client, name = embedded.client(), tenants.create()["metadata"]["name"]
    found = list(operations(client))
    assert {operation.method.upper() for operation in found} >= {"GET", "POST", "PUT", "PATCH", "DELETE"}
    statuses = Counter(status for operation in found for status in _fuzz(client, operation, mode, name))
    # a run in which every request is rejected would prove nothing
    assert {200, 201} & statuses.keys()
    assert any(400 <= status < 500 for status in statuses)
    assert client.get("/readyz").status == 200


def _fuzz(client: Client, operation: Any, mode: GenerationMode, name: str) -> list[int]:
    statuses: list[int] = []

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        status = send(client, case, name=name)
        assert status < 500 or status in EXPECTED_SERVER_ERRORS, f"{case.method} {case.path}: {status}"
        statuses.append(status)

    check()
    return statuses
