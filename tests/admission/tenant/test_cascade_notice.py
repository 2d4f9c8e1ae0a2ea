"""A value of the annotation that allows nothing is admitted with a Warning."""

from __future__ import annotations

import pytest

from admission.tenant.cascade_notice import CascadeNotice
from apiserver.meta.resource import Object
from registry.names import CASCADE_ANNOTATION
from tests.tenant_objects import attributes, tenant


def annotated(value: str | None) -> Object:
    found = tenant("alpha")
    if value is not None:
        found["metadata"]["annotations"] = {CASCADE_ANNOTATION: value}
    return found


@pytest.mark.parametrize(
    ("value", "old", "quoted"),
    [
        pytest.param(None, None, "", id="no annotation"),
        pytest.param("true", None, "", id="allowed"),
        pytest.param("yes", None, '"yes"', id="another value"),
        pytest.param("True", "true", '"True"', id="capitals"),
        pytest.param("", "true", '""', id="empty"),
        pytest.param("yes", "yes", "", id="unchanged"),
        pytest.param(None, "yes", "", id="removed"),
        pytest.param("x" * 4000, None, '"' + "x" * 32 + '"', id="long"),
    ],
)
async def test_only_a_new_value_without_effect_is_warned_of(value: str | None, old: str | None, quoted: str) -> None:
    request = attributes("CREATE", annotated(value), None)
    if old is not None:
        request = attributes("UPDATE", annotated(value), annotated(old))
    plugin = CascadeNotice()
    assert plugin.handles(request)
    await plugin.validate(request)
    expected = (
        f"metadata.annotations[tenant.cozystack.io/allow-cascading-deletion]: the value {quoted} has no effect; "
        'only "true" allows that child tenants are deleted with the tenant'
    )
    assert request.context.warnings == ([expected] if quoted else [])
