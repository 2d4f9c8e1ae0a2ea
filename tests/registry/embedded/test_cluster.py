"""The embedded host as a whole: first start, restart, roles that are put together, Events that are forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.authorization.authorizer import AccessAttributes, Authorizer
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.embedded.api_groups import ClusterGroup
from registry.embedded.auth.signing_key import SigningKey, generate_key
from registry.embedded.bootstrap import SYSTEM_NAMESPACES, bootstrap
from registry.embedded.cluster import EmbeddedCluster, Trust
from registry.embedded.controllers.clusterrole_aggregation import RoleAggregation, aggregated_rules
from registry.embedded.controllers.event_ttl import EventExpiry, last_written
from registry.sqlite.statements import DatabaseUnusable
from tests.registry.embedded.embedded_storages import ADMIN, Kinds, context_of, no_admission

RBAC = "rbac.authorization.k8s.io"
TRUST = Trust(authentication={"client-ca-file": "PEM"}, ca="PEM", signing_key=SigningKey(generate_key()))


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(path=path, trust=TRUST)
    await cluster.open()
    task = asyncio.create_task(cluster.run())
    try:
        yield cluster
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await cluster.close()


def storage(groups: list[ClusterGroup], group: str, version: str, path: str) -> Any:
    return next(each for each in groups if (each.group, each.version) == (group, version)).storages[path]


async def may(authorizer: Authorizer, user: User, verb: str, resource: str, **more: Any) -> bool:
    decision = await authorizer.authorize(AccessAttributes(user=user, verb=verb, resource=resource, **more))
    return decision.allowed


async def test_the_first_start_makes_what_the_process_needs(tmp_path: Path) -> None:
    async with running(tmp_path / "host.db") as host:
        groups = host.groups(host.authorizer)
        namespaces = storage(groups, "", "v1", "namespaces")
        for name in SYSTEM_NAMESPACES:
            found = (await namespaces.get(context_of(), Key("", name))).object()
            assert found["status"] == {"phase": "Active"}
            assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
        key = Key("kube-system", "extension-apiserver-authentication")
        configmap = (await storage(groups, "", "v1", "configmaps").get(context_of(), key)).object()
        assert configmap["data"] == {"client-ca-file": "PEM"}


async def test_administrators_may_everything_and_others_what_everybody_may(tmp_path: Path) -> None:
    async with running(tmp_path / "host.db") as host:
        user = User(name="ann", groups=("system:authenticated",))
        assert await may(host.authorizer, ADMIN, "delete", "namespaces", name="x")
        assert await may(host.authorizer, user, "create", "selfsubjectreviews", group="authentication.k8s.io")
        assert not await may(host.authorizer, user, "list", "namespaces")
        discovery = AccessAttributes(user=user, verb="get", path="/apis/apps.cozystack.io")
        assert (await host.authorizer.authorize(discovery)).allowed


async def test_a_restart_keeps_everything_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    async with running(path) as cluster:
        configmaps = storage(cluster.groups(cluster.authorizer), "", "v1", "configmaps")
        obj = {"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}}
        created = await configmaps.create(context_of(), obj, no_admission, dry_run=False)
    cluster = EmbeddedCluster(path=path, trust=TRUST)
    await cluster.open()
    first = max(cache.rv for cache in cluster.caches)
    await cluster.close()
    async with running(path) as again:
        configmaps = storage(again.groups(again.authorizer), "", "v1", "configmaps")
        assert (await configmaps.get(context_of(), Key("default", "a"))).object() == created
        assert max(cache.rv for cache in again.caches) == first


async def test_two_hosts_cannot_share_a_file(tmp_path: Path) -> None:
    async with running(tmp_path / "host.db"):
        other = EmbeddedCluster(path=tmp_path / "host.db", trust=TRUST)
        with pytest.raises(DatabaseUnusable, match="in use"):
            await other.open()


async def test_a_system_role_gets_back_what_it_lacks_and_keeps_what_it_was_given(kinds: Kinds) -> None:
    await bootstrap(kinds.backends, authentication={})
    key, own = Key("", "system:basic-user"), {"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"]}
    await kinds.update("clusterroles", key, lambda obj: obj.update(rules=[own]), group=RBAC)
    await bootstrap(kinds.backends, authentication={})
    role = await kinds.get("clusterroles", key, group=RBAC)
    assert role is not None
    assert role["rules"][0] == own
    assert {rule["resources"][0] for rule in role["rules"][1:]} == {
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "selfsubjectreviews",
    }


async def test_a_system_role_that_is_not_to_be_updated_is_left_alone(kinds: Kinds) -> None:
    await bootstrap(kinds.backends, authentication={})
    key = Key("", "system:basic-user")

    def take_over(obj: Object) -> None:
        obj["rules"] = []
        obj["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"

    await kinds.update("clusterroles", key, take_over, group=RBAC)
    await bootstrap(kinds.backends, authentication={})
    role = await kinds.get("clusterroles", key, group=RBAC)
    assert role is not None
    assert role["rules"] == []


async def test_who_is_trusted_follows_the_files(kinds: Kinds) -> None:
    await bootstrap(kinds.backends, authentication={"client-ca-file": "old"})
    await bootstrap(kinds.backends, authentication={"client-ca-file": "new"})
    configmap = await kinds.get("configmaps", Key("kube-system", "extension-apiserver-authentication"))
    assert configmap is not None
    assert configmap["data"] == {"client-ca-file": "new"}


def role(name: str, rules: list[str], **labels: str) -> Object:
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "rules": [{"verbs": [rule]} for rule in rules]}


@pytest.mark.parametrize(
    ("selector", "verbs"),
    [
        pytest.param({"matchLabels": {"a": "1"}}, ["x", "y", "z"], id="labels"),
        pytest.param({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, ["z"], id="expressions"),
        pytest.param({"matchLabels": {"a": "nothing"}}, [], id="nothing"),
    ],
)
def test_rules_come_from_the_roles_that_are_chosen(selector: Object, verbs: list[str]) -> None:
    whole = {**role("whole", [], a="1"), "aggregationRule": {"clusterRoleSelectors": [selector]}}
    roles = [role("second", ["y", "z"], a="1", b="2"), role("first", ["x", "y"], a="1"), role("other", ["q"]), whole]
    if "matchExpressions" in selector:
        roles[0]["rules"] = [{"verbs": ["z"]}]
    assert [rule["verbs"][0] for rule in aggregated_rules(whole, roles)] == verbs


async def test_aggregated_roles_follow_their_parts(kinds: Kinds) -> None:
    aggregation = RoleAggregation(database=kinds.database, backends=kinds.backends)
    aggregation.load()
    task = asyncio.create_task(aggregation.run())
    selectors = [{"matchLabels": {"to": "whole"}}]
    rule = {"clusterRoleSelectors": selectors}
    await kinds.create("clusterroles", {"metadata": {"name": "whole"}, "aggregationRule": rule}, group=RBAC)
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    part = {"metadata": {"name": "part", "labels": {"to": "whole"}}, "rules": rules}
    await kinds.create("clusterroles", part, group=RBAC)

    def rules_of_whole() -> Any:
        cached = kinds.backends[f"clusterroles.{RBAC}"].cache.peek(Key("", "whole"))
        return cached.object().get("rules") if cached is not None else None

    await kinds.until(lambda: rules_of_whole() == rules)
    await kinds.delete("clusterroles", Key("", "part"), group=RBAC)
    await kinds.until(lambda: rules_of_whole() == [])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_events_are_forgotten_an_hour_after_they_were_last_written(kinds: Kinds) -> None:
    created = await kinds.create("events", {"metadata": {"name": "old", "namespace": "ns"}})
    await kinds.create(
        "events", {"metadata": {"name": "again", "namespace": "ns"}, "lastTimestamp": "2999-01-01T00:00:00Z"}
    )
    born = last_written(created)
    backend = kinds.backends["events"]
    await EventExpiry(backend, clock=lambda: born + 3599).sweep()
    assert len(kinds.stored("events")) == 2
    await EventExpiry(backend, clock=lambda: born + 3601).sweep()
    assert kinds.stored("events") == [Key("ns", "again")]


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        pytest.param({"metadata": {}}, 0.0, id="no time at all"),
        pytest.param({"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}}, 60.0, id="when it was made"),
        pytest.param(
            {"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}, "lastTimestamp": "1970-01-01T00:02:00Z"},
            120.0,
            id="when it happened again",
        ),
        pytest.param(
            {"metadata": {}, "series": {"lastObservedTime": "1970-01-01T00:03:00.000000Z"}}, 180.0, id="in a series"
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}, "eventTime": "soon"}, 60.0, id="no date"
        ),
    ],
)
def test_the_time_of_an_event(event: Object, seconds: float) -> None:
    assert last_written(event) == seconds
