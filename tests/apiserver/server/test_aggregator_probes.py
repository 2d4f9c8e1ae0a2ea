"""The time of the aggregator's last probe of a group version."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from apiserver.request.context import User
from apiserver.server.aggregator_probes import AGGREGATOR, AggregatorProbes
from tests.apiserver.server.test_version import context

METRIC = "apiserver_aggregator_probe_timestamp_seconds"
SERVED = ["/apis", "/apis/example.org", "/apis/example.org/v1"]


async def told(path: str, user: str) -> list[str]:
    """The series after one request at second 7."""
    registry = CollectorRegistry()
    probes = AggregatorProbes(registry, lambda: SERVED, clock=lambda: 7.0)
    assert await probes.respond(replace(context(path), user=User(user))) is None
    return [each for each in generate_latest(registry).decode().splitlines() if each.startswith(METRIC)]


@pytest.mark.parametrize("path", ["/apis/example.org/v1", "/apis/example.org/v1/"])
async def test_a_probe_of_a_group_version_is_told_with_its_time(path: str) -> None:
    assert await told(path, AGGREGATOR) == [f'{METRIC}{{group="example.org",version="v1"}} 7.0']


@pytest.mark.parametrize(
    ("path", "user"),
    [
        pytest.param("/apis/example.org/v1", "alice", id="discovery by a user"),
        pytest.param("/apis", AGGREGATOR, id="the discovery of all groups"),
        pytest.param("/apis/example.org/v9", AGGREGATOR, id="a version that is not served"),
    ],
)
async def test_another_request_is_no_probe(path: str, user: str) -> None:
    assert await told(path, user) == []
