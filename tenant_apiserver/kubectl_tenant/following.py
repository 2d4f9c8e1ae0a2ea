"""Follows the tenants until the user ends it: also over restarts of the server, as the page does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tenant_apiserver.kubectl_tenant.requests import Kubectl, RequestFailed
from tenant_apiserver.kubectl_tenant.tables import printable

_FIRST_PAUSE, _LONGEST_PAUSE = 1, 15
"""Seconds."""


def follow(kubectl: Kubectl, show: Callable[[], None]) -> None:
    """Calls `show`, which lists the tenants, after each change and each failure, and does not return. Raises
    RequestFailed if the cluster refuses the user."""
    failures = 0
    while True:
        try:
            if failures:
                show()
            # the changes only say when to read again: the tree needs parents and children as well
            for _ in kubectl.changes("get", "tenants", "-A", "--watch-only", "--no-headers"):
                failures = 0
                show()
            failures = 0
            show()
        except RequestFailed as failure:
            if failure.is_denied or failure.is_unauthenticated:
                raise
            failures += 1
            pause = min(_FIRST_PAUSE * 2 ** (failures - 1), _LONGEST_PAUSE)
            print(f"note: trying again in {pause} s: {printable(failure.last_line)}", file=sys.stderr, flush=True)
            time.sleep(pause)
