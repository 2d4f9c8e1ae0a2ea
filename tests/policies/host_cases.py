"""Cases of layers 3 and 4: writes of a Tenant's host, and of the host label of a Namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.policies.cases import HOST_LABEL, MASTERS, NAMESPACE_POLICY, TENANT_POLICY, Case

_ACCOUNTS = "system:serviceaccounts"
_TRUSTED = (
    "system:masters, system:serviceaccounts:cozy-system, system:serviceaccounts:cozy-cert-manager, "
    "system:serviceaccounts:cozy-fluxcd, system:serviceaccounts:kube-system"
)
_TENANT_DENIAL = (
    f"tenant.spec.host can only be set or changed by members of {_TRUSTED}; a tenant with an empty host "
    "inherits the apex of its parent, as <name>.<parent's apex>"
)
_NAMESPACE_DENIAL = (
    f"namespace label {HOST_LABEL} is immutable once set, and is only set, changed or removed by members of {_TRUSTED}"
)
_MAX_MESSAGE_BYTES = 5120
_NEAR_MISSES = (
    (_ACCOUNTS,),
    (f"{_ACCOUNTS}:",),
    (f"{_ACCOUNTS}:cozy-flux",),
    (f"{_ACCOUNTS}:cozy-fluxcd2",),
    (f"{_ACCOUNTS}:cozy-system:x",),
    (f"{_ACCOUNTS}:kube-public",),
    (f"{_ACCOUNTS}:cozy-dashboard",),
    ("system:serviceaccount:cozy-system",),
    ("cozystack-cluster-admin",),
    ("SYSTEM:MASTERS",),
    ("system:master", "masters"),
    ("kube-system", "cozy-system"),
)
Write = Callable[..., Case]
_LABELLED: Mapping[str, Any] = {"metadata": {"labels": {"some": "label"}}}
_EMPTY: Mapping[str, Any] = {}


def namespace_denial(user: str, wanted: str, present: str) -> str:
    return _NAMESPACE_DENIAL + _asked(user, wanted, present)


def _asked(user: str, wanted: str, present: str) -> str:
    return f'; user "{user}" asked for "{wanted}" instead of "{present}"'


def _denied_change(
    path: Sequence[str], new: Mapping[str, Any], *, old: Mapping[str, Any] | None = None, user: str = "alice", **_: Any
) -> str:
    """The end of a refusal; `new` is a merge patch of `old`, if there is one."""
    present = _value(old or {}, path)
    wanted = _value(new, path, absent=present)
    # of a longer message, Kubernetes shows the fixed part only
    return _asked(user, wanted, present) if len(wanted) < _MAX_MESSAGE_BYTES else ""


def _value(obj: Mapping[str, Any], path: Sequence[str], absent: str = "") -> str:
    """The value at the path; empty for null, and `absent` if the path is not there."""
    found: Any = obj
    for field in path:
        if not isinstance(found, Mapping) or field not in found:
            return absent
        if (found := found[field]) is None:
            return ""
    return str(found)


def _tenant(id: str, new: Mapping[str, Any], denial: bool = False, **more: Any) -> Case:
    return Case(
        id=f"Tenant: {id}",
        policy=TENANT_POLICY,
        group="apps.cozystack.io",
        version="v1alpha1",
        kind="Tenant",
        namespace="tenant-l",
        new=new,
        denial=_TENANT_DENIAL + _denied_change(("spec", "host"), new, **more) if denial else "",
        **more,
    )


def _namespace(id: str, new: Mapping[str, Any], denial: bool = False, **more: Any) -> Case:
    return Case(
        id=f"Namespace: {id}",
        policy=NAMESPACE_POLICY,
        group="",
        version="v1",
        kind="Namespace",
        new=new,
        denial=_NAMESPACE_DENIAL + _denied_change(("metadata", "labels", HOST_LABEL), new, **more) if denial else "",
        **more,
    )


def _spec(**fields: Any) -> Mapping[str, Any]:
    return {"spec": fields}


def _host(host: str | None) -> Mapping[str, Any]:
    return {"spec": {"host": host}}


def _label(value: str | None, **others: str) -> Mapping[str, Any]:
    return {"metadata": {"labels": {HOST_LABEL: value, **others}}}


def _shared_cases(case: Write, to: Callable[[str | None], Mapping[str, Any]]) -> Iterator[Case]:
    """The cases that both layers share; `to` makes the object or patch for a host."""
    for group in _TRUSTED.split(", "):
        yield case(f"{group} sets it", to("a.example.org"), groups=(group,))
        yield case(f"{group} changes it", to("b.example.org"), old=to("a.example.org"), groups=(group,))
    yield case("an administrator removes it", to(None), old=to("a.example.org"), groups=MASTERS)
    yield case("one trusted group among others", to("a.example.org"), groups=("x", "system:masters", "y"))
    yield case("the same value by anybody", to("a.example.org"), old=to("a.example.org"))
    yield case("still none by anybody", _LABELLED, old=_EMPTY)
    yield case("none by anybody", _EMPTY)
    yield case("an empty one by anybody", to(""))
    yield case("set to empty when there was none", to(""), old=_EMPTY)
    yield case("set", to("dashboard.example.org"), True)
    yield case("set later", to("dashboard.example.org"), True, old=_EMPTY)
    yield case("set when it was empty", to("a.example.org"), True, old=to(""))
    yield case("changed", to("b.example.org"), True, old=to("a.example.org"))
    yield case("changed to a subdomain", to("x.a.example.org"), True, old=to("a.example.org"))
    yield case("changed in case only", to("A.example.org"), True, old=to("a.example.org"))
    yield case("changed from upper case", to("a.example.org"), True, old=to("A.Example.org"))
    yield case("too long to repeat", to("a" * _MAX_MESSAGE_BYTES), True, rejected_by_schema=True)
    yield case("made empty", to(""), True, old=to("a.example.org"))
    yield case("removed", to(None), True, old=to("a.example.org"))
    for groups in _NEAR_MISSES:
        yield case(f"set by {' and '.join(groups)}", to("a.example.org"), True, groups=groups)
    account = "system:serviceaccount:cozy-system:x"
    yield case("set by one named like an account", to("a.example.org"), True, user=account)
    yield case("set by one named like a group", to("a.example.org"), True, user="system:masters")
    yield case(
        "changed by a near miss", to("b.example.org"), True, old=to("a.example.org"), groups=(f"{_ACCOUNTS}:cozy",)
    )


def _tenants() -> Iterator[Case]:
    yield from _shared_cases(_tenant, _host)
    yield _tenant("without spec", {})
    yield _tenant("with an empty spec", _spec())
    yield _tenant("other fields", _spec(etcd=True, isolated=True))
    yield _tenant("other fields beside a host", _spec(etcd=True, host="a.example.org"), True)
    yield _tenant("other fields while a host is there", _spec(etcd=True), old=_host("a.example.org"))
    yield _tenant("a label while a host is there", _LABELLED, old=_host("a.example.org"))
    yield _tenant("other fields where there is no spec", _spec(etcd=True), old=_EMPTY)
    yield _tenant("the host is removed with the spec", {"spec": None}, True, old=_host("a.example.org"))


def _namespaces() -> Iterator[Case]:
    yield from _shared_cases(_namespace, _label)
    yield _namespace("labels like it", {"metadata": {"labels": {"namespace.cozystack.io/hosts": "a", "host": "a"}}})
    yield _namespace("other labels", {"metadata": {"labels": {"namespace.cozystack.io/gateway": "tenant-a"}}})
    yield _namespace("other labels beside it", _label("a.example.org", some="x"), True)
    yield _namespace("another label while it is there", _LABELLED, old=_label("a.example.org"))
    yield _namespace("an annotation", {"metadata": {"annotations": {HOST_LABEL: "a.example.org"}}})
    yield _namespace("it is removed with all labels", {"metadata": {"labels": None}}, True, old=_label("a.example.org"))
    for subresource in ("status", "finalize"):
        to, old = _label("b.example.org"), _label("a.example.org")
        yield _namespace(f"changed through {subresource}", to, True, old=old, subresource=subresource)
        yield _namespace(f"removed through {subresource}", _label(None), True, old=old, subresource=subresource)
        yield _namespace(
            f"an administrator changes it through {subresource}", to, old=old, subresource=subresource, groups=MASTERS
        )
        yield _namespace(f"the same through {subresource}", _LABELLED, old=old, subresource=subresource)


def cases() -> Iterator[Case]:
    yield from _tenants()
    yield from _namespaces()
