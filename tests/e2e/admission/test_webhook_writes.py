"""Every write is sent to webhooks, by kube-apiserver for ConfigMaps and by our server for Tenants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.e2e.support.admission.webhook_server import AdmissionResponse, WebhookServer
from tests.e2e.support.admission.webhooks import (
    ALLOWED,
    APPLY,
    DENIAL_MESSAGE,
    DENIED,
    HOOK,
    JSON,
    MERGE,
    AdmittedResource,
    Webhooks,
    in_call_order,
    json_patch_response,
    status_message,
)
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Tenants


@pytest.fixture
def existing_name(webhooks: Webhooks, admitted: AdmittedResource, tenants: Tenants, unique: str) -> Iterator[str]:
    """The name of an existing object that no controller writes meanwhile: a write that conflicts with another one is
    tried again, and sent to the webhooks again."""
    webhooks.create(admitted, unique, dry=False).expect(201)
    if admitted.kind == "Tenant":
        tenants.wait_until_settled(unique)
    yield unique
    webhooks.send("DELETE", f"{admitted.path}/{unique}")


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize("dry_run", [{}, {"dryRun": "All"}], ids=["real", "dry run"])
def test_every_write_is_sent_to_webhooks(
    webhooks: Webhooks,
    hook_server: WebhookServer,
    admitted: AdmittedResource,
    existing_name: str,
    kind: Any,
    dry_run: Mapping[str, str],
) -> None:
    """Every verb, real and as a dry run (R-019)."""
    hook_server.respond_with(f"/{HOOK}", DENIED)
    path, selected = f"{admitted.path}/{existing_name}", {"labelSelector": f"webhooks={webhooks.labels['webhooks']}"}
    changed = webhooks.body(admitted, existing_name, annotations={"a": "b"})
    missing = webhooks.body(admitted, f"{existing_name}x")
    annotate = {"metadata": {"annotations": {"a": "b"}}}
    applied = {**dry_run, "fieldManager": "e2e", "force": "true"}
    with webhooks.in_force(kind, webhooks.hook(HOOK)):
        answers = {
            "create": webhooks.send("POST", admitted.path, missing, **dry_run),
            "generated name": webhooks.send(
                "POST",
                admitted.path,
                {**missing, "metadata": {"generateName": "g", "labels": webhooks.labels}},
                **dry_run,
            ),
            "update": webhooks.send("PUT", path, changed, **dry_run),
            "merge patch": webhooks.send("PATCH", path, annotate, content_type=MERGE, **dry_run),
            "JSON patch": webhooks.send(
                "PATCH",
                path,
                [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}],
                content_type=JSON,
                **dry_run,
            ),
            "apply": webhooks.send("PATCH", path, changed, content_type=APPLY, **applied),
            "apply of a missing object": webhooks.send("PATCH", f"{path}x", missing, content_type=APPLY, **applied),
            "delete": webhooks.send("DELETE", path, **dry_run),
            "deletecollection": webhooks.send("DELETE", admitted.path, **selected, **dry_run),
        }
        results = {verb: (answer.status, status_message(answer)) for verb, answer in answers.items()}
        assert results == dict.fromkeys(answers, (400, DENIAL_MESSAGE))
        assert len(hook_server.calls(f"/{HOOK}")) == len(answers)
    webhooks.client.get(path).expect(200)


def _received_request(hook_server: WebhookServer, answer: Response) -> dict[str, Any]:
    """The AdmissionRequest of the only call, without uid and userInfo; the write must have succeeded."""
    assert answer.status in (200, 201), answer.content
    [call] = hook_server.calls(f"/{HOOK}")
    assert call.target == f"/{HOOK}?timeout=10s"
    assert call.headers["Content-Type"] == "application/json"
    assert call.headers["Accept"] == "application/json, */*"
    assert call.review["apiVersion"] == "admission.k8s.io/v1"
    assert call.review["kind"] == "AdmissionReview"
    request = dict(call.request)
    assert len(request.pop("uid")) == 36
    user = request.pop("userInfo")
    assert user["username"]
    assert "system:authenticated" in user["groups"]
    hook_server.forget_calls(f"/{HOOK}")
    return request


def test_a_webhook_receives_the_request_that_kubernetes_sends(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, existing_name: str
) -> None:
    hook_server.respond_with(f"/{HOOK}", ALLOWED)
    path, common = f"{admitted.path}/{existing_name}", _common_fields(admitted)
    stored = webhooks.client.get(path).expect(200)
    annotate, dry = {"metadata": {"annotations": {"a": "b"}}}, {"dryRun": "All"}
    with webhooks.in_force("Validating", webhooks.hook(HOOK)):
        created = webhooks.send(
            "POST", admitted.path, webhooks.body(admitted, f"{existing_name}x"), fieldManager="me", **dry
        )
        request = _received_request(hook_server, created)
        assert request["object"]["metadata"]["uid"]
        assert request.pop("object")["metadata"]["name"] == created.json()["metadata"]["name"]
        assert request == {
            **common,
            "name": f"{existing_name}x",
            "operation": "CREATE",
            "oldObject": None,
            "options": _options("Create", fieldManager="me"),
        }
        patched = webhooks.send("PATCH", path, annotate, content_type=MERGE, fieldValidation="Strict", **dry)
        request = _received_request(hook_server, patched)
        assert request.pop("object")["metadata"]["annotations"] == {"a": "b"}
        assert _is_same_object(stored, request.pop("oldObject"))
        assert request == {
            **common,
            "name": existing_name,
            "operation": "UPDATE",
            "options": _options("Update", fieldValidation="Strict"),
        }
        applied = webhooks.body(admitted, f"{existing_name}x")
        apply = webhooks.send("PATCH", f"{path}x", applied, content_type=APPLY, fieldManager="me", **dry)
        request = _received_request(hook_server, apply)
        assert (request["operation"], request["options"]) == ("CREATE", _options("Create", fieldManager="me"))


def test_a_webhook_receives_the_deletion_that_kubernetes_sends(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, existing_name: str
) -> None:
    hook_server.respond_with(f"/{HOOK}", ALLOWED)
    path = f"{admitted.path}/{existing_name}"
    stored = webhooks.client.get(path).expect(200)
    with webhooks.in_force("Validating", webhooks.hook(HOOK)):
        wanted = {"propagationPolicy": "Background", "dryRun": ["All"]}
        request = _received_request(hook_server, webhooks.send("DELETE", path, wanted))
        assert _is_same_object(stored, request.pop("oldObject"))
        assert request == {
            **_common_fields(admitted),
            "name": existing_name,
            "operation": "DELETE",
            "object": None,
            "options": _options("Delete", propagationPolicy="Background"),
        }
        selector = {"labelSelector": f"webhooks={webhooks.labels['webhooks']}"}
        request = _received_request(hook_server, webhooks.send("DELETE", admitted.path, **selector, dryRun="All"))
        assert (request["operation"], "name" in request) == ("DELETE", False)
        assert _is_same_object(stored, request["oldObject"])


def _common_fields(admitted: AdmittedResource) -> dict[str, Any]:
    kind = {"group": admitted.group, "version": admitted.version, "kind": admitted.kind}
    resource = {"group": admitted.group, "version": admitted.version, "resource": admitted.plural}
    return {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "namespace": admitted.namespace,
        "dryRun": True,
    }


def _options(kind: str, **more: Any) -> dict[str, Any]:
    return {"kind": f"{kind}Options", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], **more}


def _is_same_object(stored: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """True if both are the same object; the status is ignored, since a Tenant gets conditions meanwhile."""
    return (old["metadata"]["uid"], old.get("spec")) == (stored["metadata"]["uid"], stored.get("spec"))


def test_mutations_are_stored_and_visible_to_later_webhooks(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, unique: str
) -> None:
    names = ["first.example.com", "second.example.com"]
    hook_server.respond_with(
        f"/{names[0]}",
        json_patch_response(
            {"op": "add", "path": "/metadata/annotations", "value": {"one": "1"}},
            {"op": "replace", "path": "/metadata/labels/new", "value": "yes"},
            {"op": "add", "path": "/unknown", "value": "dropped"},
        ),
    )
    hook_server.respond_with(
        f"/{names[1]}",
        lambda request: json_patch_response(
            {"op": "test", "path": "/metadata/annotations/one", "value": "1"},
            {"op": "add", "path": "/metadata/annotations/two", "value": request["object"]["metadata"]["labels"]["new"]},
        ),
    )
    with webhooks.in_force("Mutating", *(webhooks.hook(name) for name in names)):
        stored = webhooks.create(admitted, unique, dry=False).expect(201)
    assert stored["metadata"]["annotations"] == {"one": "1", "two": "yes"}
    assert stored["metadata"]["labels"]["new"] == "yes"
    assert "unknown" not in stored
    read = webhooks.client.get(f"{admitted.path}/{unique}").expect(200)
    assert read["metadata"]["annotations"] == {"one": "1", "two": "yes"}
    webhooks.send("DELETE", f"{admitted.path}/{unique}").expect(200)


def test_a_mutated_object_is_validated(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource
) -> None:
    hook_server.respond_with(
        f"/{HOOK}", json_patch_response({"op": "replace", "path": "/metadata/name", "value": "NOT A NAME"})
    )
    with webhooks.in_force("Mutating", webhooks.hook(HOOK)):
        answer = webhooks.create(admitted)
        assert (answer.status, answer.json()["reason"]) == (422, "Invalid")
        assert "metadata.name" in status_message(answer)
    hook_server.respond_with(
        f"/{HOOK}", json_patch_response({"op": "add", "path": "/metadata/labels/x", "value": "no value!"})
    )
    with webhooks.in_force("Mutating", webhooks.hook(HOOK)):
        assert 'metadata.labels: Invalid value: "no value!"' in status_message(webhooks.create(admitted))


def test_duplicate_owners_from_a_webhook_cause_a_warning(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource
) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
    hook_server.respond_with(
        f"/{HOOK}", json_patch_response({"op": "add", "path": "/metadata/ownerReferences", "value": [owner, owner]})
    )
    with webhooks.in_force("Mutating", webhooks.hook(HOOK)):
        answer = webhooks.create(admitted)
    assert answer.expect(201)["metadata"]["ownerReferences"] == [owner]
    text = (
        ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups "
        "owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
        "UID(s) observed: u"
    )
    assert answer.warnings == [f'299 - "{text}"']


@pytest.mark.parametrize(
    ("policies", "changing", "expected"),
    [
        pytest.param(("IfNeeded", "Never"), (1,), [0, 1, 0], id="a webhook with IfNeeded, after a later change"),
        pytest.param(("Never", "Never"), (1,), [0, 1], id="all webhooks with Never"),
        pytest.param(("IfNeeded", "Never"), (0,), [0, 1], id="a change by the webhook itself"),
        pytest.param(("IfNeeded", "IfNeeded"), (0, 1), [0, 1, 0, 1], id="only one more time"),
        pytest.param(("IfNeeded", "IfNeeded"), (), [0, 1], id="no change"),
    ],
)
def test_webhooks_are_reinvoked_if_needed(
    webhooks: Webhooks,
    hook_server: WebhookServer,
    admitted: AdmittedResource,
    policies: Sequence[str],
    changing: Sequence[int],
    expected: list[int],
) -> None:
    names = [f"h{index}.example.com" for index in range(len(policies))]
    for index, name in enumerate(names):
        key = f"/metadata/labels/h{index}"

        def respond(
            request: Mapping[str, Any], *, key: str = key, changes: bool = index in changing
        ) -> AdmissionResponse:
            value = str(int(request["object"]["metadata"]["labels"].get(key.rpartition("/")[2], "0")) + 1)
            return json_patch_response({"op": "add", "path": key, "value": value}) if changes else ALLOWED

        hook_server.respond_with(f"/{name}", respond)
    hooks = [webhooks.hook(name, reinvocationPolicy=policies[index]) for index, name in enumerate(names)]
    with webhooks.in_force("Mutating", *hooks):
        webhooks.create(admitted).expect(201)
    paths = [f"/{name}" for name in names]
    assert [paths.index(path) for path in in_call_order(hook_server, paths)] == expected


def test_a_deletion_cannot_be_patched(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, existing_name: str
) -> None:
    hook_server.respond_with(f"/{HOOK}", json_patch_response({"op": "add", "path": "/x", "value": 1}))
    with webhooks.in_force("Mutating", webhooks.hook(HOOK)):
        answer = webhooks.send("DELETE", f"{admitted.path}/{existing_name}", dryRun="All")
    assert answer.status == 500
    attempted = f'admission webhook "{HOOK}" attempted to modify the object'
    assert status_message(answer) == f"Internal error occurred: {attempted}, which is not supported for this operation"


def test_warnings_are_passed_on(webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource) -> None:
    hook_server.respond_with(f"/{HOOK}", {"allowed": True, "warnings": ["one", "t\nwo", 'th"ree']})
    for kind in ("Validating", "Mutating"):
        with webhooks.in_force(kind, webhooks.hook(HOOK)):
            answer = webhooks.create(admitted)
            answer.expect(201)
            assert answer.warnings == ['299 - "one"', '299 - "th\\"ree"']


def test_v1beta1_reviews_are_supported(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource
) -> None:
    patch = json_patch_response({"op": "add", "path": "/metadata/labels/x", "value": "y"})
    del patch["patchType"]
    hook_server.respond_with(f"/{HOOK}", {**patch, "uid": "whatever"})
    with webhooks.in_force("Mutating", webhooks.hook(HOOK, admissionReviewVersions=["v7", "v1beta1", "v1"])):
        assert webhooks.create(admitted).expect(201)["metadata"]["labels"]["x"] == "y"
    [call] = hook_server.calls(f"/{HOOK}")
    assert call.review["apiVersion"] == "admission.k8s.io/v1beta1"


@pytest.mark.parametrize("effects", ["Some", "Unknown"])
def test_a_webhook_with_side_effects_is_refused(webhooks: Webhooks, effects: str) -> None:
    """One that an earlier version has accepted rejects dry runs: tests/admission/webhook."""
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "effects"},
        "webhooks": [webhooks.hook(HOOK, sideEffects=effects)],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    [cause] = webhooks.client.request("POST", path, body).expect(422)["details"]["causes"]
    assert cause["field"] == "webhooks[0].sideEffects"
    assert cause["message"] == f'Unsupported value: "{effects}": supported values: "None", "NoneOnDryRun"'
