from __future__ import annotations

import pytest

from admission.tenant.cascade_permission import TenantCascadePermission, added_cascade
from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from tests.tenant_objects import attributes, tenant

PLAIN = tenant("a")
ANNOTATED = tenant("a", annotations={"tenant.cozystack.io/allow-cascading-deletion": "true"})
DECLINED = tenant("a", annotations={"tenant.cozystack.io/allow-cascading-deletion": "false"})
FOREGROUND = tenant("a", finalizers=["foregroundDeletion"])
ANNOTATION = "the annotation tenant.cozystack.io/allow-cascading-deletion"


class DeletionRight:
    def __init__(self, allowed: bool) -> None:
        self._allowed = allowed
        self.asked: list[tuple[str, str, str]] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        self.asked.append((attributes.verb, attributes.namespace, attributes.name))
        return Decision(allowed=self._allowed)


@pytest.mark.parametrize(
    ("new", "old", "added"),
    [
        pytest.param(ANNOTATED, PLAIN, ANNOTATION, id="the annotation"),
        pytest.param(ANNOTATED, DECLINED, ANNOTATION, id="a changed annotation"),
        pytest.param(ANNOTATED, None, ANNOTATION, id="the annotation of a new tenant"),
        pytest.param(FOREGROUND, PLAIN, "the finalizer foregroundDeletion", id="the finalizer"),
        pytest.param(FOREGROUND, ANNOTATED, "the finalizer foregroundDeletion", id="the finalizer in its place"),
        pytest.param(ANNOTATED, ANNOTATED, "", id="unchanged"),
        pytest.param(PLAIN, ANNOTATED, "", id="removed"),
        pytest.param(DECLINED, PLAIN, "", id="another value"),
    ],
)
def test_what_a_write_adds(new: Object, old: Object | None, added: str) -> None:
    assert added_cascade(new, old) == added


async def test_setting_up_a_cascading_deletion_needs_the_right_to_delete() -> None:
    request = attributes("UPDATE", ANNOTATED, PLAIN)
    right = DeletionRight(allowed=True)
    await TenantCascadePermission(authorizer=right).validate(request)
    assert right.asked == [("delete", "tenant-root", "a")]
    with pytest.raises(StatusError) as caught:
        await TenantCascadePermission(authorizer=DeletionRight(allowed=False)).validate(request)
    assert caught.value.code == 403
    assert f"cannot set {ANNOTATION} on a tenant that you can't delete" in caught.value.message


def test_other_writes_are_not_checked() -> None:
    plugin = TenantCascadePermission(authorizer=DeletionRight(allowed=False))
    assert not plugin.handles(attributes("UPDATE", ANNOTATED, ANNOTATED))
    assert not plugin.handles(attributes("DELETE", None, ANNOTATED))
