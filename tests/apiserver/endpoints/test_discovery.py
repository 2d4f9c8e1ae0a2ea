"""The discovery documents, legacy and aggregated."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from apiserver.endpoints.discovery import Discovery, ServedGroup, ServedResource, ServedSubresource
from apiserver.meta import errors
from apiserver.meta.resource import Resource
from apiserver.request import request_info
from apiserver.request.context import RequestContext
from apiserver.request.request_info import Query

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def resource(group: str, version: str, kind: str, *, namespaced: bool = True, **more: Any) -> Resource:
    plural = f"{kind.lower()}s"
    return Resource(
        group=group, version=version, kind=kind, plural=plural, singular=kind.lower(), namespaced=namespaced, **more
    )


FLUNDER = resource("wardle.example.com", "v1alpha1", "Flunder", short_names=("fl",), categories=("all", "wardle"))
FISCHER = resource("wardle.example.com", "v1alpha1", "Fischer", namespaced=False)
SERVICE_ACCOUNT = resource("", "v1", "ServiceAccount", short_names=("sa",))
TOKEN_REQUEST = resource("authentication.k8s.io", "v1", "TokenRequest")

WARDLE = ServedGroup(
    "wardle.example.com",
    "v1alpha1",
    [
        ServedResource(FLUNDER, ALL_VERBS, (ServedSubresource("status", ("update", "get", "patch")),)),
        ServedResource(FISCHER, ("watch", "get", "list")),
    ],
)
CORE = ServedGroup(
    "",
    "v1",
    [ServedResource(SERVICE_ACCOUNT, ("get",), (ServedSubresource("token", ("create",), TOKEN_REQUEST),))],
)


async def answer(
    groups: list[ServedGroup], path: str, *, method: str = "GET", **headers: str
) -> tuple[web.Response, bytes]:
    response = await Discovery(groups).respond(context(path, method=method, **headers))
    assert response is not None
    body = response.body
    return response, body if isinstance(body, bytes) else b""


def context(path: str, *, method: str = "GET", **headers: str) -> RequestContext:
    http = make_mocked_request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    query = Query("")
    return RequestContext(
        http=http, info=request_info.parse_request_info(method, path, query), query=query, audit_id="a"
    )


async def document(groups: list[ServedGroup], path: str, **headers: str) -> Any:
    _, body = await answer(groups, path, **headers)
    return json.loads(body)


async def test_the_group_list_names_each_group_once_with_its_first_version_preferred() -> None:
    later = ServedGroup("wardle.example.com", "v1beta1", [])
    other = ServedGroup("apps.example.com", "v1", [])
    assert await document([WARDLE, other, later], "/apis") == {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {
                "name": "wardle.example.com",
                "versions": [
                    {"groupVersion": "wardle.example.com/v1alpha1", "version": "v1alpha1"},
                    {"groupVersion": "wardle.example.com/v1beta1", "version": "v1beta1"},
                ],
                "preferredVersion": {"groupVersion": "wardle.example.com/v1alpha1", "version": "v1alpha1"},
            },
            {
                "name": "apps.example.com",
                "versions": [{"groupVersion": "apps.example.com/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "apps.example.com/v1", "version": "v1"},
            },
        ],
    }


@pytest.mark.parametrize("path", ["/apis/wardle.example.com", "/apis/wardle.example.com/"])
async def test_a_group_is_described_with_and_without_a_trailing_slash(path: str) -> None:
    version = {"groupVersion": "wardle.example.com/v1alpha1", "version": "v1alpha1"}
    assert await document([WARDLE], path) == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "wardle.example.com",
        "versions": [version],
        "preferredVersion": version,
    }


@pytest.mark.parametrize("path", ["/apis/wardle.example.com/v1alpha1", "/apis/wardle.example.com/v1alpha1/"])
async def test_a_group_version_lists_resources_and_subresources_sorted(path: str) -> None:
    assert await document([WARDLE], path) == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "wardle.example.com/v1alpha1",
        "resources": [
            {
                "name": "fischers",
                "singularName": "fischer",
                "namespaced": False,
                "kind": "Fischer",
                "verbs": ["get", "list", "watch"],
            },
            {
                "name": "flunders",
                "singularName": "flunder",
                "namespaced": True,
                "kind": "Flunder",
                "verbs": list(ALL_VERBS),
                "shortNames": ["fl"],
                "categories": ["all", "wardle"],
            },
            {
                "name": "flunders/status",
                "singularName": "",
                "namespaced": True,
                "kind": "Flunder",
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


async def test_a_group_version_without_resources_lists_none_rather_than_null() -> None:
    listed = await document([ServedGroup("empty.example.com", "v1", [])], "/apis/empty.example.com/v1")
    assert listed["resources"] == []


async def test_a_subresource_of_another_group_lists_its_group_and_version() -> None:
    listed = await document([CORE], "/api/v1")
    assert listed["groupVersion"] == "v1"
    assert listed["resources"][1] == {
        "name": "serviceaccounts/token",
        "singularName": "",
        "namespaced": True,
        "group": "authentication.k8s.io",
        "version": "v1",
        "kind": "TokenRequest",
        "verbs": ["create"],
    }


async def test_the_core_group_is_under_api_and_not_in_the_group_list() -> None:
    assert (await document([CORE, WARDLE], "/api"))["versions"] == ["v1"]
    assert [group["name"] for group in (await document([CORE, WARDLE], "/apis"))["groups"]] == ["wardle.example.com"]


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/apis/unknown",
        "/apis/wardle.example.com/v2",
        "/apis//",
        "/",
        "/apis/wardle.example.com/v1alpha1//",
    ],
)
async def test_discovery_does_not_answer_other_paths(path: str) -> None:
    assert await Discovery([WARDLE]).respond(context(path)) is None


async def test_the_aggregated_document_names_every_kind_in_full() -> None:
    kind = {"group": "wardle.example.com", "version": "v1alpha1", "kind": "Flunder"}
    assert await document([WARDLE], "/apis", Accept=AGGREGATED) == {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": "wardle.example.com"},
                "versions": [
                    {
                        "version": "v1alpha1",
                        "freshness": "Current",
                        "resources": [
                            {
                                "resource": "fischers",
                                "responseKind": {**kind, "kind": "Fischer"},
                                "scope": "Cluster",
                                "singularResource": "fischer",
                                "verbs": ["get", "list", "watch"],
                            },
                            {
                                "resource": "flunders",
                                "responseKind": kind,
                                "scope": "Namespaced",
                                "singularResource": "flunder",
                                "verbs": list(ALL_VERBS),
                                "shortNames": ["fl"],
                                "categories": ["all", "wardle"],
                                "subresources": [
                                    {
                                        "subresource": "status",
                                        "responseKind": kind,
                                        "verbs": ["get", "patch", "update"],
                                    }
                                ],
                            },
                        ],
                    }
                ],
            }
        ],
    }


async def test_the_core_group_is_aggregated_under_api() -> None:
    [item] = (await document([CORE, WARDLE], "/api", Accept=AGGREGATED))["items"]
    assert item["metadata"] == {}
    assert item["versions"][0]["resources"][0]["subresources"] == [
        {
            "subresource": "token",
            "responseKind": {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"},
            "verbs": ["create"],
        }
    ]


async def test_the_aggregated_document_has_the_content_type_that_clients_compare() -> None:
    response, _ = await answer([WARDLE], "/apis", Accept=AGGREGATED)
    assert response.headers["Content-Type"] == AGGREGATED
    assert response.headers["Vary"] == "Accept"
    assert response.headers["Cache-Control"] == "public"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        pytest.param(f"{AGGREGATED},application/json", "APIGroupDiscoveryList", id="aggregated first"),
        pytest.param(f"{AGGREGATED};profile=nopeer,application/json", "APIGroupDiscoveryList", id="with a profile"),
        pytest.param(
            "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
            "APIGroupDiscoveryList",
            id="parameters in another order",
        ),
        pytest.param(
            f"{AGGREGATED.replace('v2', 'v2beta1')},application/json", "APIGroupList", id="only the removed version"
        ),
        pytest.param(f"{AGGREGATED.replace('v2', 'v2beta1')},{AGGREGATED}", "APIGroupDiscoveryList", id="v2 as second"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", "APIGroupList", id="after protobuf"),
        pytest.param(f"application/json,{AGGREGATED}", "APIGroupList", id="legacy first"),
        pytest.param("*/*", "APIGroupList", id="anything"),
        pytest.param("", "APIGroupList", id="no Accept header"),
    ],
)
async def test_the_accept_header_chooses_between_legacy_and_aggregated(accept: str, kind: str) -> None:
    assert (await document([WARDLE], "/apis", Accept=accept))["kind"] == kind


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        pytest.param("/apis", "text/html", id="an unsupported media type"),
        pytest.param("/apis", AGGREGATED.replace("v2", "v2beta1"), id="a version that was removed"),
        pytest.param("/apis", "application/json;as=Table;g=meta.k8s.io;v=v1", id="discovery has no table"),
        pytest.param("/apis/wardle.example.com/v1alpha1", AGGREGATED, id="only the roots are aggregated"),
    ],
)
async def test_an_unsupported_representation_is_not_acceptable(path: str, accept: str) -> None:
    with pytest.raises(errors.NotAcceptable, match="only the following media types are accepted: application/json"):
        await answer([WARDLE], path, Accept=accept)


async def test_documents_are_served_as_yaml() -> None:
    response, body = await answer([WARDLE], "/apis", Accept="application/yaml")
    assert response.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(body) == await document([WARDLE], "/apis")


async def test_legacy_documents_are_indented_for_human_readers() -> None:
    _, plain = await answer([WARDLE], "/apis")
    _, indented = await answer([WARDLE], "/apis", User_Agent="curl/8.0")
    assert plain.count(b"\n") == 1
    assert indented.startswith(b'{\n  "kind": "APIGroupList"')
    assert json.loads(indented) == json.loads(plain)


async def test_a_client_with_a_current_copy_gets_304_without_a_body() -> None:
    first, _ = await answer([WARDLE], "/apis", Accept=AGGREGATED)
    etag = first.headers["Etag"]
    assert etag.strip('"') == etag.strip('"').upper()
    assert len(etag) == 130
    second, body = await answer([WARDLE], "/apis", Accept=AGGREGATED, If_None_Match=etag)
    assert (second.status, body, second.headers["Etag"]) == (304, b"", etag)


async def test_the_etag_of_another_document_does_not_match() -> None:
    other, _ = await answer([CORE], "/apis", Accept=AGGREGATED)
    response, _ = await answer([WARDLE], "/apis", Accept=AGGREGATED, If_None_Match=other.headers["Etag"])
    assert response.status == 200


async def test_two_servers_with_the_same_resources_have_the_same_etag() -> None:
    turned = ServedGroup("wardle.example.com", "v1alpha1", list(reversed(WARDLE.resources)))
    one, _ = await answer([WARDLE], "/apis", Accept=AGGREGATED)
    two, _ = await answer([turned], "/apis", Accept=AGGREGATED)
    assert one.headers["Etag"] == two.headers["Etag"]


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_discovery_is_read_by_get_only(method: str) -> None:
    with pytest.raises(errors.MethodNotAllowed):
        await answer([WARDLE], "/apis", method=method)


def test_discovery_lists_the_paths_that_it_answers() -> None:
    assert Discovery([CORE, WARDLE]).paths() == [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/wardle.example.com",
        "/apis/wardle.example.com/v1alpha1",
    ]
