"""The login of a browser: a code from the printed URL, used once, is exchanged for a cookie."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable

CODE_SECONDS = 600
_MOST_SESSIONS = 32
"""More browsers of one user are not expected; the oldest session ends when another one begins."""


class Sessions:
    """Codes and session tokens have 256 random bits. Only their hashes are in memory, so that comparing them takes the
    same time for every wrong guess. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._codes: dict[bytes, float] = {}
        self._sessions: dict[bytes, None] = {}

    def new_code(self) -> str:
        """A code that is valid for `CODE_SECONDS`, once."""
        code = secrets.token_urlsafe(32)
        self._codes[_digest(code)] = self._clock() + CODE_SECONDS
        return code

    def begin(self, code: str) -> str | None:
        """A new session token for a valid code, None for a code that is unknown, used or too old."""
        expiry = self._codes.pop(_digest(code), None)
        if expiry is None or expiry < self._clock():
            return None
        token = secrets.token_urlsafe(32)
        self._sessions[_digest(token)] = None
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        return token

    def is_valid(self, tokens: Iterable[str]) -> bool:
        """True if one of the tokens is of a session. Another server of the same host can add cookies of any name, which
        must not log the user out."""
        return any(_digest(each) in self._sessions for each in tokens)


def cookie_values(headers: Iterable[str], name: str) -> list[str]:
    """All values of a cookie in the Cookie headers."""
    pairs = (pair.partition("=") for header in headers for pair in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
