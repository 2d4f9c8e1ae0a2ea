"""Cases of layer 2: listeners of Gateways and of ListenerSets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.policies.cases import (
    GATEWAY_GROUP,
    GATEWAY_POLICY,
    LISTENERSET_POLICY,
    MASTERS,
    Case,
    no_host_denial,
    outside_host_denial,
)

_SUBJECTS = {"Gateway": "Gateway listener hostname", "ListenerSet": "ListenerSet listener hostname"}
_POLICIES = {"Gateway": GATEWAY_POLICY, "ListenerSet": LISTENERSET_POLICY}
_LABEL = "a" * 60
_LONG = [f"{_LABEL}.{_LABEL}.{_LABEL}.n{number}.example.net" for number in range(40)]
_NAMELESS = (
    "ListenerSet listener hostname must equal the host of its namespace or be below it, and a listener has none: "
    "it would take every hostname of the Gateway"
)
Names = Sequence[str | None]


def _listener(number: int, hostname: str | None) -> Mapping[str, Any]:
    named = {} if hostname is None else {"hostname": hostname}
    return {"name": f"l{number}", "port": 80, "protocol": "HTTP", **named}


def _spec(kind: str, names: Names) -> Mapping[str, Any]:
    base = {"gatewayClassName": "cilium"} if kind == "Gateway" else {"parentRef": {"name": "cozystack"}}
    return {"spec": {**base, "listeners": [_listener(*each) for each in enumerate(names)]}}


def _case(
    kind: str, id: str, namespace: str, names: Names, denial: str = "", *, old: Names | None = None, **more: Any
) -> Case:
    before = None if old is None else _spec(kind, old)
    return Case(
        id=f"{kind}: {id}",
        policy=_POLICIES[kind],
        group=GATEWAY_GROUP,
        kind=kind,
        namespace=namespace,
        new=more.pop("new", None) or _spec(kind, names),
        old=before,
        version=more.pop("version", "v1"),
        denial=denial,
        **more,
    )


def _admitted(kind: str) -> Iterator[Case]:
    yield _case(kind, "the host itself", "tenant-l", ["example.org"])
    yield _case(kind, "below the host", "tenant-l", ["app.example.org"])
    yield _case(kind, "deep below the host", "tenant-l", ["a.b.c.d.example.org"])
    yield _case(kind, "everything below the host", "tenant-l", ["*.example.org"])
    yield _case(kind, "everything below a name", "tenant-l", ["*.app.example.org"])
    yield _case(kind, "a name like a label", "tenant-l", ["example.example.org"])
    yield _case(kind, "several", "tenant-l", ["example.org", "*.example.org", "x.y.example.org"])
    yield _case(kind, "a label in mixed case", "tenant-l-upper", ["example.org"])
    yield _case(kind, "below a label in mixed case", "tenant-l-upper", ["*.example.org", "app.example.org"])
    yield _case(kind, "a domain of its own", "tenant-l-own", ["customer1.example", "app.customer1.example"])
    yield _case(kind, "a deep host", "tenant-l-deep", ["a.b.example.org", "x.a.b.example.org"])
    yield _case(kind, "a host of one word", "tenant-l-word", ["example.org"])
    yield _case(kind, "any hostname in cozy-*", "cozy-l", ["attacker.com"])
    yield _case(kind, "any hostname in cozy-* with a host", "cozy-l-host", ["attacker.com"])
    yield _case(kind, "any hostname where tenant has no dash", "tenantl", ["attacker.com"])
    yield _case(kind, "any hostname in another namespace", "l", ["attacker.com"])
    yield _case(kind, "any hostname where tenant- is inside the name", "my-tenant-l", ["attacker.com"])
    yield _case(kind, "an update within the host", "tenant-l", ["new.example.org"], old=["old.example.org"])
    yield _case(kind, "an update of a label only", "tenant-l", [], old=["b.example.org"], new=_labelled())
    yield _case(kind, "an administrator", "tenant-l", ["app.example.org"], groups=MASTERS)
    yield _case(
        kind, "a hostname in mixed case", "tenant-l", ["App.Example.ORG", "EXAMPLE.org"], rejected_by_schema=True
    )


def _labelled() -> Mapping[str, Any]:
    return {"metadata": {"labels": {"some": "label"}}}


def _hostnames_outside(kind: str) -> Iterator[Case]:
    subject = _SUBJECTS[kind]
    for id, names in (
        ("the parent of the host", ["org"]),
        ("a sibling", ["example.com"]),
        ("another domain", ["attacker.com"]),
        ("a word before the host", ["evilexample.org"]),
        ("the host as a prefix", ["example.org.attacker.com"]),
        ("the host without its dot", ["app-example.org"]),
        ("everything below the parent", ["*.org"]),
        ("everything below a near miss", ["*.evilexample.org"]),
        ("a hostname in punycode", ["xn--exmple-cua.org"]),
    ):
        yield _case(kind, id, "tenant-l", names, outside_host_denial(subject, "example.org", *names))


def _rejected(kind: str) -> Iterator[Case]:
    yield from _hostnames_outside(kind)
    subject = _SUBJECTS[kind]
    foreign = outside_host_denial(subject, "example.org", "attacker.com")
    one = outside_host_denial(subject, "example.org", "attacker.com")
    yield _case(kind, "one bad among good", "tenant-l", ["a.example.org", "attacker.com", "example.org"], one)
    two = outside_host_denial(subject, "example.org", "attacker.com", "*.org")
    yield _case(
        kind, "two hostnames outside are listed in order", "tenant-l", ["attacker.com", "example.org", "*.org"], two
    )
    upper = outside_host_denial(subject, "example.org", "evilexample.org")
    yield _case(kind, "a near miss of a label in mixed case", "tenant-l-upper", ["evilexample.org"], upper)
    own = outside_host_denial(subject, "customer1.example", "app.example.org")
    yield _case(kind, "the platform's domain below one of its own", "tenant-l-own", ["app.example.org"], own)
    deep = outside_host_denial(subject, "a.b.example.org", "b.example.org")
    yield _case(kind, "the parent of a deep host", "tenant-l-deep", ["b.example.org"], deep)
    word = outside_host_denial(subject, "org", "anorg")
    yield _case(kind, "a near miss of a host of one word", "tenant-l-word", ["anorg"], word)
    for namespace in ("tenant-l-bare", "tenant-l-empty", "tenant-l-near"):
        yield _case(kind, f"a hostname in {namespace}", namespace, ["app.example.org"], no_host_denial(subject))
    yield _case(kind, "an administrator may not, either", "tenant-l", ["attacker.com"], foreign, groups=MASTERS)
    flux = ("system:serviceaccounts", "system:serviceaccounts:cozy-fluxcd")
    account = "system:serviceaccount:cozy-fluxcd:flux"
    refused = outside_host_denial(subject, "example.org", "attacker.com", user=account)
    yield _case(kind, "Flux may not, either", "tenant-l", ["attacker.com"], refused, user=account, groups=flux)
    yield _case(kind, "an update to outside", "tenant-l", ["attacker.com"], foreign, old=["old.example.org"])
    lost = no_host_denial(subject)
    yield _case(kind, "any update without a host", "tenant-l-bare", [], lost, old=["b.example.org"], new=_labelled())
    mixed = outside_host_denial(subject, "example.org", "evilexample.org")
    yield _case(kind, "a near miss in mixed case", "tenant-l", ["EvilExample.org"], mixed, rejected_by_schema=True)
    dot = no_host_denial(subject)
    yield _case(
        kind, "a trailing dot and an empty label", "tenant-l-empty", ["attacker.com."], dot, rejected_by_schema=True
    )
    dropped = f"{subject} must equal the host of its namespace or be below it"
    yield _case(kind, "too many to list", "tenant-l", _LONG, dropped)


def _of_gateways() -> Iterator[Case]:
    kind, subject = "Gateway", _SUBJECTS["Gateway"]
    foreign = outside_host_denial(subject, "example.org", "attacker.com")
    yield _case(kind, "a listener without hostname", "tenant-l", [None])
    yield _case(kind, "no hostname and no label", "tenant-l-bare", [None])
    yield _case(kind, "no hostname and an empty label", "tenant-l-empty", [None])
    yield _case(kind, "no hostname beside good ones", "tenant-l", [None, "a.example.org"])
    yield _case(kind, "no hostname beside a bad one", "tenant-l", [None, "attacker.com"], foreign)
    both = no_host_denial(subject)
    yield _case(kind, "no hostname beside one, no label", "tenant-l-bare", [None, "a.example.org"], both)
    yield _case(kind, "v1beta1, below the host", "tenant-l", ["app.example.org"], version="v1beta1")
    yield _case(kind, "v1beta1, another domain", "tenant-l", ["attacker.com"], foreign, version="v1beta1")
    yield _case(kind, "an update in v1beta1", "tenant-l", ["attacker.com"], foreign, old=[None], version="v1beta1")
    yield _case(kind, "a good update in v1beta1", "tenant-l", ["a.example.org"], old=[None], version="v1beta1")
    yield _case(kind, "a bad update without an old host", "tenant-l", ["attacker.com"], foreign, old=[None])


def _of_listener_sets() -> Iterator[Case]:
    kind = "ListenerSet"
    yield _case(kind, "a listener without hostname", "tenant-l", [None], _NAMELESS)
    yield _case(kind, "no hostname beside a good one", "tenant-l", ["a.example.org", None], _NAMELESS)
    yield _case(kind, "no hostname and no label", "tenant-l-bare", [None], no_host_denial(_SUBJECTS[kind]))
    yield _case(kind, "no hostname in cozy-*", "cozy-l", [None])


def cases() -> Iterator[Case]:
    for kind in _SUBJECTS:
        yield from _admitted(kind)
        yield from _rejected(kind)
    yield from _of_gateways()
    yield from _of_listener_sets()
