"""Nobody learns through the proxy whether an object exists that they may not get: neither by an answer, nor by the time
that it takes."""

from __future__ import annotations

import re

import pytest

from tenant_apiserver.proxy.merged.continue_token import MergedToken, encode_merged_token
from tests.e2e.proxy.test_merged_lists import CONFIGMAPS, create, grant, keys
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.durations import measure_until_equal, take_equally_long
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects, user_subject

NAMESPACES = "/api/v1/namespaces"


def _continue_in(namespace: str) -> str:
    return encode_merged_token(MergedToken("1", namespace, "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"))


PATHS = [
    pytest.param(NAMESPACES + "/{0}", 403, id="a namespace"),
    pytest.param(NAMESPACES + "/{0}/configmaps", 403, id="its objects"),
    pytest.param(NAMESPACES + "/{0}/configmaps/a", 403, id="an object"),
    pytest.param(NAMESPACES + "?fieldSelector=metadata.name%3D{0}", 200, id="namespaces by field"),
    pytest.param(NAMESPACES + "?labelSelector=kubernetes.io/metadata.name%3D{0}", 200, id="namespaces by label"),
    pytest.param(CONFIGMAPS + "?fieldSelector=metadata.namespace%3D{0}", 200, id="a merged list by field"),
    pytest.param("{token}", 410, id="a merged list by continue token"),
]


@pytest.mark.parametrize(("path", "status"), PATHS)
def test_hidden_and_missing_take_equally_long_and_get_the_same_answer(
    cluster: E2eCluster,
    proxy: TenantProxy,
    tenants: Tenants,
    access: RbacObjects,
    unique: str,
    path: str,
    status: int,
) -> None:
    own, hidden = sorted(tenants.create_with_namespace() for _ in range(2))
    # the same length, and the same place in the order of names
    missing = hidden[:-1] + ("0" if hidden[-1] != "0" else "1")
    create(tenants, own, "a")
    create(tenants, hidden, "a")
    grant(access, unique, own)
    access.bind(f"{unique}-view", own, user_subject(unique))
    client = proxy.client(unique)
    cluster.wait_until("the lists are answered", lambda: keys(client) == [(own, "a")])
    cluster.wait_until("the namespaces, too", lambda: client.get(NAMESPACES).status == 200)
    hidden_path, missing_path = (
        path.format(name, token=f"{CONFIGMAPS}?limit=1&continue={_continue_in(name)}") for name in (hidden, missing)
    )
    answers = [client.get(each) for each in (hidden_path, missing_path)]
    assert [each.status for each in answers] == [status, status], [each.content for each in answers]
    assert _without(hidden, answers[0].content) == _without(missing, answers[1].content)
    durations = measure_until_equal(client, "GET", hidden_path, missing_path)
    assert take_equally_long(*durations), durations


def _without(name: str, content: bytes) -> bytes:
    """Without the version, too: other tests write meanwhile."""
    return re.sub(rb'"resourceVersion":"\d+"', b"", content.replace(name.encode(), b"NAME"))
