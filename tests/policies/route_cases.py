"""Cases of layer 5: hostnames of routes. They are the same for each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tests.policies.cases import GATEWAY_GROUP, MASTERS, ROUTE_POLICY, Case, no_host_denial, outside_host_denial

_KINDS = {"HTTPRoute": "", "TLSRoute": "-tls", "GRPCRoute": "-grpc"}
# versions in which hostnames are optional
_VERSIONS = {"HTTPRoute": "v1", "TLSRoute": "v1alpha2", "GRPCRoute": "v1"}
_RULES = {"rules": [{"backendRefs": [{"name": "app", "port": 443}]}]}
_GATEWAY = {"name": "cozystack", "namespace": "tenant-root"}
_HTTP = {**_GATEWAY, "sectionName": "http"}
_HTTPS = {**_GATEWAY, "sectionName": "https"}
_LABELLED = {"metadata": {"labels": {"some": "label"}}}
_MANY = [f"{'a' * 60}.{'b' * 60}.n{number}.example.net" for number in range(50)]
Parents = Sequence[Mapping[str, str]]
_ATTACHED: Parents = [_GATEWAY]


def _spec(hostnames: Sequence[str] | None, parents: Parents | None, more: Mapping[str, Any]) -> Mapping[str, Any]:
    named = {} if hostnames is None else {"hostnames": hostnames}
    attached = {} if parents is None else {"parentRefs": parents}
    return {"spec": {**_RULES, **named, **attached, **more}}


def _case(
    kind: str,
    id: str,
    namespace: str,
    hostnames: Sequence[str] | None,
    denial: str = "",
    *,
    parents: Parents | None = _ATTACHED,
    old: Sequence[str] | None = None,
    spec: Mapping[str, Any] | None = None,
    **more: Any,
) -> Case:
    return Case(
        id=f"{kind}: {id}",
        policy=ROUTE_POLICY + _KINDS[kind],
        group=GATEWAY_GROUP,
        kind=kind,
        namespace=namespace,
        new=more.pop("new", None) or _spec(hostnames, parents, spec or {}),
        old=None if old is None else _spec(old, _ATTACHED, {}),
        version=more.pop("version", _VERSIONS[kind]),
        denial=denial,
        **more,
    )


def _route(kind: str) -> Mapping[str, str]:
    """A parentRef to a route."""
    return {"kind": kind, "name": "www", "namespace": "tenant-root"}


def no_hostnames_denial(kind: str) -> str:
    article = "an" if kind == "HTTPRoute" else "a"
    return (
        f"{kind} hostnames must equal the host of its namespace or be below it, and there are none: the route would "
        f"take every listener's hostname. Only a route of which each parentRef names section http, or each {article} "
        f"{kind}, may do without"
    )


def _admitted(kind: str) -> Iterator[Case]:
    yield _case(kind, "the host itself", "tenant-l", ["example.org"])
    yield _case(kind, "below the host", "tenant-l", ["harbor.example.org"])
    yield _case(kind, "deep below the host", "tenant-l", ["a.b.c.example.org"])
    yield _case(kind, "everything below the host", "tenant-l", ["*.example.org"])
    yield _case(kind, "everything below a name", "tenant-l", ["*.foo.example.org"])
    yield _case(kind, "several", "tenant-l", ["example.org", "a.example.org", "*.b.example.org"])
    yield _case(kind, "a label in mixed case", "tenant-l-upper", ["example.org"])
    yield _case(kind, "below a label in mixed case", "tenant-l-upper", ["a.example.org"])
    yield _case(kind, "a domain of its own", "tenant-l-own", ["app.customer1.example"])
    yield _case(kind, "a deep host", "tenant-l-deep", ["x.a.b.example.org"])
    yield _case(kind, "attached to nothing", "tenant-l", ["a.example.org"], parents=None)
    yield _case(kind, "a hostname on section http", "tenant-l", ["a.example.org"], parents=[_HTTP])
    yield _case(kind, "no hostnames on section http", "tenant-l", None, parents=[_HTTP])
    yield _case(kind, "no hostnames on http of two Gateways", "tenant-l", None, parents=[_HTTP, {**_HTTP, "name": "b"}])
    above = _route(kind)
    yield _case(kind, "no hostnames, delegated", "tenant-l", None, parents=[above])
    yield _case(kind, "no hostnames, delegated by group", "tenant-l", None, parents=[{**above, "group": GATEWAY_GROUP}])
    yield _case(kind, "no hostnames, delegated by two", "tenant-l", None, parents=[above, {**above, "name": "b"}])
    default = {"useDefaultGateways": "None"}
    yield _case(kind, "no hostnames, delegated, no default", "tenant-l", None, parents=[above], spec=default)
    yield _case(kind, "no hostnames, no default Gateways", "tenant-l", None, parents=[_HTTP], spec=default)
    every = {"useDefaultGateways": "All"}
    yield _case(kind, "a hostname on default Gateways", "tenant-l", ["a.example.org"], parents=None, spec=every)
    yield _case(kind, "any hostname in cozy-*", "cozy-l", ["attacker.com"])
    yield _case(kind, "no hostnames in cozy-*", "cozy-l", None)
    yield _case(kind, "any hostname in cozy-* with a host", "cozy-l-host", ["attacker.com"])
    yield _case(kind, "any hostname where tenant has no dash", "tenantl", ["attacker.com"])
    yield _case(kind, "any hostname in another namespace", "l", ["attacker.com"])
    yield _case(kind, "any hostname where tenant- is inside the name", "my-tenant-l", ["attacker.com"])
    yield _case(kind, "an update within the host", "tenant-l", ["new.example.org"], old=["old.example.org"])
    yield _case(kind, "an update of a label only", "tenant-l", None, old=["b.example.org"], new=_LABELLED)
    yield _case(
        kind, "a hostname in mixed case", "tenant-l", ["App.Example.ORG", "EXAMPLE.org"], rejected_by_schema=True
    )


def _rejected(kind: str) -> Iterator[Case]:
    subject = f"{kind} hostnames"
    foreign = outside_host_denial(subject, "example.org", "attacker.com")
    for id, names in (
        ("another domain", ["attacker.com"]),
        ("the parent of the host", ["org"]),
        ("below the parent", ["other.org"]),
        ("a word before the host", ["evilexample.org"]),
        ("the host as a prefix", ["example.org.attacker.com"]),
        ("the host without its dot", ["app-example.org"]),
        ("everything below the parent", ["*.org"]),
        ("everything below a near miss", ["*.evilexample.org"]),
        ("a hostname in punycode", ["xn--exmple-cua.org"]),
        ("two hostnames outside are listed in order", ["attacker.com", "*.org"]),
    ):
        yield _case(kind, id, "tenant-l", names, outside_host_denial(subject, "example.org", *names))
    yield _case(kind, "one bad among good", "tenant-l", ["a.example.org", "attacker.com", "example.org"], foreign)
    upper = outside_host_denial(subject, "example.org", "evilexample.org")
    yield _case(kind, "a near miss of a label in mixed case", "tenant-l-upper", ["evilexample.org"], upper)
    own = outside_host_denial(subject, "customer1.example", "app.example.org")
    yield _case(kind, "the platform's domain below one of its own", "tenant-l-own", ["app.example.org"], own)
    deep = outside_host_denial(subject, "a.b.example.org", "b.example.org")
    yield _case(kind, "the parent of a deep host", "tenant-l-deep", ["b.example.org"], deep)
    for namespace in ("tenant-l-bare", "tenant-l-empty", "tenant-l-near"):
        yield _case(kind, f"a hostname in {namespace}", namespace, ["app.example.org"], no_host_denial(subject))
        on_http: Parents = [_HTTP]
        yield _case(kind, f"no hostnames in {namespace}", namespace, None, no_host_denial(subject), parents=on_http)
    yield _case(kind, "a hostname outside on section http", "tenant-l", ["attacker.com"], foreign, parents=[_HTTP])
    yield _case(kind, "an administrator may not, either", "tenant-l", ["attacker.com"], foreign, groups=MASTERS)
    yield _case(kind, "an update to outside", "tenant-l", ["attacker.com"], foreign, old=["old.example.org"])
    lost = no_host_denial(subject)
    yield _case(kind, "any update without a host", "tenant-l-bare", None, lost, old=["b.example.org"], new=_LABELLED)
    mixed = outside_host_denial(subject, "example.org", "evilexample.org")
    yield _case(kind, "a near miss in mixed case", "tenant-l", ["EvilExample.org"], mixed, rejected_by_schema=True)
    yield _case(
        kind, "a trailing dot and an empty label", "tenant-l-empty", ["attacker.com."], lost, rejected_by_schema=True
    )
    dropped = f"{subject} must equal the host of its namespace or be below it"
    yield _case(kind, "too many to list", "tenant-l", _MANY, dropped, rejected_by_schema=True)
    yield from _without_hostnames(kind)


def _without_hostnames(kind: str) -> Iterator[Case]:
    denial = no_hostnames_denial(kind)
    yield _case(kind, "no hostnames on every section", "tenant-l", None, denial)
    yield _case(kind, "no hostnames, attached to nothing", "tenant-l", None, denial, parents=None)
    yield _case(kind, "no hostnames on section https", "tenant-l", None, denial, parents=[_HTTPS])
    yield _case(kind, "no hostnames, not only on http", "tenant-l", None, denial, parents=[_HTTP, _HTTPS])
    above, other_kind = _route(kind), "HTTPRoute" if kind == "GRPCRoute" else "GRPCRoute"
    near = {**_GATEWAY, "sectionName": "http-a"}
    yield _case(kind, "no hostnames on a section like http", "tenant-l", None, denial, parents=[near])
    for id, other in (
        ("a Gateway", _GATEWAY),
        ("section http", _HTTP),
        ("a Service", {"group": "", "kind": "Service", "name": "www"}),
        ("a route of another kind", {**above, "kind": other_kind}),
        ("a TenantGateway", {"group": "gateway.cozystack.io", "kind": "TenantGateway", "name": "cozystack"}),
        ("a route of another group", {**above, "group": "example.org"}),
        ("a route of the core group", {**above, "group": ""}),
    ):
        yield _case(kind, f"no hostnames, delegated and on {id}", "tenant-l", None, denial, parents=[above, other])
        if other != _HTTP:
            yield _case(kind, f"no hostnames on {id}", "tenant-l", None, denial, parents=[other])
    port: Mapping[str, Any] = {**_GATEWAY, "port": 80}
    yield _case(kind, "no hostnames on port 80 of any section", "tenant-l", None, denial, parents=[port])
    every = {"useDefaultGateways": "All"}
    yield _case(
        kind, "no hostnames, delegated and default Gateways", "tenant-l", None, denial, parents=[above], spec=every
    )
    yield _case(kind, "no hostnames on default Gateways", "tenant-l", None, denial, parents=None, spec=every)
    yield _case(
        kind, "no hostnames on http and default Gateways", "tenant-l", None, denial, parents=[_HTTP], spec=every
    )
    removed = {"spec": {"hostnames": None}}
    yield _case(kind, "an update that removes them", "tenant-l", None, denial, old=["c.example.org"], new=removed)
    yield _case(kind, "an administrator without hostnames", "tenant-l", None, denial, groups=MASTERS)


def _delegated_hostnames() -> Iterator[Case]:
    """A TLSRoute must have hostnames, and asks its parents for those that it lists: with no other parentRef, it
    attaches to no Gateway. Routes of other kinds have none then."""
    parents: Parents = [_route("TLSRoute")]
    other = "attacker.com"
    tls = partial(_case, "TLSRoute")
    yield tls("hostnames of others, delegated", "tenant-l", [other, "a.example.org"], parents=parents)
    yield tls("hostnames of others, asked for later", "tenant-l", [other], parents=parents, old=["a.example.org"])
    denial = outside_host_denial("TLSRoute hostnames", "example.org", other)
    for id, more in (
        ("on a Gateway, too", _GATEWAY),
        ("on section http, too", _HTTP),
        ("on a TenantGateway, too", {"group": "gateway.cozystack.io", "kind": "TenantGateway", "name": "cozystack"}),
        ("by a route of another group, too", {**parents[0], "group": "example.org"}),
        ("by an HTTPRoute, too", _route("HTTPRoute")),
        ("at a Service, too", {"group": "", "kind": "Service", "name": "www"}),
    ):
        yield tls(f"hostnames of others, delegated {id}", "tenant-l", [other], denial, parents=[*parents, more])
    every = {"useDefaultGateways": "All"}
    yield tls("hostnames of others and default Gateways", "tenant-l", [other], denial, parents=parents, spec=every)
    yield tls("hostnames of others, attached to nothing", "tenant-l", [other], denial, parents=[])
    lost = no_host_denial("TLSRoute hostnames")
    yield tls("hostnames of others without a host", "tenant-l-bare", [other], lost, parents=parents)
    for kind in ("HTTPRoute", "GRPCRoute"):
        denial = outside_host_denial(f"{kind} hostnames", "example.org", other)
        yield _case(kind, "hostnames of others, delegated", "tenant-l", [other], denial, parents=[_route(kind)])


def _of_versions() -> Iterator[Case]:
    """The served versions that _VERSIONS does not contain."""
    for kind, version in (("HTTPRoute", "v1beta1"), ("TLSRoute", "v1"), ("TLSRoute", "v1alpha3")):
        foreign = outside_host_denial(f"{kind} hostnames", "example.org", "attacker.com")
        yield _case(kind, f"{version}, below the host", "tenant-l", ["a.example.org"], version=version)
        yield _case(kind, f"{version}, another domain", "tenant-l", ["attacker.com"], foreign, version=version)
        before = ["old.example.org"]
        yield _case(kind, f"an update in {version}", "tenant-l", ["attacker.com"], foreign, old=before, version=version)
        yield _case(kind, f"a good update in {version}", "tenant-l", ["new.example.org"], old=before, version=version)
    yield _case(
        "HTTPRoute", "v1beta1, no hostnames", "tenant-l", None, no_hostnames_denial("HTTPRoute"), version="v1beta1"
    )
    yield _case("HTTPRoute", "v1beta1, section http", "tenant-l", None, parents=[_HTTP], version="v1beta1")


def cases() -> Iterator[Case]:
    for kind in _KINDS:
        yield from _admitted(kind)
        yield from _rejected(kind)
    yield from _delegated_hostnames()
    yield from _of_versions()
