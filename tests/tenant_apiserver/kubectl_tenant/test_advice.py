"""An output that is empty advises only what the user may do."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Key, Object
from tenant_apiserver.kubectl_tenant.advice import no_hosts, no_quotas, no_readers, no_tenants


class _Rights:
    """Everything of the form `verb resource namespace`."""

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    def may(self, verb: str, group: str, resource: str, namespace: str) -> bool:
        assert "." in group
        return f"{verb} {resource} {namespace}" in self._allowed


def _tenant(name: str, namespace: str, workload: str, gateway: str = "") -> Object:
    status = {"namespace": workload, "gateway": {"namespace": gateway, "value": bool(gateway)}}
    return {"metadata": {"name": name, "namespace": namespace}, "status": status}


_ROOT = _tenant("root", "tenant-root", "tenant-root")
_ALICE = _tenant("alice", "tenant-root", "tenant-alice")
_DEV = _tenant("dev", "tenant-alice", "tenant-alice-dev")
_SERVED = _tenant("carol", "tenant-root", "tenant-carol", gateway="tenant-root")


def test_without_a_visible_tenant_the_advice_is_to_ask_for_a_role() -> None:
    assert no_tenants(_Rights(), [], "") == (
        "No tenant that you may see. Ask an administrator for a Role such as cozy:tenant:view in the namespace of the "
        "tenant's parent, and check with\n  kubectl auth can-i get tenants/NAME -n NAMESPACE\n"
    )


@pytest.mark.parametrize(
    ("tenants", "namespace", "place", "said"),
    [
        ([], "", "tenant-root", "No tenant that you may see."),
        ([_ALICE], "tenant-alice", "tenant-alice", "No tenant that you may see is in namespace tenant-alice."),
    ],
)
def test_a_user_who_may_create_tenants_gets_a_command_that_needs_no_file(
    tenants: list[Object], namespace: str, place: str, said: str
) -> None:
    text = no_tenants(_Rights(f"create tenants {place}"), tenants, namespace)
    assert text.startswith(f"{said} Create one:\n  echo '{{")
    assert f'"namespace": "{place}"}}}}\' | kubectl create -f -\n' in text


def test_another_user_gets_no_command_to_create() -> None:
    assert no_tenants(_Rights(), [_ALICE], "tenant-alice") == (
        "No tenant that you may see is in namespace tenant-alice.\n"
    )


@pytest.mark.parametrize(
    ("allowed", "tenants", "expected"),
    [
        (
            ["patch tenants tenant-root"],
            [_DEV, _ALICE, _ROOT],
            (
                "None of the tenants that you may see declares a quota. Set spec.resourceQuotas, such as\n"
                "  kubectl patch tenant alice -n tenant-root --type merge "
                '-p \'{"spec":{"resourceQuotas":{"requests.cpu":"4"}}}\'\n'
            ),
        ),
        (
            [],
            [_DEV],
            (
                "tenant-alice/dev declares no quota. An administrator of namespace tenant-alice can set "
                "spec.resourceQuotas.\n"
            ),
        ),
    ],
)
def test_without_a_quota_only_those_who_may_declare_one_are_told_how(
    allowed: list[str], tenants: list[Object], expected: str
) -> None:
    assert no_quotas(_Rights(*allowed), tenants) == expected


@pytest.mark.parametrize(
    ("allowed", "tenants", "expected"),
    [
        pytest.param(
            ["patch tenants tenant-root"],
            [_ROOT, _ALICE],
            "No Gateway serves any of the tenants. Set spec.gateway, such as\n"
            '  kubectl patch tenant alice -n tenant-root --type merge -p \'{"spec":{"gateway":true}}\'\n',
            id="may set the gateway",
        ),
        pytest.param(
            [],
            [_ALICE],
            "No Gateway serves tenant-root/alice. An administrator of namespace tenant-root can set spec.gateway.\n",
            id="may not set the gateway",
        ),
        pytest.param(
            [],
            [_ALICE, _SERVED],
            "You may not list httproutes in tenant-carol: ask an administrator for a Role that has this right, such as "
            "cozy:tenant:view.\n",
            id="may not list routes",
        ),
        pytest.param(
            ["list httproutes tenant-carol"],
            [_SERVED],
            "You may not create any in tenant-carol: an administrator can allow that by cozy:tenant:routes.\n",
            id="may not create routes",
        ),
        pytest.param(
            ["list httproutes tenant-carol", "create httproutes tenant-carol"],
            [_SERVED],
            "Create an HTTPRoute in tenant-carol, with a hostname of that tenant.\n",
            id="may create routes",
        ),
    ],
)
def test_without_a_hostname_the_next_step_is_one_that_the_user_may_take(
    allowed: list[str], tenants: list[Object], expected: str
) -> None:
    assert no_hosts(_Rights(*allowed), tenants) == f"No route with a hostname that you may see. {expected}"


def test_without_readers_only_those_who_may_bind_are_told_how() -> None:
    said = "No binding that you may see lets anybody get the tenant."
    key = Key("tenant-root", "alice")
    assert no_readers(_Rights(), key) == f"{said}\n"
    assert no_readers(_Rights("create rolebindings tenant-root"), key) == (
        f"{said} Bind somebody with\n"
        "  kubectl create rolebinding NAME -n tenant-root --clusterrole=cozy:tenant:view --group=GROUP\n"
    )
