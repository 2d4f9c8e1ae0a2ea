from __future__ import annotations

import pytest

from registry.application.go_duration import canonical_duration


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("15m", "15m0s"),
        ("20m0s", "20m0s"),
        ("1h", "1h0m0s"),
        ("90s", "1m30s"),
        ("1.5h", "1h30m0s"),
        ("500ms", "500ms"),
        ("1500ms", "1.5s"),
        ("1h0.25s", "1h0m0.25s"),
        ("0s", "0s"),
    ],
)
def test_durations_are_printed_as_go_prints_them(text: str, printed: str) -> None:
    assert canonical_duration(text) == printed


@pytest.mark.parametrize("text", ["10us", "10", "m", "-5m", "5 m", "1d", "9" * 60 + "h", "1" * 100])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        canonical_duration(text)
