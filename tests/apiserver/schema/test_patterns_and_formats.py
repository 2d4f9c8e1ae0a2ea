from __future__ import annotations

import pytest

from apiserver.schema.formats import STRING_FORMATS
from apiserver.schema.patterns import go_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        ("(?m)^a$", "b\na", True),
        (r"^\d+$", "\u0663", False),
        ("^[[:alpha:]_]+$", "ab_", True),
        ("^[[:alpha:]]+$", "a1", False),
        (r"^a\z", "a", True),
        ("[$]", "$", True),
        (r"\$", "$", True),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern: str, text: str, matches: bool) -> None:
    assert (go_pattern(pattern).search(text) is not None) is matches


def test_a_pattern_that_does_not_compile_is_an_error() -> None:
    with pytest.raises(ValueError, match="unterminated"):
        go_pattern("(")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "datetime",
            ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.6+01:00", ""],
            ["2026-01-02", "2026-13-02T03:04:05Z"],
        ),
        ("date", ["2026-01-02"], ["2026-02-30", "20260102"]),
        ("duration", ["1h5m", "1.5s", "0", "3 days", "22 ns"], ["1", "soon", ""]),
        ("byte", ["", "YWI="], ["?", "YWI"]),
        ("ipv4", ["10.0.0.1"], ["10.0.0.256", "::1"]),
        ("ipv6", ["::1"], ["10.0.0.1"]),
        ("cidr", ["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/²", f"10.0.0.0/{'1' * 5_000}"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["123"]),
        ("hostname", ["a", "a.example.org", "1a.example.org"], ["a_b", "-a.example.org", "a" * 64 + ".org"]),
        ("email", ["a@example.org"], ["a", "a b@example.org"]),
        ("uri", ["https://example.org/a", "/a"], ["a b", "example"]),
        ("mac", ["01:02:03:04:05:06"], ["01:02"]),
        ("k8sshortname", ["a-b"], ["a.b", "A"]),
        ("k8slongname", ["a.b"], ["a..b"]),
    ],
)
def test_a_format_accepts_what_kubernetes_accepts(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not STRING_FORMATS[name](text)] == []
    assert [text for text in bad if STRING_FORMATS[name](text)] == []
