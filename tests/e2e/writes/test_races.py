"""Concurrent requests leave the same state as some sequential order of them would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest

from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Object, Tenants, manifest

T = TypeVar("T")


def run_concurrently(*calls: Callable[[], T]) -> Sequence[T]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def create(cluster: E2eCluster, body: Object) -> Response:
    """A create that depends on others that are under way has to wait for them."""
    return cluster.client().request_with_retries("POST", tenants_path(body["metadata"]["namespace"]), body)


def delete(cluster: E2eCluster, namespace: str, name: str) -> Response:
    return cluster.client().request("DELETE", tenants_path(namespace, name))


def test_one_of_several_concurrent_creates_with_the_same_name_wins(cluster: E2eCluster, tenants: Tenants) -> None:
    body = manifest(tenants.new_name())
    answers = run_concurrently(*[lambda: create(cluster, body)] * 16)
    assert Counter(answer.status for answer in answers) == {201: 1, 409: 15}
    assert {answer.json()["reason"] for answer in answers if answer.status == 409} == {"AlreadyExists"}


def test_one_of_several_concurrent_creates_with_the_same_host_wins(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    spec = {"host": f"{unique}.example.net"}
    bodies = [manifest(tenants.new_name(), spec=spec) for _ in range(16)]
    answers = run_concurrently(*[partial(create, cluster, body) for body in bodies])
    assert Counter(answer.status for answer in answers) == {201: 1, 422: 15}
    stored = [body for body in bodies if tenants.exists(body["metadata"]["name"])]
    assert len(stored) == 1


def test_an_inherited_host_and_an_equal_explicit_host_are_not_both_admitted(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    inheriting, explicit = tenants.new_name(), tenants.new_name()
    answers = run_concurrently(
        lambda: create(cluster, manifest(inheriting)),
        lambda: create(cluster, manifest(explicit, spec={"host": f"{inheriting}.{ROOT_HOST}"})),
    )
    assert sorted(answer.status for answer in answers) == [201, 422]
    assert [tenants.exists(inheriting), tenants.exists(explicit)].count(True) == 1


def test_one_of_several_concurrent_updates_to_the_same_host_wins(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    names = [tenants.create()["metadata"]["name"] for _ in range(6)]
    wanted = f"{unique}.example.net"

    def change(name: str) -> int:
        path, kind = tenants_path(ROOT, name), "application/merge-patch+json"
        return cluster.client().request("PATCH", path, {"spec": {"host": wanted}}, content_type=kind).status

    assert Counter(run_concurrently(*[partial(change, name) for name in names])) == {200: 1, 422: 5}
    assert [tenants.get(name)["spec"]["host"] for name in names].count(wanted) == 1


@pytest.mark.parametrize("round_number", range(4))
def test_a_parent_is_not_deleted_while_a_child_is_being_created(
    cluster: E2eCluster, tenants: Tenants, round_number: int
) -> None:
    namespace = tenants.create_with_namespace()
    parent = namespace.removeprefix("tenant-")
    children = [manifest(tenants.new_name(namespace), namespace) for _ in range(3)]
    calls: list[Callable[[], Response]] = [partial(create, cluster, body) for body in children]
    calls.insert(round_number, lambda: delete(cluster, ROOT, parent))
    answers = list(run_concurrently(*calls))
    deletion = answers.pop(round_number)
    made = [answer.status for answer in answers].count(201)
    if deletion.status == 409:
        # a creation came first, and nothing of it is lost
        assert made >= 1
        assert "deletionTimestamp" not in tenants.get(parent)["metadata"]
        items = cluster.client().get(tenants_path(namespace)).expect(200)["items"]
        assert len(items) == made
    else:
        assert deletion.status in (200, 202)
        found = [(answer.status, answer.content) for answer in answers]
        assert (made, {status for status, _ in found} <= {403, 404}) == (0, True), found


def test_concurrent_creates_and_deletes_of_one_name_alternate(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()

    def churn() -> list[Response]:
        return [answer for _ in range(6) for answer in (create(cluster, manifest(name)), delete(cluster, ROOT, name))]

    answers = [answer for found in run_concurrently(*[churn] * 5) for answer in found]
    assert {answer.status for answer in answers} <= {200, 201, 202, 404, 409}
    made = [answer.json()["metadata"]["uid"] for answer in answers if answer.status == 201]
    assert made
    assert len(set(made)) == len(made)
    # only created objects are deleted, and no deleted object blocks the next creation
    assert {_uid(answer) for answer in answers if answer.status in (200, 202)} <= set(made)
    delete(cluster, ROOT, name)
    tenants.wait_until_gone(tenants_path(ROOT, name))
    assert create(cluster, manifest(name)).expect(201)["metadata"]["uid"] not in made


def _uid(answer: Response) -> str:
    """The uid in the response to a DELETE, which is the terminating object or a Status with its details."""
    body = answer.json()
    uid: str = body["details"]["uid"] if body["kind"] == "Status" else body["metadata"]["uid"]
    return uid
