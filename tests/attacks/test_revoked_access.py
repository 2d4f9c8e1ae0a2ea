"""ATTACK-05: what is still seen once the right to see it is gone.

What a grant and a revocation look like is in tests/e2e/identity/test_visibility.py.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters import ROOT, E2eCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.tenants import Object, Tenants, manifest
from tests.e2e.support.visibility import (
    GET_TENANTS,
    NAMESPACES,
    ROLEBINDINGS,
    RbacObjects,
    create_child,
    group_subject,
    list_names,
    open_watch,
    rbac_path,
    user_subject,
    wait_until_listed,
)

SECONDS = 1.0
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Stage:
    """A tenant's namespace with a Tenant in it, and somebody who sees them as long as a grant of `access` holds."""

    access: RbacObjects
    admin: Client
    client: Client
    who: Object
    place: str
    name: str

    def grant(self) -> None:
        self.access.bind("grant", self.place, self.who)

    def patch(self, path: str, body: Object) -> None:
        self.admin.request("PATCH", path, body, content_type=MERGE).expect(200)


Means = tuple[Callable[[Stage], None], Callable[[Stage], None]]
"""How a grant comes, and how it goes."""


def _with_role(stage: Stage) -> None:
    stage.access.create_role("some", stage.place, GET_TENANTS)
    stage.access.bind("grant", stage.place, stage.who, "some")


def _drop_role(stage: Stage) -> None:
    stage.access.delete(ROLEBINDINGS, "grant", stage.place)
    stage.access.delete("roles", "some", stage.place)


def _with_the_cluster(stage: Stage) -> None:
    rule = {**GET_TENANTS, "apiGroups": ["apps.cozystack.io"]}
    stage.access.create("clusterroles", {"metadata": {"name": f"attack:{stage.place}"}, "rules": [rule]})
    stage.access.bind(stage.place, "", stage.who, f"attack:{stage.place}")


def _drop_of_the_cluster(stage: Stage) -> None:
    stage.access.delete("clusterrolebindings", stage.place)
    stage.access.delete("clusterroles", f"attack:{stage.place}")


def _without_get(stage: Stage) -> None:
    stage.access.replace_rules("some", stage.place, {**GET_TENANTS, "verbs": ["list", "watch"]})


def _of_another_group(stage: Stage) -> None:
    body = {"subjects": [group_subject("others")]}
    stage.patch(rbac_path(ROLEBINDINGS, stage.place, "grant"), body)


def _delete_binding(stage: Stage) -> None:
    stage.access.delete(ROLEBINDINGS, "grant", stage.place)


MEANS = [
    pytest.param(Stage.grant, _delete_binding, _delete_binding, id="RoleBinding deleted"),
    pytest.param(_with_role, _without_get, _drop_role, id="Role without get"),
    pytest.param(Stage.grant, _of_another_group, _delete_binding, id="subject taken out"),
    pytest.param(_with_the_cluster, _drop_of_the_cluster, _drop_of_the_cluster, id="ClusterRoleBinding deleted"),
]


@pytest.fixture
def stage(cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str) -> Stage:
    place = tenants.create_with_namespace()
    name = create_child(tenants, place)
    tenants.wait("it has settled", lambda: tenants.get(name, place)["status"].get("conditions"))
    client = cluster.client(unique, [f"{unique}-group"])
    return Stage(access, cluster.client(), client, group_subject(f"{unique}-group"), place, name)


def until(frames: Iterator[Object], type_: str, name: str) -> Object:
    for frame in frames:
        assert frame["type"] != "ERROR", frame
        if (frame["type"], frame["object"]["metadata"].get("name")) == (type_, name):
            found: Object = frame["object"]
            return found
    raise AssertionError(f"the watch ended without {type_} {name}")


@pytest.mark.parametrize(("give", "take", "tidy"), MEANS)
def test_a_watch_loses_it_within_a_second_and_hears_no_more(
    stage: Stage,
    tenants: Tenants,
    give: Callable[[Stage], None],
    take: Callable[[Stage], None],
    tidy: Callable[[Stage], None],
) -> None:
    """Its name, and nothing of it. The median of some rounds: one pause of the machine is no late revocation."""
    taken: list[float] = []
    with open_watch(stage.client, tenants_path()) as of_tenants, open_watch(stage.client, NAMESPACES) as of_namespaces:
        for number in range(ROUNDS):
            give(stage)
            until(of_tenants, "ADDED", stage.name)
            until(of_namespaces, "ADDED", stage.place)
            started = time.monotonic()
            take(stage)
            for frames, name in ((of_tenants, stage.name), (of_namespaces, stage.place)):
                gone = until(frames, "DELETED", name)
                assert set(gone) == {"apiVersion", "kind", "metadata"}
                assert set(gone["metadata"]) <= {"name", "namespace", "uid", "resourceVersion"}
            taken.append(time.monotonic() - started)
            tenants.patch(stage.name, {"metadata": {"labels": {"round": f"hidden-{number}"}}}, stage.place)
            assert list_names(stage.client, tenants_path()) == []
            if number + 1 < ROUNDS and take is not tidy:
                tidy(stage)
        assert statistics.median(taken) < SECONDS, taken
        # what is heard next is of something else, so that nothing came in between
        other = tenants.create_with_namespace()
        fresh = create_child(tenants, other)
        stage.access.bind("other", other, stage.who)
        for frames, name, hidden in ((of_tenants, fresh, stage.name), (of_namespaces, other, stage.place)):
            for frame in frames:
                said = frame["object"]["metadata"].get("name")
                assert said != hidden, frame
                if said == name:
                    break


