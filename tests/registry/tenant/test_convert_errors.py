from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, GroupResource, Key
from registry.cluster.interface import ClusterUnreachable
from registry.tenant.convert_errors import to_tenant_error

KEY = Key("tenant-root", "alice")
RELEASES = GroupResource("helm.toolkit.fluxcd.io", "helmreleases")
RELEASE_KIND = GroupKind("helm.toolkit.fluxcd.io", "HelmRelease")
TENANTS = GroupResource("apps.cozystack.io", "tenants")
TENANT_KIND = GroupKind("apps.cozystack.io", "Tenant")
_WHY = "Precondition failed: UID in precondition: a, UID in object meta: b"


def server_timeout(resource: GroupResource) -> StatusError:
    return StatusError(
        500,
        "ServerTimeout",
        f"The create operation against {resource} could not be completed at this time, please try again.",
        details={"group": resource.group, "kind": resource.resource},
        retry_after=2,
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(errors.NotFound(RELEASES, "tenant-alice"), errors.NotFound(TENANTS, "alice"), id="not found"),
        pytest.param(
            errors.AlreadyExists(RELEASES, "tenant-alice"), errors.AlreadyExists(TENANTS, "alice"), id="already exists"
        ),
        pytest.param(
            errors.AlreadyExists(RELEASES, "tenant-alice", deleting=True),
            errors.AlreadyExists(TENANTS, "alice", deleting=True),
            id="is being deleted",
        ),
        pytest.param(errors.Conflict(RELEASES, "tenant-alice"), errors.Conflict(TENANTS, "alice"), id="conflict"),
        pytest.param(server_timeout(RELEASES), server_timeout(TENANTS), id="timeout of the storage"),
        pytest.param(
            errors.Conflict(RELEASE_KIND, "tenant-alice", _WHY),
            errors.Conflict(TENANT_KIND, "alice", _WHY),
            id="a precondition, about the kind",
        ),
        pytest.param(
            errors.Forbidden(RELEASES, "tenant-alice", "no"), errors.Forbidden(TENANTS, "alice", "no"), id="forbidden"
        ),
        pytest.param(
            errors.Invalid(RELEASE_KIND, "tenant-alice", [errors.invalid("spec.values.host", 1, "bad")]),
            errors.Invalid(TENANT_KIND, "alice", [errors.invalid("spec.host", 1, "bad")]),
            id="invalid, with its causes",
        ),
    ],
)
def test_an_error_about_the_release_is_translated_to_the_tenant(error: StatusError, expected: StatusError) -> None:
    status: dict[str, Any] = error.status()
    translated = to_tenant_error(errors.from_status(status, error.code), KEY)
    assert translated.status() == expected.status()


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("etcdserver: request is too large", id="etcd"),
        pytest.param(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2900123 vs. 2097152)",
            id="gRPC",
        ),
    ],
)
def test_an_object_beyond_the_storage_limit_is_too_large(message: str) -> None:
    translated = to_tenant_error(StatusError(500, "", message), KEY)
    assert (translated.code, translated.reason) == (413, "RequestEntityTooLarge")
    assert translated.message == (
        'Request entity too large: tenants.apps.cozystack.io "alice" is larger than the cluster can store'
    )


@pytest.mark.parametrize("expected", [errors.NotFound, errors.AlreadyExists, errors.Conflict])
def test_translated_errors_have_the_class_of_their_reason(expected: type[StatusError]) -> None:
    error = expected(RELEASES, "tenant-alice")  # type: ignore[arg-type, call-arg]
    assert type(to_tenant_error(errors.from_status(error.status(), 0), KEY)) is expected


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(errors.NotFound(GroupResource("", "namespaces"), "tenant-x"), id="about the namespace"),
        pytest.param(errors.NotFound(RELEASES, "tenant-bob"), id="about another release"),
        pytest.param(errors.UnknownPath(), id="about a path"),
        pytest.param(ClusterUnreachable(), id="no response"),
        pytest.param(errors.TooManyRequests("slow down", retry_after=3), id="about the load"),
        pytest.param(StatusError(500, "InternalError", "etcdserver: leader changed"), id="an internal error"),
    ],
)
def test_other_errors_are_returned_unchanged(error: StatusError) -> None:
    assert to_tenant_error(error, KEY) is error
