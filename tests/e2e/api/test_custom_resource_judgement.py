"""The embedded cluster judges custom resources as a kube-apiserver does: the same objects go to both."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.admission.judged_definitions import FIELDS, definition
from tests.e2e.support.admission.judged_objects import CUSTOM, GADGETS, SHIPPED, Judged
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client, Response

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ALL = {"dryRun": "All"}


def install_gadgets(client: Client) -> None:
    response = client.request("POST", DEFINITIONS, GADGETS)
    assert response.status in (201, 409), response.content
    path = "/apis/judged.example.com/v1/gadgets"
    wait_until("gadgets are served", lambda: client.serves(path), seconds=120)


def collection(obj: dict[str, Any]) -> str:
    return f"/apis/{obj['apiVersion']}/namespaces/default/{obj['_plural']}"


def sent(obj: dict[str, Any], name: str) -> dict[str, Any]:
    body = {key: each for key, each in obj.items() if key != "_plural"}
    return {**body, "metadata": {**obj["metadata"], "name": name}}


def answer(response: Response) -> Any:
    """The part on which both clusters must agree: the content of an object, or an error but for the order of its
    causes."""
    body = response.json()
    if response.status < 400:
        content = {key: each for key, each in body.items() if key != "metadata"}
        return response.status, content, body["metadata"].get("generation"), sorted(warnings(response))
    details = body.get("details") or {}
    causes = sorted((each.get("reason"), each.get("field"), each.get("message")) for each in details.get("causes", ()))
    named = {key: details.get(key) for key in ("name", "group", "kind")}
    return response.status, body["reason"], named, causes, body["message"] if not causes else ""


def warnings(response: Response) -> list[str]:
    return [each.partition('"')[2] for each in response.warnings]


@pytest.mark.parametrize("judged", [pytest.param(each, id=each.name) for each in (*SHIPPED, *CUSTOM)])
def test_both_clusters_give_the_same_answer(
    embedded: EmbeddedCluster, kube_apiserver: Client, judged: Judged, unique: str
) -> None:
    answers = []
    for client in (embedded.client(), kube_apiserver):
        install_gadgets(client)
        path = collection(judged.obj)
        if judged.old is None:
            answers.append(answer(client.request("POST", path, sent(judged.obj, unique), query=ALL)))
            continue
        client.request("POST", path, sent(judged.old, unique)).expect(201)
        version = client.get(f"{path}/{unique}").expect(200)["metadata"]["resourceVersion"]
        new = sent(judged.obj, unique)
        new["metadata"]["resourceVersion"] = version
        answers.append(answer(client.request("PUT", f"{path}/{unique}", new)))
        client.request("DELETE", f"{path}/{unique}").expect(200)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", FIELDS)
def test_both_clusters_judge_a_definition_alike(embedded: EmbeddedCluster, kube_apiserver: Client, name: str) -> None:
    body = definition(FIELDS[name])
    answers = [
        client.request("POST", DEFINITIONS, body, query=ALL).json() for client in (embedded.client(), kube_apiserver)
    ]
    assert judgement(answers[0]) == judgement(answers[1])


def judgement(body: dict[str, Any]) -> Any:
    """The stored schema, or the error."""
    if body["kind"] != "Status":
        return body["spec"]["versions"][0]["schema"]
    causes = (body.get("details") or {}).get("causes") or ()
    texts = sorted((each["reason"], each["field"], each["message"]) for each in causes)
    return body["code"], body["reason"], texts or body["message"]


def test_a_status_is_judged_through_its_subresource(
    embedded: EmbeddedCluster, kube_apiserver: Client, unique: str
) -> None:
    answers = []
    for client in (embedded.client(), kube_apiserver):
        install_gadgets(client)
        gadget = CUSTOM[0].obj
        path = f"{collection(gadget)}/{unique}"
        client.request("POST", collection(gadget), sent(gadget, unique)).expect(201)
        bad = {"status": {"phase": "Down", "replicas": "x", "unknown": 1}}
        merge = "application/merge-patch+json"
        answers.append(answer(client.request("PATCH", f"{path}/status", bad, content_type=merge)))
        good = {"status": {"phase": "Up", "replicas": 2}, "spec": {"mode": "b"}}
        answers.append(answer(client.request("PATCH", f"{path}/status", good, content_type=merge)))
        scaled = client.request("PATCH", f"{path}/scale", {"spec": {"replicas": 4}}, content_type=merge).expect(200)
        answers.append((scaled["spec"], scaled["status"], client.get(path).expect(200)["spec"]))
        client.request("DELETE", path).expect(200)
    assert answers[:3] == answers[3:]
