"""Continue tokens, which come from clients."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.errors import BadRequest
from tenant_apiserver.proxy.merged.continue_token import MergedToken, decode_merged_token, encode_merged_token

_FIELDS = {"v": "merged/v1", "rv": "7", "part": "tenant-a", "continue": ""}


def _encoded(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def _token(**fields: object) -> str:
    return _encoded({**_FIELDS, **fields})


def test_a_token_is_what_it_was() -> None:
    token = MergedToken("18446744073709551615", "tenant-a", "inner")
    assert decode_merged_token(encode_merged_token(token)) == token


@pytest.mark.parametrize(
    "text",
    [
        "!",
        "é",
        _encoded([]),
        _encoded("[" * 100),
        _token(v="meta.k8s.io/v1"),
        _token(rv=7),
        _token(part=None),
        _token(rv="-1"),
        _token(rv="٣"),
        _token(rv=""),
        _token(rv="9" * 5000),
    ],
)
def test_other_tokens_are_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="continue key is not valid"):
        decode_merged_token(text)


_JSON = st.recursive(st.none() | st.integers() | st.text(), lambda each: st.lists(each, max_size=3), max_leaves=5)


@given(
    st.text(max_size=50)
    | st.builds(
        lambda fields: _encoded({**_FIELDS, **fields}), st.dictionaries(st.sampled_from(sorted(_FIELDS)), _JSON)
    )
)
def test_no_token_is_an_internal_error(text: str) -> None:
    try:
        found = decode_merged_token(text)
    except BadRequest:
        return
    assert 0 <= int(found.version) < 10**20
