"""The continue tokens of merged lists. Pure.

A token names where a list goes on. It carries no authority, so it is not sealed, and each replica reads those of the
others: a list that goes on asks the cluster as its caller, and only in the namespaces that he may list now.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Final, NamedTuple

from apiserver.meta.errors import BadRequest

_VERSION: Final = "merged/v1"
# of an unsigned number of 64 bits
_MOST_DIGITS: Final = 20


class MergedToken(NamedTuple):
    """A list goes on in part `name`, with its own token `inner` or at its beginning, at `version`."""

    version: str
    name: str
    inner: str


def encode_merged_token(token: MergedToken) -> str:
    text = json.dumps({"v": _VERSION, "rv": token.version, "part": token.name, "continue": token.inner})
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decode_merged_token(text: str) -> MergedToken:
    """Raises BadRequest."""
    try:
        padded = (text + "=" * (-len(text) % 4)).encode("ascii")
        document = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise _invalid("it is not JSON in base64url") from error
    if not isinstance(document, dict) or document.get("v") != _VERSION:
        raise _invalid("server does not recognize this encoded version")
    version, name, inner = (document.get(field) for field in ("rv", "part", "continue"))
    if not isinstance(version, str) or not isinstance(name, str) or not isinstance(inner, str):
        raise _invalid("a field has a wrong type")
    if not version.isdecimal() or not version.isascii() or len(version) > _MOST_DIGITS:
        raise _invalid("incorrect encoded start resourceVersion")
    return MergedToken(version, name, inner)


def _invalid(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {why}")
