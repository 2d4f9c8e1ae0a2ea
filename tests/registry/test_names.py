from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import names

_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(lambda name: name not in ("root", "super"))


@pytest.mark.parametrize(
    ("parent", "name", "expected"),
    [
        pytest.param("tenant-root", "root", "tenant-root", id="the root has the namespace tenant-root"),
        pytest.param("tenant-root", "alpha", "tenant-alpha", id="a child of the root lacks its prefix"),
        pytest.param("tenant-alpha", "beta", "tenant-alpha-beta", id="a grandchild has the prefix of its parent"),
        pytest.param("tenant-alpha-beta", "gamma", "tenant-alpha-beta-gamma", id="at every depth"),
        pytest.param("tenant-alpha", "root", "tenant-alpha-root", id="root is special in tenant-root only"),
    ],
)
def test_the_workload_namespace_is_derived_from_parent_and_name(parent: str, name: str, expected: str) -> None:
    """R-039, R-040, R-041."""
    assert names.workload_namespace(parent, name) == expected


@given(st.lists(_NAMES, min_size=1, max_size=6), st.lists(_NAMES, min_size=1, max_size=6))
def test_different_chains_of_names_never_have_the_same_namespace(left: list[str], right: list[str]) -> None:
    """R-037, R-038."""

    def namespace(chain: list[str]) -> str:
        found = names.ROOT_NAMESPACE
        for name in chain:
            found = names.workload_namespace(found, name)
        return found

    assert (namespace(left) == namespace(right)) == (left == right)


@pytest.mark.parametrize(
    ("parent", "name"),
    [
        pytest.param("tenant-root", "foo1", id="letters and digits"),
        pytest.param("tenant-root", "a" * 46, id="46 characters"),
        pytest.param("tenant-" + "x" * 45, "y" * 10, id="a namespace of exactly 63 characters"),
    ],
)
def test_a_valid_name_has_no_errors(parent: str, name: str) -> None:
    """R-045."""
    assert names.tenant_name_errors(parent, name) == []


@pytest.mark.parametrize(
    "name", ["foo-bar", "-foo", "foo-", "foo_bar", "foo.bar", "foo bar", "1foo", "Foo", "", "fooé"]
)
def test_a_name_with_other_characters_is_rejected_with_the_documented_text(name: str) -> None:
    """R-033."""
    problems = names.tenant_name_errors("tenant-root", name)
    rule = "tenant names must start with a lowercase letter and contain only lowercase letters and digits; "
    assert [(each.field, each.detail) for each in problems] == [("metadata.name", f"{rule}dashes are not allowed")]


def test_the_name_super_is_rejected() -> None:
    assert [each.field for each in names.tenant_name_errors("tenant-foo", "super")] == ["metadata.name"]


def test_a_namespace_of_64_characters_is_rejected_with_its_length() -> None:
    """R-044, R-046."""
    (problem,) = names.tenant_name_errors("tenant-" + "x" * 45, "y" * 11)
    assert "x-yyyyyyyyyyy" in problem.detail
    assert "64 characters" in problem.detail


def test_all_errors_of_a_name_are_reported_together() -> None:
    problems = names.tenant_name_errors("tenant-" + "x" * 40, "A" * 47)
    assert len(problems) == 3


@pytest.mark.parametrize("host", ["example.org", "a.b-c.example", "xn--bcher-kva.example", "customer1.example"])
def test_a_canonical_host_has_no_errors(host: str) -> None:
    assert names.host_errors(host) == []


@pytest.mark.parametrize(
    ("host", "message"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("Example.org", "lower case", id="upper case"),
        pytest.param("example.org.", "trailing dot", id="trailing dot"),
        pytest.param("*.example.org", "wildcard", id="wildcard"),
        pytest.param("192.0.2.1", "IP address", id="IPv4 address"),
        pytest.param("2001:db8::1", "DNS name", id="IPv6 address"),
        pytest.param("exa mple.org", "DNS name", id="space"),
        pytest.param("exam\x00ple.org", "DNS name", id="NUL"),
        pytest.param("bücher.example", "DNS name", id="non-ASCII letters"),
        pytest.param("a..example", "DNS name", id="empty label"),
        pytest.param("-a.example", "DNS name", id="dash at the start of a label"),
        pytest.param("a" * 64 + ".example", "DNS name", id="label of 64 characters"),
        pytest.param(".".join(["a" * 60] * 5), "253", id="more than 253 characters"),
        pytest.param("example.org\n", "DNS name", id="newline at the end"),
    ],
)
def test_a_host_that_is_not_canonical_is_rejected(host: str, message: str) -> None:
    assert any(message in problem for problem in names.host_errors(host))


@pytest.mark.parametrize(
    ("key", "stored"),
    [
        pytest.param("team", "apps.cozystack.io-team", id="a plain key"),
        pytest.param("example.org/x", "apps.cozystack.io-example.org/x", id="a key with a prefix"),
        pytest.param("k" * 45, "apps.cozystack.io-" + "k" * 45, id="a name of the maximum length"),
        pytest.param("k" * 46, None, id="a name that is too long"),
        pytest.param("p" * 235 + "/x", "apps.cozystack.io-" + "p" * 235 + "/x", id="a prefix of the maximum length"),
        pytest.param("p" * 236 + "/x", None, id="a prefix that is too long"),
        pytest.param(
            "example.org/" + "k" * 63,
            "apps.cozystack.io-example.org/" + "k" * 63,
            id="a name of 63 characters with a prefix",
        ),
    ],
)
def test_a_users_key_is_stored_under_a_valid_key(key: str, stored: str | None) -> None:
    assert names.stored_key(key) == stored
    if stored is not None:
        assert names.user_key(stored) == key


@pytest.mark.parametrize("stored", ["team", "apps.cozystack.io/x", "apps.cozystack.io-", "apps.cozystack.io-/x"])
def test_other_keys_are_not_user_keys(stored: str) -> None:
    assert names.user_key(stored) is None


@pytest.mark.parametrize(
    ("user", "flow"),
    [
        ("system:serviceaccount:tenant-foo:a", "system:serviceaccount:tenant-foo"),
        ("system:serviceaccount:tenant-foo-bar-baz:b", "system:serviceaccount:tenant-foo"),
        ("system:serviceaccount:tenant-root:c", "system:serviceaccount:tenant-root"),
        ("system:serviceaccount:tenant-foobar:a", "system:serviceaccount:tenant-foobar"),
        ("system:serviceaccount:cozy-system:flux", "system:serviceaccount:cozy-system:flux"),
        ("system:serviceaccount:kube-system:tenant-x", "system:serviceaccount:kube-system:tenant-x"),
        ("tenant-foo", "tenant-foo"),
        ("", ""),
    ],
)
def test_service_accounts_of_a_tenant_and_those_below_it_are_one_flow(user: str, flow: str) -> None:
    assert names.flow_of(user) == flow
