"""The rights of a user: of another one than the asker, only groups that are given are known."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from apiserver.authorization.authorizer import AccessAttributes, AccessDenied, Decision
from apiserver.meta.errors import BadRequest
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.cluster.interface import ROLEBINDINGS, ROLES
from registry.explain.subject import parse_subject
from tests.registry.explain.explain_world import ALICE, Everything, ExplainWorld, Stored, metadata

_ROOT = Key("tenant-root", "root")
_TENANTS: dict[Key, dict[str, Any]] = {_ROOT: {}, ALICE: {}, Key("tenant-alice", "dev"): {}}
_ADMIN = User(name="admin", groups=("system:masters",))
_SELF = "cozy:tenant-self:alice"
_ACCESS: tuple[Stored, ...] = (
    (ROLES, {"metadata": metadata(_SELF, "tenant-root"), "rules": []}),
    (
        ROLEBINDINGS,
        {
            "metadata": metadata(_SELF, "tenant-root"),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": _SELF},
            "subjects": [
                {"kind": "Group", "name": f"tenant-alice-{each}", "apiGroup": "rbac.authorization.k8s.io"}
                for each in ("view", "admin")
            ],
        },
    ),
)


class Groups(Everything):
    """The asker may do all that is not `denied`, others only with the group tenant-alice-admin; everybody may list
    Tenants, which shows those that one may get."""

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        if attributes.user.name == _ADMIN.name:
            return await super().authorize(attributes)
        member = "tenant-alice-admin" in attributes.user.groups
        return Decision(allowed=member or attributes.verb in ("list", "watch"))


async def _ask(name: str, *groups: str, of: Key = ALICE, authorizer: Everything | None = None) -> Object:
    world = ExplainWorld(_TENANTS, _ACCESS, authorizer=authorizer or Groups())
    answer: Object = json.loads(await world.explain(f"user/{name}", of, user=_ADMIN, groups=groups))
    return answer


def _values(answer: Object) -> list[str]:
    return [each["value"] for each in answer["facts"] if "value" in each]


async def test_rights_are_not_denied_while_groups_are_unknown() -> None:
    answer = await _ask("eve")
    assert answer["verdict"] == "Unknown"
    assert answer["summary"] == (
        "by name alone, eve may not get tenant tenant-root/alice, and the groups of eve are not known; "
        "name them: kubectl tenant explain user eve --tenant alice -n tenant-root --group GROUP"
    )
    assert "by name alone, may not get, update, patch, delete this tenant" in _values(answer)


async def test_groups_that_are_given_count() -> None:
    answer = await _ask("eve", "tenant-alice-admin")
    assert (answer["verdict"], answer["about"]) == ("True", "user/eve")
    assert answer["summary"] == "eve may see tenant tenant-root/alice"
    assert "groups: tenant-alice-admin" in _values(answer)
    denied = await _ask("eve", "tenant-bob-admin")
    assert denied["verdict"] == "False"
    assert denied["summary"].startswith("eve may not get tenant tenant-root/alice; ")


async def test_the_remedy_is_a_group_of_the_tenant_and_not_of_its_parent() -> None:
    remedy = (await _ask("eve", "others"))["facts"][0]["remedy"]
    assert remedy == (
        "add eve to the group tenant-alice-view, or bind eve to the Role cozy:tenant-self:alice in tenant-root, "
        "which shows this tenant alone"
    )
    # the Role is told to those who may get it, and the name of the group has a fixed form
    hidden = await _ask("eve", "others", authorizer=Groups(denied=["roles", "rolebindings"]))
    assert hidden["facts"][0]["remedy"] == "add eve to the group tenant-alice-view"
    root = await _ask("eve", "others", of=_ROOT)
    assert root["facts"][0]["remedy"] == "add eve to the group tenant-root-view"
    bound = await _ask("eve", "tenant-alice-view")
    assert bound["facts"][0]["remedy"] == (
        "wait until the condition AccessReady of the tenant is True: its group tenant-alice-view has no access yet"
    )


async def test_lists_show_a_user_what_the_user_may_get() -> None:
    without = _values(await _ask("eve", "others"))
    assert "lists and watches leave this tenant out" in without
    assert "lists and watches have only those of its children that the user may get" in without
    assert not any("may list" in each for each in without)
    member = _values(await _ask("eve", "tenant-alice-admin"))
    assert "lists and watches have this tenant" in member
    assert "lists and watches have all of its children" in member


async def test_a_right_that_is_known_says_that_groups_may_add_others() -> None:
    answer = await _ask("eve", authorizer=Everything())
    assert answer["verdict"] == "True"
    [caveat] = [each for each in answer["facts"] if each["status"] == "Unknown"]
    assert caveat["value"] == "the groups of eve are not known: their rights come on top"


async def test_the_groups_of_an_account_are_known() -> None:
    answer = await _ask("system:serviceaccount:tenant-bob:default")
    assert answer["verdict"] == "False"


async def test_a_name_in_a_command_is_quoted() -> None:
    remedy = (await _ask("eve; id"))["facts"][0]["remedy"]
    assert "explain user 'eve; id' --tenant" in remedy


@pytest.mark.parametrize("name", ["\u202eevil", "a\u200b7'c\\n", "it's", "\U000e0041b"])
async def test_a_command_that_is_copied_names_the_same_user(name: str) -> None:
    """Nothing of it is escaped where it is printed."""
    remedy = (await _ask(name))["facts"][0]["remedy"]
    assert remedy.isprintable()
    command = remedy.removeprefix("name them: kubectl tenant explain ").removesuffix(" --group GROUP")
    shell = await asyncio.create_subprocess_exec(
        "bash", "-c", f"printf '%s\\0' {command}", stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await shell.communicate()
    assert printed.decode().split("\0")[:2] == ["user", name]


async def test_a_name_in_a_sentence_is_quoted() -> None:
    """A name may be a sentence of its own."""
    name = "eve to the group others, or bob"
    assert (await _ask(name, "others"))["facts"][0]["remedy"].startswith(
        f'add "{name}" to the group tenant-alice-view,'
    )
    assert 'groups: "a, b", c' in _values(await _ask("eve", "a, b", "c"))


async def test_groups_of_anybody_need_the_right_to_review_access() -> None:
    world = ExplainWorld(_TENANTS, _ACCESS, authorizer=Everything(denied=["subjectaccessreviews"]))
    assert json.loads(await world.explain("user/admin", user=_ADMIN))["verdict"] == "True"
    with pytest.raises(AccessDenied, match='cannot create resource "subjectaccessreviews"'):
        await world.explain("user/admin", user=_ADMIN, groups=["others"])


@pytest.mark.parametrize(
    ("about", "groups"),
    [
        ("tenant", ["a"]),
        ("host/example.org", ["a"]),
        ("user/eve", [""]),
        ("user/eve", ["a\nb"]),
        ("user/eve", ["a" * 1025]),
        ("user/eve", [str(each) for each in range(101)]),
    ],
)
def test_groups_of_another_form_are_bad_requests(about: str, groups: list[str]) -> None:
    with pytest.raises(BadRequest, match="group"):
        parse_subject(about, groups)