def test_neither_get_nor_list_nor_table_lingers(stage: Stage) -> None:
    """Once the watch has been told. What a review said of a `get` is kept for ten seconds, as at any kube-apiserver."""
    with open_watch(stage.client, tenants_path()) as frames:
        stage.grant()
        until(frames, "ADDED", stage.name)
        stage.client.get(tenants_path(stage.place, stage.name)).expect(200)
        _delete_binding(stage)
        until(frames, "DELETED", stage.name)
    for query in ({}, {"resourceVersion": "0"}, {"fieldSelector": f"metadata.name={stage.name}"}, {"limit": "1"}):
        for path in (tenants_path(), tenants_path(stage.place)):
            assert list_names(stage.client, path, **query) == []
    assert stage.client.get(f"{NAMESPACES}/{stage.place}").status == 404
    deadline = time.monotonic() + 15
    while stage.client.get(tenants_path(stage.place, stage.name)).status != 403:
        assert time.monotonic() < deadline


@pytest.mark.controller_manager
def test_what_is_made_anew_under_the_same_name_is_not_what_was_granted(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    name = tenants.new_name()
    client, path, place = cluster.client(), tenants_path(ROOT), f"tenant-{name}"
    client.request("POST", path, manifest(name)).expect(201)
    tenants.wait_for_namespace(place)
    inner = create_child(tenants, place)
    access.bind("grant", place, user_subject(unique))
    person = cluster.client(unique)
    wait_until_listed(person, NAMESPACES, [place])
    with open_watch(person, NAMESPACES) as of_namespaces, open_watch(person, tenants_path()) as of_tenants:
        client.request("DELETE", tenants_path(ROOT, name), query={"propagationPolicy": "Foreground"}).expect(200)
        until(of_tenants, "DELETED", inner)
        until(of_namespaces, "DELETED", place)
        tenants.wait_until_gone(tenants_path(ROOT, name))
        client.request("POST", path, manifest(name)).expect(201)
        tenants.wait_for_namespace(place)
        tenants.wait("it is made anew", lambda: _made(client, tenants, place, inner))
        assert list_names(person, NAMESPACES) == list_names(person, tenants_path()) == []
        access.bind("again", place, user_subject(unique))
        assert until(of_namespaces, "ADDED", place)["metadata"]["uid"]
        assert until(of_tenants, "ADDED", inner)["metadata"]["namespace"] == place


def _made(client: Client, tenants: Tenants, place: str, name: str) -> bool:
    return client.request("POST", tenants_path(place), manifest(name, place)).status == 201


def test_tokens_and_bookmarks_of_before_are_worth_nothing(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    places = sorted(tenants.create_with_namespace() for _ in range(3))
    for place in places:
        access.bind("grant", place, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, NAMESPACES, places)
    page = client.get(NAMESPACES, query={"limit": 1}).expect(200)["metadata"]
    version, token = page["resourceVersion"], page["continue"]
    for place in places:
        access.delete(ROLEBINDINGS, "grant", place)
    wait_until_listed(client, NAMESPACES, [])
    for query in _resumptions(version, token):
        answer = client.get(NAMESPACES, query=query)
        assert answer.status in (200, 410), answer.body
        assert not any(place in answer.content.decode() for place in places)
    asked = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "2", "allowWatchBookmarks": "true"}
    with client.stream(NAMESPACES, query=asked, seconds=30) as frames:
        for frame in frames:
            # that they are gone is told to who may know that they were there
            assert frame["type"] in ("DELETED", "BOOKMARK", "ERROR"), frame
            assert "status" not in frame["object"] or frame["type"] == "ERROR"


def _resumptions(version: str, token: str) -> Iterator[Mapping[str, str]]:
    yield {"limit": "1", "continue": token}
    yield {"limit": "500", "continue": token}
    yield {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    yield {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
    yield {"resourceVersion": version, "resourceVersionMatch": "Exact", "limit": "2"}
