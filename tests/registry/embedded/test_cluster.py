"""The embedded cluster as a whole: first start, restart, aggregated roles, deletion of old Events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from admission.cel.schema_rules import SchemaRuleCompiler
from admission.policy.expression_errors import expression_errors
from apiserver.authorization.authorizer import AccessAttributes, Authorizer
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.embedded.api_groups import StoredGroupVersion
from registry.embedded.auth.signing_key import SigningKey, generate_key
from registry.embedded.bootstrap import SYSTEM_NAMESPACES, bootstrap
from registry.embedded.cluster import ClusterTrust, EmbeddedCluster
from registry.embedded.controllers.clusterrole_aggregation import ClusterRoleAggregationController, aggregate_rules
from registry.embedded.controllers.event_ttl import EventTtlController, last_written
from registry.sqlite.statements import DatabaseUnusable
from registry.tenant.types import tenant_resource
from tests.registry.embedded.embedded_storages import ADMIN, EmbeddedApi, no_admission, request_context

RBAC = "rbac.authorization.k8s.io"
TRUST = ClusterTrust(authentication={"client-ca-file": "PEM"}, ca="PEM", signing_key=SigningKey(generate_key()))


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(path=path, trust=TRUST, compiler=SchemaRuleCompiler(), policy_errors=expression_errors)
    await cluster.open()
    cluster.reserve_names([tenant_resource()])
    task = asyncio.create_task(cluster.run())
    try:
        yield cluster
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await cluster.close()


def storage(groups: list[StoredGroupVersion], group: str, version: str, path: str) -> Any:
    return next(each for each in groups if (each.group, each.version) == (group, version)).storages[path]


async def is_allowed(authorizer: Authorizer, user: User, verb: str, resource: str, **more: Any) -> bool:
    decision = await authorizer.authorize(AccessAttributes(user=user, verb=verb, resource=resource, **more))
    return decision.allowed


async def test_the_first_start_creates_the_system_objects(tmp_path: Path) -> None:
    async with running(tmp_path / "cluster.db") as cluster:
        groups = cluster.group_versions(cluster.authorizer)
        namespaces = storage(groups, "", "v1", "namespaces")
        for name in SYSTEM_NAMESPACES:
            found = (await namespaces.get(request_context(), Key("", name))).object()
            assert found["status"] == {"phase": "Active"}
            assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
        key = Key("kube-system", "extension-apiserver-authentication")
        configmap = (await storage(groups, "", "v1", "configmaps").get(request_context(), key)).object()
        assert configmap["data"] == {"client-ca-file": "PEM"}


async def test_administrators_may_do_everything_and_other_users_only_the_basics(tmp_path: Path) -> None:
    async with running(tmp_path / "cluster.db") as cluster:
        user = User(name="ann", groups=("system:authenticated",))
        assert await is_allowed(cluster.authorizer, ADMIN, "delete", "namespaces", name="x")
        assert await is_allowed(cluster.authorizer, user, "create", "selfsubjectreviews", group="authentication.k8s.io")
        assert not await is_allowed(cluster.authorizer, user, "list", "namespaces")
        discovery = AccessAttributes(user=user, verb="get", path="/apis/apps.cozystack.io")
        assert (await cluster.authorizer.authorize(discovery)).allowed


async def test_a_restart_keeps_all_objects_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    async with running(path) as cluster:
        configmaps = storage(cluster.group_versions(cluster.authorizer), "", "v1", "configmaps")
        obj = {"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}}
        created = await configmaps.create(request_context(), obj, no_admission, dry_run=False)
    cluster = EmbeddedCluster(path=path, trust=TRUST, compiler=SchemaRuleCompiler(), policy_errors=expression_errors)
    await cluster.open()
    first = max(cache.rv for cache in cluster.caches)
    await cluster.close()
    async with running(path) as again:
        configmaps = storage(again.group_versions(again.authorizer), "", "v1", "configmaps")
        assert (await configmaps.get(request_context(), Key("default", "a"))).object() == created
        assert max(cache.rv for cache in again.caches) == first


async def test_two_clusters_cannot_open_one_database(tmp_path: Path) -> None:
    async with running(tmp_path / "cluster.db"):
        other = EmbeddedCluster(
            path=tmp_path / "cluster.db", trust=TRUST, compiler=SchemaRuleCompiler(), policy_errors=expression_errors
        )
        with pytest.raises(DatabaseUnusable, match="in use"):
            await other.open()


async def test_bootstrap_restores_missing_rules_of_a_system_role_and_keeps_added_ones(api: EmbeddedApi) -> None:
    await bootstrap(api.backends, authentication={})
    key, own = Key("", "system:basic-user"), {"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"]}
    await api.update("clusterroles", key, lambda obj: obj.update(rules=[own]), group=RBAC)
    await bootstrap(api.backends, authentication={})
    role = await api.get("clusterroles", key, group=RBAC)
    assert role is not None
    assert role["rules"][0] == own
    assert {rule["resources"][0] for rule in role["rules"][1:]} == {
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "selfsubjectreviews",
    }


async def test_bootstrap_skips_a_system_role_without_autoupdate(api: EmbeddedApi) -> None:
    await bootstrap(api.backends, authentication={})
    key = Key("", "system:basic-user")

    def take_over(obj: Object) -> None:
        obj["rules"] = []
        obj["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"

    await api.update("clusterroles", key, take_over, group=RBAC)
    await bootstrap(api.backends, authentication={})
    role = await api.get("clusterroles", key, group=RBAC)
    assert role is not None
    assert role["rules"] == []


async def test_bootstrap_updates_the_authentication_configmap(api: EmbeddedApi) -> None:
    await bootstrap(api.backends, authentication={"client-ca-file": "old"})
    await bootstrap(api.backends, authentication={"client-ca-file": "new"})
    configmap = await api.get("configmaps", Key("kube-system", "extension-apiserver-authentication"))
    assert configmap is not None
    assert configmap["data"] == {"client-ca-file": "new"}


def role(name: str, rules: list[str], **labels: str) -> Object:
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "rules": [{"verbs": [rule]} for rule in rules]}


@pytest.mark.parametrize(
    ("selector", "verbs"),
    [
        pytest.param({"matchLabels": {"a": "1"}}, ["x", "y", "z"], id="matching labels"),
        pytest.param({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, ["z"], id="matching expressions"),
        pytest.param({"matchLabels": {"a": "nothing"}}, [], id="no match"),
    ],
)
def test_rules_are_aggregated_from_the_selected_roles(selector: Object, verbs: list[str]) -> None:
    whole = {**role("whole", [], a="1"), "aggregationRule": {"clusterRoleSelectors": [selector]}}
    roles = [role("second", ["y", "z"], a="1", b="2"), role("first", ["x", "y"], a="1"), role("other", ["q"]), whole]
    if "matchExpressions" in selector:
        roles[0]["rules"] = [{"verbs": ["z"]}]
    assert [rule["verbs"][0] for rule in aggregate_rules(whole, roles)] == verbs


async def test_an_aggregated_role_follows_changes_of_its_parts(api: EmbeddedApi) -> None:
    aggregation = ClusterRoleAggregationController(database=api.database, backends=api.backends)
    aggregation.load()
    task = asyncio.create_task(aggregation.run())
    selectors = [{"matchLabels": {"to": "whole"}}]
    rule = {"clusterRoleSelectors": selectors}
    await api.create("clusterroles", {"metadata": {"name": "whole"}, "aggregationRule": rule}, group=RBAC)
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    part = {"metadata": {"name": "part", "labels": {"to": "whole"}}, "rules": rules}
    await api.create("clusterroles", part, group=RBAC)

    def rules_of_whole() -> Any:
        cached = api.backends[f"clusterroles.{RBAC}"].cache.peek(Key("", "whole"))
        return cached.object().get("rules") if cached is not None else None

    await api.until(lambda: rules_of_whole() == rules)
    await api.delete("clusterroles", Key("", "part"), group=RBAC)
    await api.until(lambda: rules_of_whole() == [])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_events_are_deleted_an_hour_after_their_last_write(api: EmbeddedApi) -> None:
    created = await api.create("events", {"metadata": {"name": "old", "namespace": "ns"}})
    await api.create(
        "events", {"metadata": {"name": "again", "namespace": "ns"}, "lastTimestamp": "2999-01-01T00:00:00Z"}
    )
    created_at = last_written(created)
    backend = api.backends["events"]
    await EventTtlController(backend, clock=lambda: created_at + 3599).delete_expired()
    assert len(api.stored("events")) == 2
    await EventTtlController(backend, clock=lambda: created_at + 3601).delete_expired()
    assert api.stored("events") == [Key("ns", "again")]


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        pytest.param({"metadata": {}}, 0.0, id="no timestamp"),
        pytest.param({"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}}, 60.0, id="only a creation timestamp"),
        pytest.param(
            {"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}, "lastTimestamp": "1970-01-01T00:02:00Z"},
            120.0,
            id="a later last timestamp",
        ),
        pytest.param(
            {"metadata": {}, "series": {"lastObservedTime": "1970-01-01T00:03:00.000000Z"}},
            180.0,
            id="the last observed time of a series",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}, "eventTime": "soon"},
            60.0,
            id="an event time that is not a date",
        ),
    ],
)
def test_the_last_write_of_an_event_is_its_latest_timestamp(event: Object, seconds: float) -> None:
    assert last_written(event) == seconds
