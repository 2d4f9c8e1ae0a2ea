"""Rules are compiled in a thread before their first use, as a hundred of them take longer than others should wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from admission.cel.schema_rules import SchemaRules
from apiserver.meta.resource import Key, Object
from tests.registry.embedded.custom.definitions import version, widgets
from tests.registry.embedded.embedded_storages import EmbeddedApi

GATEWAY_API = "gateway.networking.k8s.io"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The rules that were compiled, with the thread of each."""
    found: list[tuple[str, int]] = []
    compile_rule = SchemaRules._compile

    def record(self: SchemaRules, document: Mapping[str, Any]) -> Any:
        found.append((f"{id(self)} {document['rule']} {document.get('fieldPath')}", threading.get_ident()))
        return compile_rule(self, document)

    monkeypatch.setattr(SchemaRules, "_compile", record)
    return found


def route(name: str) -> Object:
    parents = [{"name": "cozystack", "group": GATEWAY_API, "kind": "Gateway"}]
    backend = {"name": "web", "port": 80, "group": "", "kind": "Service"}
    rules = [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "backendRefs": [backend]}]
    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"parentRefs": parents, "rules": rules},
    }


def definition() -> Object:
    rule = {"rule": "self.size > 0", "message": "too small"}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": [rule]}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "boxes", "kind": "Box"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def test_the_first_object_of_a_kind_has_its_rules_compiled_in_a_thread(
    api: EmbeddedApi, compiled: list[tuple[str, int]]
) -> None:
    await api.create("httproutes", route("one"), group=GATEWAY_API)
    assert len(compiled) > 30
    assert threading.get_ident() not in {thread for _, thread in compiled}


async def test_rules_are_compiled_once_for_simultaneous_first_objects_and_later_changes(
    api: EmbeddedApi, compiled: list[tuple[str, int]]
) -> None:
    await asyncio.gather(*(api.create("httproutes", route(name), group=GATEWAY_API) for name in ("one", "two", "six")))

    def change(obj: Object) -> None:
        obj["spec"]["rules"][0]["filters"] = [{"type": "URLRewrite", "urlRewrite": {"hostname": "a.example.org"}}]

    await api.update("httproutes", Key("ns", "one"), change, group=GATEWAY_API)
    names = [name for name, _ in compiled]
    assert len(names) == len(set(names))
    assert threading.get_ident() not in {thread for _, thread in compiled}


@pytest.mark.parametrize(
    ("rule", "in_thread"),
    [
        pytest.param("self.sizes.all(a, self.sizes.all(b, a + b > 0))", True, id="loops"),
        pytest.param("self.sizes.size() > 0", False, id="no loops"),
    ],
)
async def test_rules_with_loops_are_always_evaluated_in_a_thread(
    api: EmbeddedApi, monkeypatch: pytest.MonkeyPatch, rule: str, in_thread: bool
) -> None:
    field = {"type": "array", "items": {"type": "integer"}}
    spec = {"type": "object", "properties": {"sizes": field}, "x-kubernetes-validations": [{"rule": rule}]}
    await api.custom.serve(
        widgets(version(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}))
    )
    threads: list[int] = []
    failures = SchemaRules.failures

    def record(self: SchemaRules, *arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return failures(self, *arguments)

    monkeypatch.setattr(SchemaRules, "failures", record)
    for name in ("one", "two"):
        obj = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"sizes": [1, 2]}}
        await api.create("widgets", obj, group="example.com")
    assert (threading.get_ident() != threads[-1]) is in_thread


async def test_the_rules_of_a_new_definition_are_compiled_in_a_thread(
    api: EmbeddedApi, compiled: list[tuple[str, int]]
) -> None:
    await api.create("customresourcedefinitions", definition(), group="apiextensions.k8s.io")
    assert [thread for _, thread in compiled] != []
    assert threading.get_ident() not in {thread for _, thread in compiled}
