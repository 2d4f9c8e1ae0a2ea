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
        ("host", "bad host", '"bad host" is not a DNS name'),
        ("host", "x_.example.org", '"x_.example.org" is not a DNS name'),
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
    ("line", "message", "command"),
    [
        ("", "a command is missing; the commands are tree, explain, who-can-see", ""),
        ("-n tenant-alice", "a command is missing; the commands are tree", ""),
        ("tre", "unknown command tre; did you mean tree?", ""),
        ("pods", "unknown command pods; the commands are tree", ""),
        ("--foo", "unknown flag: --foo", ""),
        ("tree --foo=bar", "unknown flag: --foo", "tree"),
        ("tree --contxt admin", "unknown flag: --contxt; did you mean --context?", "tree"),
        ("tree --name x", "unknown flag: --name", "tree"),
        ("tree -o table", "--output must be wide, json or yaml, not table", "tree"),
        ("tree a b", "tree has too many arguments: b", "tree"),
        ("explain route a web", "explain has too many arguments: web; a route is NAMESPACE/NAME", "explain"),
        ("hosts a", "hosts has too many arguments: a", "hosts"),
        ("tree -n", "-n/--namespace: a value is missing", "tree"),
        ("explain alice", "explain needs one of tenant, host, route, namespace, user, not alice", "explain"),
        ("explain", "explain needs one of tenant, host, route, namespace, user", "explain"),
        ("who-can-see", "who-can-see needs the NAME of a tenant", "who-can-see"),
        ("diff -f x", "diff needs the NAME of a tenant", "diff"),
        ("ui --port abc", "--port: must be a number from 0 to 65535, not abc", "ui"),
        ("ui --port 65536", "--port: must be a number from 0 to 65535, not 65536", "ui"),
        ("ui --address 0.0.0.0", "--address must be 127.0.0.1 or ::1, not 0.0.0.0", "ui"),
        ("ui -o json", "unknown flag: -o", "ui"),
        ("tree a/b/c", "a tenant is NAME or NAMESPACE/NAME, not a/b/c", "tree"),
        ("quota /b", "a tenant is NAME or NAMESPACE/NAME, not /b", "quota"),
        ("tree a/b -n c", "a/b is not in namespace c; leave out -n", "tree"),
        ("explain host x.example.org --tenant a/b -n c", "a/b is not in namespace c; leave out -n", "explain"),
        ("tree \udcff", "the arguments are no UTF-8", ""),
    ],
)
def test_a_wrong_argument_is_told_in_one_line_as_by_kubectl(
    line: str, message: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(line.split())
    assert end.value.code == 2
    told, see = capsys.readouterr().err.splitlines()
    assert told.startswith(f"error: {message}")
    assert see == f"See 'kubectl tenant{f' {command}' if command else ''} --help' for usage."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-n tenant-alice tree", {"command": "tree", "namespace": "tenant-alice"}),
        (
            "--context=a --as bob quota alice",
            {"command": "quota", "name": "alice", "flags": ["--context=a", "--as=bob"]},
        ),
        ("explain -n a host shop.example.org", {"subject": "host", "name": "shop.example.org", "namespace": "a"}),
        ("explain host -n a shop.example.org", {"subject": "host", "name": "shop.example.org", "namespace": "a"}),
        ("diff -f - alice", {"name": "alice", "filename": "-"}),
        ("tree -- -x", {"name": "-x"}),
        ("tree -ntenant-alice -ojson", {"namespace": "tenant-alice", "output": "json"}),
        ("tree tenant-root/alice", {"name": "alice", "namespace": "tenant-root"}),
        ("quota tenant-root/alice -n tenant-root", {"name": "alice", "namespace": "tenant-root"}),
        ("who-can-see tenant-root/alice", {"name": "alice", "namespace": "tenant-root"}),
        ("diff tenant-root/alice", {"name": "alice", "namespace": "tenant-root"}),
        ("explain tenant tenant-root/alice", {"name": "alice", "namespace": "tenant-root"}),
        ("explain user eve --tenant a/b", {"name": "eve", "tenant": "b", "namespace": "a"}),
        ("explain route a/b", {"name": "a/b", "namespace": ""}),
        ("tree -A -n a", {"all_namespaces": True, "namespace": ""}),
        ("quota -A", {"all_namespaces": True}),
        ("hosts -A", {"all_namespaces": True}),
        ("ui --port 80", {"port": 80, "address": "127.0.0.1", "read_only": False}),
        (
            "--kubeconfig x preflight --for=proxy",
            {"command": "preflight", "rest": ["--kubeconfig", "x", "--for=proxy"]},
        ),
    ],
)
def test_flags_and_names_are_accepted_as_by_kubectl(line: str, expected: dict[str, object]) -> None:
    """Flags before and behind the command; a tenant by the name that the outputs have."""
    found = vars(parse(line.split()))
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("command", ["tree", "explain", "who-can-see", "quota", "hosts", "diff", "ui"])
def test_the_help_names_the_values_of_flags(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse([command, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "--as USER" in text
    assert "--context NAME" in text
    assert "KUBECTL_" not in text


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
    command = [
        "tree",
        "--context=other",
        "--as=joe",
        "--as-group=a",
        "--as-group",
        "b",
        "--as-uid=7",
        "--certificate-authority",
        "ca.crt",
    ]
    ca = "--certificate-authority=ca.crt"
    assert parse(command).flags == ["--context=other", "--as=joe", "--as-uid=7", "--as-group=a", "--as-group=b", ca]
    assert parse(["hosts"]).flags == []


def test_groups_are_those_of_a_user(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["explain", "user", "eve", "--group", "a", "--group=b"]).group == ["a", "b"]
    with pytest.raises(SystemExit):
        parse(["explain", "host", "example.org", "--group", "a"])
    assert "--group is only for explain user" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("explain tenant alice --tenant dev", "error: explain tenant alice names the tenant; leave out --tenant"),
        ("explain --tenant dev tenant alice", "error: explain tenant alice names the tenant; leave out --tenant"),
        (
            "explain route a/b -n c",
            "error: explain route a/b is not about namespace c; leave out -n, or name a tenant by --tenant",
        ),
        (
            "explain namespace a -n c",
            "error: explain namespace a is not about namespace c; leave out -n, or name a tenant by --tenant",
        ),
    ],
)
def test_nothing_that_is_named_is_ignored(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"{told}\n")


@pytest.mark.parametrize(
    "words",
    [
        "explain tenant --tenant dev",
        "explain tenant alice -n tenant-root",
        "explain route a/b -n a",
        "explain route a/b --tenant dev -n c",
        "explain namespace a -n a",
        "explain user eve -n c",
    ],
)
def test_a_tenant_or_a_namespace_of_its_own_is_used(words: str) -> None:
    assert parse(words.split()).command == "explain"
