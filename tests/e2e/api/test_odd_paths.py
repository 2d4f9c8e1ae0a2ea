"""Odd paths of a Tenant get the answer that kube-apiserver gives for the same path of a ConfigMap."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response

UNKNOWN = "the server could not find the requested resource"
CONFIGMAPS = f"/api/v1/namespaces/{ROOT}/configmaps"


def _missing(quoted: str) -> tuple[int, str]:
    return 404, f"{{}} {quoted} not found"


def _invalid(quoted: str, why: str) -> tuple[int, str]:
    return 400, f"Name parameter invalid: {quoted}: {why}"


# the code and message of kube-apiserver 1.36; {} is the resource with its group
OBJECTS = {
    "/x%2F..%2Fy": (404, UNKNOWN),
    "/x%2Fy": (404, UNKNOWN),
    "/x/../y": (404, UNKNOWN),
    "/x/..": (404, UNKNOWN),
    "/x/status/y": (404, UNKNOWN),
    "/x%2Fstatus%2Fy": (404, UNKNOWN),
    "//x": (404, UNKNOWN),
    "/%2Fx": (404, UNKNOWN),
    "/x/": _missing('"x"'),
    "/x//": _missing('"x"'),
    "/x%2F": _missing('"x"'),
    "%2Fx": _missing('"x"'),
    "/%00": _missing(r'"\x00"'),
    "/a%00b": _missing(r'"a\x00b"'),
    "/x%0Ay": _missing(r'"x\ny"'),
    "/x%20y": _missing('"x y"'),
    "/x%22y": _missing(r'"x\"y"'),
    "/x%3Fy": _missing('"x?y"'),
    "/x;y": _missing('"x;y"'),
    "/%c3%a4": _missing('"ä"'),
    "/..": _invalid('".."', "may not be '..'"),
    "/%2e%2e": _invalid('".."', "may not be '..'"),
    "/%2e": _invalid('"."', "may not be '.'"),
    "/x%25y": _invalid('"x%y"', "may not contain '%'"),
    "/x%252Fy": _invalid('"x%2Fy"', "may not contain '%'"),
}
LISTS = ["/", "//", "%2F"]


def _clients(cluster: E2eCluster) -> list[tuple[Client, str, str]]:
    """A client, the path of a collection, and its resource with the group: a ConfigMap shows what kube-apiserver
    answers on one cluster, our embedded one on the other; Tenants are requested through the aggregator and directly."""
    tenants = "tenants.apps.cozystack.io"
    return [
        (cluster.client(), CONFIGMAPS, "configmaps"),
        (cluster.client(), tenants_path(ROOT), tenants),
        (cluster.direct_client(), tenants_path(ROOT), tenants),
    ]


@pytest.mark.parametrize("odd", OBJECTS)
def test_an_odd_path_of_an_object_has_the_answer_of_kube_apiserver(cluster: E2eCluster, odd: str) -> None:
    code, message = OBJECTS[odd]
    for client, path, resource in _clients(cluster):
        for method in ("GET", "DELETE"):
            found = client.request(method, path + odd).expect(code)
            assert (found["kind"], found["message"]) == ("Status", message.format(resource))


@pytest.mark.parametrize("odd", ["/%ff", "/a%C0%AFb", "/%ed%a0%80"])
def test_an_object_whose_name_is_not_utf_8_does_not_exist(cluster: E2eCluster, odd: str) -> None:
    for client, path, _ in _clients(cluster):
        for method in ("GET", "DELETE"):
            found = client.request(method, path + odd).expect(404)
            assert (found["reason"], "\ufffd" in found["details"]["name"]) == ("NotFound", True)


@pytest.mark.parametrize("odd", LISTS)
def test_slashes_at_the_end_of_a_collection_are_ignored(cluster: E2eCluster, odd: str) -> None:
    for client, path, _ in _clients(cluster):
        assert client.get(path + odd).expect(200)["kind"].endswith("List")


def test_an_escaped_slash_before_a_subresource_is_a_slash(cluster: E2eCluster) -> None:
    for client in (cluster.client(), cluster.direct_client()):
        path = tenants_path(ROOT, "root")
        assert client.get(f"{path}%2Fstatus").expect(200)["metadata"]["name"] == "root"
        assert client.get(f"{GROUP_VERSION}/namespaces%2F{ROOT}/tenants/root").expect(200)["kind"] == "Tenant"
        assert client.request("DELETE", f"{path}%2Fstatus").status == 405


@pytest.mark.parametrize("odd", ["/%", "/%zz", "/x%2"])
def test_an_invalid_escape_is_a_bad_request(cluster: E2eCluster, odd: str) -> None:
    """The answer of Go's HTTP server, which is before kube-apiserver, is plain text."""
    for client, path, _ in _clients(cluster):
        assert client.get(path + odd).status == 400


def test_a_path_that_begins_with_two_slashes_is_not_found(cluster: E2eCluster) -> None:
    answers: list[Response] = [client.get(f"/{path}") for client, path, _ in _clients(cluster)]
    assert [each.status for each in answers] == [404, 404, 404]


@pytest.mark.parametrize("odd", ["/x%2F..%2Fy", "/%2e%2e", "/%00", "/%ff"])
def test_a_write_to_an_odd_path_is_rejected_like_in_kube_apiserver(cluster: E2eCluster, odd: str) -> None:
    codes = set()
    for client, path, _ in _clients(cluster):
        for method in ("PUT", "PATCH"):
            content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
            codes.add((method, client.request(method, path + odd, {}, content_type=content_type).status))
    assert len(codes) == 2, codes
    assert {code for _, code in codes} <= {400, 404}
