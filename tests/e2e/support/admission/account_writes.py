"""Sends the cases of our ServiceAccount to a cluster, as a member of system:masters with the account's name.

The writes are dry runs. The administrator creates the objects that they change or delete, under distinct names where
the deletion takes a while.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from apiserver.meta.resource import Object
from tests.e2e.support.admission.policies import BINDINGS, POLICIES
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.processes import REPOSITORY, wait_until
from tests.e2e.support.http.https_client import Response
from tests.policies.account.case import HELMRELEASES, NAMESPACE_KIND, NAMESPACES, SECRETS, AccountCase
from tests.policies.account.evaluation import LIMITS, whole
from tests.policies.account.table import CASES

_MANIFESTS = REPOSITORY / "manifests" / "base" / "limits"
_GROUPS = ("system:masters",)
_DRY_RUN = {"dryRun": "All"}


@contextmanager
def limited_account(cluster: E2eCluster) -> Iterator[AccountWrites]:
    """The limits are part of the installation on a kube-apiserver. The embedded cluster gets them for the tests."""
    writes = AccountWrites(cluster)
    installs = cluster.kind == "embedded"
    if installs:
        cluster.kubectl("apply", "--server-side", "-k", str(_MANIFESTS))
    try:
        writes.prepare()
        yield writes
    finally:
        for name in LIMITS if installs else ():
            cluster.client().request("DELETE", f"{BINDINGS}/{name}")
            cluster.client().request("DELETE", f"{POLICIES}/{name}")


class AccountWrites:
    def __init__(self, cluster: E2eCluster) -> None:
        self._cluster = cluster
        self._admin = cluster.client()
        self._numbers = count()

    def prepare(self) -> None:
        """Creates the namespaces of the cases, and waits until the limits are in force."""
        for name in NAMESPACES:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            answer = self._admin.request("POST", "/api/v1/namespaces", body)
            assert answer.status in (201, 409), answer.content
        refused = next(case for case in CASES if case.refusal and case.kind == SECRETS and case.operation == "CREATE")
        wait_until(
            "the limits are in force",
            lambda: self.refusal(refused) != "",
            seconds=60,
            processes=self._cluster.processes,
        )

    def refusal(self, case: AccountCase) -> str:
        """The message of the refusal by a limit, empty if the write is admitted. Any other answer is an error."""
        if case.old is not None and case.kind in (HELMRELEASES, NAMESPACE_KIND):
            case = replace(case, name=f"{case.name}{next(self._numbers)}")
        with self._existing(case):
            answer = self._write(case)
        message = str(answer.json().get("message", ""))
        if answer.status == 403 and "tenant-apiserver-limits-" in message:
            return message
        # a name that is taken was admitted
        assert answer.status in (200, 201) or answer.json()["reason"] == "AlreadyExists", answer.content
        return ""

    def _write(self, case: AccountCase) -> Response:
        account = self._cluster.client(case.user, _GROUPS)
        if case.old is None:
            return account.request("POST", self._collection(case), self._new(case), query=_DRY_RUN)
        path = self._path(case)
        if case.new is None:
            return account.request("DELETE", path, query=_DRY_RUN)
        while True:
            # a controller may change the object at any time
            live = self._admin.get(self._path(case)).expect(200)
            body = self._new(case)
            body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
            answer = account.request("PUT", f"{path}{case.subresource and '/'}{case.subresource}", body, query=_DRY_RUN)
            if answer.status != 409:
                return answer

    @contextmanager
    def _existing(self, case: AccountCase) -> Iterator[None]:
        if case.old is None:
            yield
            return
        old = whole(case, copy.deepcopy(case.old))
        answer = self._admin.request("POST", self._collection(case), old)
        if answer.status == 409:
            # the running server has written the object of that name
            yield
            return
        answer.expect(201)
        try:
            if case.subresource:
                changed = {key: value for key, value in old.items() if key == case.subresource}
                path = f"{self._path(case)}/{case.subresource}"
                self._admin.update(path, lambda live: {**live, **changed}).expect(200)
            yield
        finally:
            self._admin.request("DELETE", self._path(case))

    def _new(self, case: AccountCase) -> Object:
        assert case.new is not None
        return whole(case, copy.deepcopy(case.new))

    def _collection(self, case: AccountCase) -> str:
        kind = case.kind
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        return f"{root}/namespaces/{case.namespace}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"

    def _path(self, case: AccountCase) -> str:
        return f"{self._collection(case)}/{case.name}"
