from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from admission.tenant.claims.tenant_deleter import needs_mark
from registry.tenant.summary import TenantSummary
from tests.tenant_objects import root_summary, tenant_summary

TENANT = tenant_summary("p")


@pytest.mark.parametrize(
    ("tenant", "options", "expected"),
    [
        pytest.param(TENANT, {}, True, id="a deletion"),
        pytest.param(TENANT, {"propagationPolicy": "Background"}, True, id="a deletion in the background"),
        pytest.param(TENANT, {"propagationPolicy": "Orphan"}, True, id="a deletion that orphans"),
        pytest.param(TENANT, {"propagationPolicy": "Foreground"}, False, id="a deletion in the foreground"),
        pytest.param(replace(TENANT, foreground=True), {}, False, id="a tenant with the finalizer of the foreground"),
        pytest.param(replace(TENANT, allow_cascade=True), {}, False, id="a tenant that allows it"),
        pytest.param(replace(TENANT, terminating=True), {}, False, id="a second deletion"),
        pytest.param(root_summary(), {}, False, id="the root, which is never deleted"),
    ],
)
def test_a_deletion_needs_a_mark_if_a_child_could_be_created_meanwhile(
    tenant: TenantSummary, options: Mapping[str, Any], expected: bool
) -> None:
    assert needs_mark(tenant, options) is expected
