"""kube-apiserver's audit log of the requests of our ServiceAccount."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ACCOUNT = "system:serviceaccount:cozy-system:tenant-apiserver"
SHADOW = "system:serviceaccount:cozy-system:tenant-apiserver-shadow"
OPERATOR = "operator"
"""The user who runs our commands for operators."""
PROXY = "proxy-account"
"""The user with whose rights `tenant-apiserver proxy` runs."""
SERVER = "tenant-apiserver"
"""The User-Agent of our server. Tests that try what the account may not do use another one."""
LIMITS = "tenant-apiserver-limits-"
POLICY = yaml.safe_dump(
    {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [ACCOUNT, SHADOW, OPERATOR, PROXY]}, {"level": "None"}],
    }
)


class Use(NamedTuple):
    """A request that was allowed. `resource` may be a subresource, such as `httproutes/status`."""

    group: str
    resource: str
    verb: str
    namespace: str
    name: str


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The events so far; a line that is still being written is left out."""
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)


def uses(path: Path) -> set[Use]:
    """The requests of our server that were authorized, including those that failed later."""
    found = set()
    for event in events(path):
        reference = event.get("objectRef", {})
        if (
            event.get("userAgent") != SERVER
            or event["user"]["username"] == PROXY
            or event["responseStatus"].get("code") in (401, 403)
            or not reference
        ):
            continue
        subresource = reference.get("subresource", "")
        found.add(
            Use(
                reference.get("apiGroup", ""),
                f"{reference['resource']}/{subresource}" if subresource else reference["resource"],
                event["verb"],
                reference.get("namespace", ""),
                reference.get("name", ""),
            )
        )
    return found


def own_requests_of_proxy(path: Path) -> set[tuple[str, str]]:
    """The verbs with their resources of all requests of the proxy's account that impersonate nobody."""
    own = [each for each in events(path) if each["user"]["username"] == PROXY and "impersonatedUser" not in each]
    return {(each["verb"], each.get("objectRef", {}).get("resource", "")) for each in own}


def verbs_of(path: Path, user: str) -> set[tuple[str, str]]:
    """The verbs with their resources of all requests of a user."""
    of_user = [event for event in events(path) if event["user"]["username"] == user]
    return {(event["verb"], event.get("objectRef", {}).get("resource", "")) for event in of_user}


def refused_by_own_limits(path: Path) -> list[str]:
    """The messages of writes of our server that the policies for its account have refused."""
    statuses = (event["responseStatus"] for event in events(path) if event.get("userAgent") == SERVER)
    messages = (status.get("message", "") for status in statuses if status.get("code") == 403)
    return sorted({message for message in messages if LIMITS in message})
