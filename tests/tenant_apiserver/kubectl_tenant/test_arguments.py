"""The messages of `kubectl tenant` about wrong arguments."""

from __future__ import annotations

import pytest

from tenant_apiserver.kubectl_tenant.arguments import parse


@pytest.mark.parametrize(
    ("subject", "name", "message"),
    [
        ("host", "", "explain host needs a name"),
        ("host", "https://shop.example.org", "without scheme, port and path"),
        ("host", "shop.example.org:443", "without scheme, port and path"),
        ("host", "shop.example.org/cart", "without scheme, port and path"),
        ("host", "bad host", "bad host is not a DNS name"),
        ("host", "x_.example.org", "x_.example.org is not a DNS name"),
        ("route", "web", "explain route needs NAMESPACE/NAME, not web"),
        ("route", "tenant-alice/", "explain route needs NAMESPACE/NAME"),
        ("route", "a/b/c", "explain route needs NAMESPACE/NAME"),
    ],
)
def test_a_name_of_a_wrong_form_is_refused_before_a_request(
    subject: str, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(["explain", subject, name])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("host", "*.example.org"),
        ("route", "tenant-alice/web"),
        ("user", "system:serviceaccount:tenant-alice:deployer"),
        ("user", "https://issuer.example.org#eve"),
        ("namespace", "tenant-alice"),
    ],
)
def test_other_names_pass(subject: str, name: str) -> None:
    assert parse(["explain", subject, name]).name == name


def test_flags_of_kubectl_are_passed_to_it() -> None:
    """As for `kubectl --as`, a user can have several groups."""
    command = ["tree", "--context=other", "--as=joe", "--as-group=a", "--as-group", "b", "--as-uid=7"]
    assert parse(command).flags == ["--context=other", "--as=joe", "--as-uid=7", "--as-group=a", "--as-group=b"]
    assert parse(["hosts"]).flags == []
