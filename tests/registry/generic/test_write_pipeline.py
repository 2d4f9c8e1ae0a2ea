"""Writes through handlers, admission and store: the order of the steps, and the object that each step sees (WIRE-D74,
WIRE-D75, WIRE-G42)."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from apiserver.admission import Attributes
from apiserver.authorization.authorizer import PrivilegedGroups
from apiserver.endpoints.filters.error_response import ErrorResponses
from apiserver.endpoints.filters.response_headers import ResponseHeaders
from apiserver.endpoints.filters.response_headers import install as install_headers
from apiserver.endpoints.installer import install_group_version
from apiserver.meta import errors
from apiserver.meta.resource import Object
from apiserver.metrics import Metrics
from apiserver.server.app import Api, build_app
from apiserver.server.installed_groups import InstalledGroups
from apiserver.storage.watch_cache import WatchCache
from registry.embedded.kinds.core import CONFIGMAP, NAMESPACE
from registry.embedded.storage.strategies import KindStrategy
from registry.generic.store import Store
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Database
from tests.registry.embedded.embedded_storages import no_admission, request_context

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def snapshot(attributes: Attributes) -> Attributes:
    """A copy of the attributes with copies of their objects."""
    objects = copy.deepcopy((attributes.object, attributes.old_object))
    return replace(attributes, object=objects[0], old_object=objects[1])


@dataclass
class RecordingAdmission:
    """Admission that records its calls. `change` modifies the object of mutating admission in place."""

    change: Callable[[Object], Any] = lambda obj: None
    reject: bool = False
    seen: list[tuple[str, Attributes]] = field(default_factory=list)

    async def mutate(self, attributes: Attributes) -> Object:
        assert attributes.object is not None
        self.seen.append(("mutating", snapshot(attributes)))
        admitted = copy.deepcopy(attributes.object)
        self.change(admitted)
        return admitted

    @asynccontextmanager
    async def validating(self, attributes: Attributes) -> AsyncIterator[None]:
        self.seen.append(("validating", snapshot(attributes)))
        if self.reject:
            raise errors.Forbidden(attributes.resource.group_resource, attributes.name, "no")
        yield

    @property
    def objects(self) -> dict[str, Object]:
        return {phase: attributes.object or {} for phase, attributes in self.seen}

    def metadata(self, phase: str) -> Object:
        found: Object = self.objects[phase]["metadata"]
        return found


@dataclass(frozen=True)
class Served:
    client: TestClient[web.Request, web.Application]
    admission: RecordingAdmission


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    database = Database(tmp_path / "host.db")
    await database.open()
    stores = {}
    for kind in (NAMESPACE, CONFIGMAP):
        resource = kind.resources()[0]
        backend = SqliteBackend(database=database, resource=resource, cache=WatchCache(resource))
        await backend.load()
        stores[resource.plural] = Store(backend=backend, strategy=KindStrategy(kind, resource))
    default: Object = {"metadata": {"name": "default"}}
    await stores["namespaces"].create(request_context(), default, no_admission, dry_run=False)
    admission = RecordingAdmission()
    group = install_group_version(
        group="",
        version="v1",
        storages=stores,
        admission=admission,
        authorizer=PrivilegedGroups(),
        metrics=Metrics(),
        shutdown=asyncio.Event(),
    )
    groups = InstalledGroups([group], title="test", version="1")
    api = Api(endpoints=groups.endpoints, responders=(), paths=lambda: ())
    app = build_app(api, [ResponseHeaders(), ErrorResponses()])
    install_headers(app)
    async with TestClient(TestServer(app)) as client:
        yield Served(client, admission)
    await database.close()


async def send(served: Served, method: str, path: str, body: Object, **query: str) -> tuple[int, Any, list[str]]:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"Content-Type": kind}
    async with served.client.request(method, path, json=body, params=query, headers=headers) as response:
        return response.status, await response.json(), response.headers.getall("Warning", [])


def configmap(**metadata: Any) -> Object:
    return {"metadata": metadata, "data": {"a": "1"}}


async def test_mutating_admission_runs_before_the_name_is_generated_and_validating_admission_after(
    served: Served,
) -> None:
    code, created, _ = await send(served, "POST", CONFIGMAPS, configmap(generateName="x"))
    assert code == 201
    before, after = served.admission.metadata("mutating"), served.admission.metadata("validating")
    assert {"uid", "creationTimestamp", "name"}.isdisjoint(before)
    assert [attributes.name for _, attributes in served.admission.seen] == ["", created["metadata"]["name"]]
    for field_name in ("uid", "creationTimestamp", "name"):
        assert after[field_name] == created["metadata"][field_name]
    assert "resourceVersion" not in after


async def test_fields_added_by_admission_are_stored_without_a_manager(served: Served) -> None:
    served.admission.change = lambda obj: obj["data"].update(added="yes")
    code, created, _ = await send(served, "POST", CONFIGMAPS, configmap(name="x"), fieldManager="m")
    assert code == 201
    assert created["data"] == {"a": "1", "added": "yes"}
    [entry] = created["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}
    assert served.admission.objects["validating"]["data"] == created["data"]


async def test_an_object_made_invalid_by_mutating_admission_is_rejected_before_validating_admission(
    served: Served,
) -> None:
    served.admission.change = lambda obj: obj["data"].update({"not a key": "x"})
    code, status, _ = await send(served, "POST", CONFIGMAPS, configmap(name="x"))
    assert (code, status["reason"]) == (422, "Invalid")
    assert [phase for phase, _ in served.admission.seen] == ["mutating"]


async def test_an_object_rejected_by_validating_admission_is_not_stored(served: Served) -> None:
    served.admission.reject = True
    code, _, _ = await send(served, "POST", CONFIGMAPS, configmap(name="x"))
    assert code == 403
    async with served.client.get(f"{CONFIGMAPS}/x") as response:
        assert response.status == 404


async def test_admission_sees_that_a_request_is_a_dry_run(served: Served) -> None:
    code, created, _ = await send(served, "POST", CONFIGMAPS, configmap(name="x"), dryRun="All")
    assert (code, "uid" in created["metadata"], "resourceVersion" in created["metadata"]) == (201, True, False)
    assert [attributes.dry_run for _, attributes in served.admission.seen] == [True, True]


async def test_admission_of_a_deletion_sees_the_old_object(served: Served) -> None:
    _, created, _ = await send(served, "POST", CONFIGMAPS, configmap(name="x"))
    served.admission.seen.clear()
    code, _, _ = await send(served, "DELETE", f"{CONFIGMAPS}/x", {})
    assert code == 200
    [(phase, attributes)] = served.admission.seen
    assert (phase, attributes.operation, attributes.object) == ("validating", "DELETE", None)
    assert attributes.old_object == created


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_managed_fields_invalidated_by_admission_are_repaired(served: Served, method: str) -> None:
    path, good = CONFIGMAPS, configmap(name="x")
    if method != "POST":
        await send(served, "POST", CONFIGMAPS, good, fieldManager="m")
        path = f"{CONFIGMAPS}/x"
    served.admission.change = lambda obj: obj["metadata"].update(managedFields=[{"operation": "Guess"}])
    code, answered, warnings = await send(served, method, path, {**good, "data": {"b": "2"}}, fieldManager="m")
    assert code in (200, 201)
    [entry] = answered["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("m", "Update")
    assert "f:b" in entry["fieldsV1"]["f:data"]
    [warning] = warnings
    assert warning.startswith(
        '299 - ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated '
        "mutating admission controller; please fix your requests: "
    )


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        pytest.param("POST", CONFIGMAPS, {}, {"kind": "CreateOptions"}, id="create"),
        pytest.param(
            "POST",
            CONFIGMAPS,
            {"fieldManager": "m", "fieldValidation": "Strict", "dryRun": "All"},
            {"kind": "CreateOptions", "fieldManager": "m", "fieldValidation": "Strict", "dryRun": ["All"]},
            id="all options",
        ),
        pytest.param("PUT", f"{CONFIGMAPS}/existing", {}, {"kind": "UpdateOptions"}, id="update"),
        pytest.param("PATCH", f"{CONFIGMAPS}/existing", {}, {"kind": "UpdateOptions"}, id="patch"),
    ],
)
async def test_admission_gets_the_options_of_the_request_without_defaults(
    served: Served, method: str, path: str, query: dict[str, str], expected: Object
) -> None:
    await send(served, "POST", CONFIGMAPS, configmap(name="existing"))
    served.admission.seen.clear()
    code, _, _ = await send(served, method, path, configmap(name="existing" if path != CONFIGMAPS else "new"), **query)
    assert code in (200, 201)
    whole = {**expected, "apiVersion": "meta.k8s.io/v1"}
    assert [attributes.options for _, attributes in served.admission.seen] == [whole, whole]


async def test_admission_cannot_move_an_object_to_another_namespace(served: Served) -> None:
    await send(served, "POST", CONFIGMAPS, configmap(name="existing"))
    served.admission.change = lambda obj: obj["metadata"].update(namespace="elsewhere")
    for method, path in (("POST", CONFIGMAPS), ("PUT", f"{CONFIGMAPS}/existing")):
        code, status, _ = await send(served, method, path, configmap(name="existing" if method == "PUT" else "new"))
        assert (code, status["message"]) == (
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        )


async def test_a_namespace_removed_by_admission_is_restored(served: Served) -> None:
    served.admission.change = lambda obj: obj["metadata"].pop("namespace")
    code, created, _ = await send(served, "POST", CONFIGMAPS, configmap(name="x"))
    assert (code, created["metadata"]["namespace"]) == (201, "default")


async def test_admission_cannot_set_metadata_of_the_server(served: Served) -> None:
    served.admission.change = lambda obj: obj["metadata"].update(
        uid="mine", deletionTimestamp="2026-01-01T00:00:00Z", creationTimestamp="2020-01-01T00:00:00Z"
    )
    code, created, _ = await send(served, "POST", CONFIGMAPS, configmap(name="x"))
    assert code == 201
    assert "deletionTimestamp" not in created["metadata"]
    assert created["metadata"]["uid"] != "mine"
    assert not created["metadata"]["creationTimestamp"].startswith("2020")


async def test_owner_references_duplicated_by_admission_are_merged(served: Served) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    served.admission.change = lambda obj: obj["metadata"].update(ownerReferences=[owner, dict(owner)])
    code, created, warnings = await send(served, "POST", CONFIGMAPS, configmap(name="x"))
    assert (code, created["metadata"]["ownerReferences"]) == (201, [owner])
    [warning] = warnings
    assert "contains duplicate entries after mutating admission happens; API server" in warning


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param("application/merge-patch+json", {"data": {"b": "y" * 50_000}}, id="merge"),
        pytest.param("application/strategic-merge-patch+json", {"data": {"b": "y" * 50_000}}, id="strategic merge"),
        pytest.param(
            "application/json-patch+json", [{"op": "add", "path": "/data/b", "value": "y" * 50_000}], id="JSON"
        ),
        pytest.param(
            "application/apply-patch+yaml",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"b": "y" * 50_000}},
            id="apply",
        ),
    ],
)
async def test_large_writes_have_the_same_result_as_small_ones(served: Served, kind: str, patch: Any) -> None:
    """Large objects are processed outside of the event loop."""
    name = {"metadata": {"name": "x"}, "data": {"a": "x" * 50_000}}
    created = await served.client.post(CONFIGMAPS, json=name)
    assert created.status == 201
    query = {"fieldManager": "me"}
    answer = await served.client.patch(
        f"{CONFIGMAPS}/x", data=json.dumps(patch), headers={"Content-Type": kind}, params=query
    )
    assert answer.status == 200
    obj = await answer.json()
    assert {key: len(value) for key, value in obj["data"].items()} == {"a": 50_000, "b": 50_000}
    assert obj["metadata"]["managedFields"][-1 if kind != "application/apply-patch+yaml" else 0]["manager"] == "me"
