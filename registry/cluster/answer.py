"""Decodes what kube-apiserver, or what is in front of it, has answered. Pure."""

from __future__ import annotations

from apiserver.json import deep as deepjson
from apiserver.meta import errors
from apiserver.meta.resource import Object
from registry.cluster.interface import NotServed, UnexpectedAnswer

# kube-apiserver's answer to a path of an API group that it does not serve.
_UNKNOWN_PATH = b"404 page not found"
# The bytes that are logged of an answer that is none of the API's.
_SHOWN = 200


class CredentialsRejected(Exception):
    """kube-apiserver rejected the credentials of this process. Clients get ClusterUnreachable for it instead of a
    401."""


def decode_answer(code: int, phrase: str, body: bytes) -> Object:
    """The object of an answer. Raises the StatusError of a Status, NotServed for an unknown path, and UnexpectedAnswer
    for a body that is none of the API's."""
    if code == 404 and body.strip() == _UNKNOWN_PATH:
        raise NotServed
    try:
        document = deepjson.loads(body)
        if isinstance(document, dict) and code < 300:
            return document
        if isinstance(document, dict) and document.get("kind") == "Status":
            raise errors.from_status(document, code)
    except ValueError:
        # no JSON, or a malformed Status
        pass
    raise UnexpectedAnswer from ValueError(_description(code, phrase, body))


def _description(code: int, phrase: str, body: bytes) -> str:
    text = body[:_SHOWN].decode("ascii", "replace").replace("\ufffd", "?")
    words = "".join(each if each.isprintable() or each.isspace() else "?" for each in text).split()
    return ": ".join(each for each in (f"the answer is {code} {phrase}".rstrip(), " ".join(words)) if each)
