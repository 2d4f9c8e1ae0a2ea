"""Codes and sessions."""

from __future__ import annotations

from tenant_apiserver.ui.sessions import CODE_SECONDS, Sessions, cookie_values


def test_a_code_is_worth_one_session() -> None:
    sessions = Sessions(lambda: 0.0)
    code = sessions.new_code()
    token = sessions.begin(code)
    assert token is not None
    assert sessions.is_valid([token])
    assert sessions.begin(code) is None


def test_a_code_expires() -> None:
    now = 0.0
    sessions = Sessions(lambda: now)
    code = sessions.new_code()
    now = CODE_SECONDS + 1.0
    assert sessions.begin(code) is None


def test_neither_a_code_nor_a_guess_is_a_session() -> None:
    sessions = Sessions(lambda: 0.0)
    code = sessions.new_code()
    assert not sessions.is_valid([code, "", "x" * 10_000, "\udcff"])
    assert sessions.begin("\udcff") is None


def test_codes_and_tokens_have_256_bits_and_are_not_kept() -> None:
    sessions = Sessions(lambda: 0.0)
    code = sessions.new_code()
    token = sessions.begin(code)
    assert token is not None
    assert len(code) == len(token) == 43
    kept = repr(vars(sessions))
    assert code not in kept
    assert token not in kept


def test_a_cookie_of_another_server_does_not_hide_the_session() -> None:
    """Every server of the host can set a cookie of the same name, with a longer path, which comes first."""
    headers = ["tenant-ui-1=tossed; other=1", "tenant-ui-1=own;tenant-ui-10=no"]
    assert cookie_values(headers, "tenant-ui-1") == ["tossed", "own"]


def test_the_oldest_of_many_sessions_ends() -> None:
    sessions = Sessions(lambda: 0.0)
    tokens = [sessions.begin(sessions.new_code()) or "" for _ in range(33)]
    assert not sessions.is_valid(tokens[:1])
    assert all(sessions.is_valid([each]) for each in tokens[1:])
