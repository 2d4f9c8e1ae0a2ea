"""Cases of the optional layer 8: hostnames of Ingresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.policies.cases import INGRESS_POLICY, MASTERS, Case, no_host_denial, outside_host_denial

_SUBJECT = "Ingress hostnames"
_BACKEND = {"service": {"name": "app", "port": {"number": 80}}}
_HTTP = {"paths": [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]}
_ALIAS = "nginx.ingress.kubernetes.io/server-alias"
_LABELLED = {"metadata": {"labels": {"some": "label"}}}
CATCH_ALL = (
    f"{_SUBJECT} must equal the host of its namespace or be below it, and a rule has none, or there is a default "
    "backend: the Ingress would take every hostname"
)


def _content(hosts: Sequence[str | None], spec: Mapping[str, Any] | None = None, alias: str = "") -> Mapping[str, Any]:
    rules = [{"http": _HTTP, **({"host": each} if each is not None else {})} for each in hosts]
    metadata = {"metadata": {"annotations": {_ALIAS: alias}}} if alias else {}
    return {**metadata, "spec": {**({"rules": rules} if rules else {}), **(spec or {})}}


def _case(id: str, namespace: str, new: Mapping[str, Any], denial: str = "", **more: Any) -> Case:
    return Case(
        id=f"Ingress: {id}",
        policy=INGRESS_POLICY,
        group="networking.k8s.io",
        version="v1",
        kind="Ingress",
        namespace=namespace,
        new=new,
        denial=denial,
        **more,
    )


def _tls(*hosts: str) -> Mapping[str, Any]:
    return {"tls": [{"hosts": list(hosts), "secretName": "app-tls"}]}


def _admitted() -> Iterator[Case]:
    for id, hosts in (
        ("the host itself", ["example.org"]),
        ("below the host", ["app.example.org"]),
        ("deep below the host", ["a.b.c.example.org"]),
        ("everything below the host", ["*.example.org"]),
        ("several", ["example.org", "a.example.org", "*.b.example.org"]),
    ):
        yield _case(id, "tenant-l", _content(hosts))
    yield _case("a label in mixed case", "tenant-l-upper", _content(["a.example.org"]))
    yield _case("a domain of its own", "tenant-l-own", _content(["app.customer1.example"]))
    yield _case("a deep host", "tenant-l-deep", _content(["x.a.b.example.org"]))
    good = ["a.example.org"]
    yield _case("TLS for a hostname", "tenant-l", _content(good, _tls("a.example.org", "b.example.org")))
    two = {"tls": [{"hosts": ["a.example.org"]}, {"hosts": ["b.example.org"]}]}
    yield _case("TLS for two lists", "tenant-l", _content(good, two))
    yield _case("TLS for every hostname", "tenant-l", _content(good, {"tls": [{"secretName": "app-tls"}]}))
    yield _case("an alias", "tenant-l", _content(good, alias="b.example.org"))
    yield _case("aliases", "tenant-l", _content(good, alias="b.example.org, *.c.example.org,,"))
    yield _case("a class", "tenant-l", _content(good, {"ingressClassName": "tenant-root"}))
    yield _case("any hostname in cozy-*", "cozy-l", _content(["attacker.com"]))
    yield _case("no hostname in cozy-*", "cozy-l", _content([None]))
    yield _case("any hostname where tenant has no dash", "tenantl", _content(["attacker.com"]))
    yield _case("any hostname where tenant- is inside the name", "my-tenant-l", _content(["attacker.com"]))
    yield _case("an update within the host", "tenant-l", _content(["n.example.org"]), old=_content(["o.example.org"]))
    yield _case("an update of a label only", "tenant-l", _LABELLED, old=_content(["o.example.org"]))
    upper = _content(["App.Example.ORG"])
    yield _case("a hostname in mixed case", "tenant-l", upper, rejected_by_schema=True)


def _rejected() -> Iterator[Case]:
    for id, host in (
        ("another domain", "attacker.com"),
        ("the parent of the host", "org"),
        ("a word before the host", "evilexample.org"),
        ("the host as a prefix", "example.org.attacker.com"),
        ("the host without its dot", "app-example.org"),
        ("everything below a near miss", "*.evilexample.org"),
    ):
        yield _case(id, "tenant-l", _content([host]), outside_host_denial(_SUBJECT, "example.org", host))
    foreign = outside_host_denial(_SUBJECT, "example.org", "attacker.com")
    good = "a.example.org"
    yield _case("one bad among good", "tenant-l", _content([good, "attacker.com"]), foreign)
    yield _case("TLS for another domain", "tenant-l", _content([good], _tls(good, "attacker.com")), foreign)
    two = {"tls": [{"hosts": [good]}, {"hosts": ["attacker.com"]}]}
    yield _case("TLS for another domain in a later list", "tenant-l", _content([good], two), foreign)
    yield _case("an alias of another domain", "tenant-l", _content([good], alias="attacker.com"), foreign)
    later = _content([good], alias="b.example.org, attacker.com")
    yield _case("a later alias of another domain", "tenant-l", later, foreign)
    pattern = "~^dash.*|x.example.org"
    regex = outside_host_denial(_SUBJECT, "example.org", pattern)
    yield _case("an alias that is a pattern", "tenant-l", _content([good], alias=pattern), regex)
    yield _case("an administrator may not, either", "tenant-l", _content(["attacker.com"]), foreign, groups=MASTERS)
    yield _case(
        "an update to outside", "tenant-l", _content(["attacker.com"]), foreign, old=_content(["o.example.org"])
    )
    annotated = {"metadata": {"annotations": {_ALIAS: "attacker.com"}}}
    yield _case("an update that adds an alias", "tenant-l", annotated, foreign, old=_content(["o.example.org"]))
    yield _case("no hostname", "tenant-l", _content([None]), CATCH_ALL)
    yield _case("one rule without a hostname", "tenant-l", _content([good, None]), CATCH_ALL)
    yield _case("a default backend alone", "tenant-l", _content([], {"defaultBackend": _BACKEND}), CATCH_ALL)
    yield _case(
        "a default backend beside a rule", "tenant-l", _content([good], {"defaultBackend": _BACKEND}), CATCH_ALL
    )
    for namespace in ("tenant-l-bare", "tenant-l-empty", "tenant-l-near"):
        yield _case(f"a hostname in {namespace}", namespace, _content(["app.example.org"]), no_host_denial(_SUBJECT))
    lost, old = no_host_denial(_SUBJECT), _content(["b.example.org"])
    yield _case("any update without a host", "tenant-l-bare", _LABELLED, lost, old=old)
    mixed = outside_host_denial(_SUBJECT, "example.org", "evilexample.org")
    yield _case("a near miss in mixed case", "tenant-l", _content(["EvilExample.org"]), mixed, rejected_by_schema=True)
    yield _case("neither rules nor a backend", "tenant-l", _content([]), CATCH_ALL, rejected_by_schema=True)
    many = [f"{'a' * 60}.{'b' * 60}.n{number}.example.net" for number in range(50)]
    plain = f"{_SUBJECT} must equal the host of its namespace or be below it"
    yield _case("too many to list", "tenant-l", _content(many), plain)


def cases() -> Iterator[Case]:
    yield from _admitted()
    yield from _rejected()
