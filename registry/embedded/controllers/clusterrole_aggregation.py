"""Fills ClusterRoles that have an aggregationRule with the rules of the ClusterRoles that its selectors match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from apiserver.meta.resource import Object
from apiserver.meta.selectors import LabelSelector, Requirement
from registry.embedded.auth.rbac_authorizer import CLUSTERROLES
from registry.embedded.worker import Worker
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Change, Database


class ClusterRoleAggregationController:
    def __init__(self, *, database: Database, backends: Mapping[str, SqliteBackend]) -> None:
        self._database = database
        self._backend = backends[CLUSTERROLES]
        self._worker: Worker[str] = Worker("aggregation of ClusterRoles", self._process)

    def load(self) -> None:
        self._worker.add(CLUSTERROLES)
        self._database.subscribe(self._on_change)

    async def run(self) -> None:
        await self._worker.run()

    async def join(self) -> None:
        await self._worker.join()

    def _on_change(self, change: Change) -> None:
        if change.target.resource == CLUSTERROLES:
            self._worker.add(CLUSTERROLES)

    async def _process(self, _: str) -> None:
        roles = [cached.object() for cached in self._backend.cache]
        for cached in list(self._backend.cache):
            role = cached.object()
            if not role.get("aggregationRule"):
                continue
            rules = aggregate_rules(role, roles)
            if rules != (role.get("rules") or []):
                await self._backend.update(cached.key, {**role, "rules": rules}, role, dry_run=False)


def aggregate_rules(role: Object, roles: Iterable[Object]) -> list[Object]:
    """Returns the rules of the roles that `role` selects, in the order of the roles' names and without duplicates."""
    rule = role.get("aggregationRule") or {}
    selectors = [to_label_selector(each) for each in rule.get("clusterRoleSelectors") or ()]
    rules: list[Object] = []
    for other in sorted(roles, key=lambda each: str(each["metadata"]["name"])):
        if other["metadata"]["uid"] == role["metadata"]["uid"]:
            continue
        labels = other["metadata"].get("labels") or {}
        if any(selector.matches(labels) for selector in selectors):
            rules += [each for each in other.get("rules") or () if each not in rules]
    return rules


def to_label_selector(document: Mapping[str, object]) -> LabelSelector:
    """Parses a metav1.LabelSelector."""
    labels, expressions = document.get("matchLabels"), document.get("matchExpressions")
    requirements = []
    if isinstance(labels, dict):
        requirements += [Requirement(key, "In", (value,)) for key, value in labels.items()]
    for each in expressions if isinstance(expressions, list) else ():
        requirements.append(Requirement(each.get("key", ""), each.get("operator", ""), tuple(each.get("values") or ())))
    return LabelSelector(tuple(requirements))
