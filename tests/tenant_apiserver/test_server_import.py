"""The import of a server's modules leaves the garbage collector as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tenant_apiserver.server_import import without_collections


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_garbage_is_collected_after_the_import_but_not_what_it_made() -> None:
    with without_collections():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_garbage_is_collected_after_an_import_that_fails() -> None:
    with pytest.raises(ImportError), without_collections():
        raise ImportError("no such module")
    assert gc.isenabled()
