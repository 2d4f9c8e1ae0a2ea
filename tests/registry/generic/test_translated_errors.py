"""Errors of the cluster that become errors about another object."""

from __future__ import annotations

import gc
import weakref

import pytest

from apiserver.meta.errors import AlreadyExists, BadRequest, StatusError
from apiserver.meta.resource import GroupResource
from registry.generic.translated_errors import translated_errors

TENANTS = GroupResource("apps.example.org", "tenants")


class Body(bytearray):
    """Can be referenced weakly."""


def to_exists(_: StatusError) -> StatusError:
    return AlreadyExists(TENANTS, "alice")


def test_another_error_has_the_first_as_its_cause() -> None:
    with pytest.raises(AlreadyExists) as raised, translated_errors(to_exists):
        raise BadRequest("no")
    assert isinstance(raised.value.__cause__, BadRequest)


def test_the_same_error_has_no_cause() -> None:
    with pytest.raises(BadRequest) as raised, translated_errors(lambda error: error):
        raise BadRequest("no")
    assert raised.value.__cause__ is None


def test_other_exceptions_are_not_translated() -> None:
    with pytest.raises(KeyError), translated_errors(to_exists):
        raise KeyError


def test_what_the_block_has_held_is_freed_without_a_garbage_collection() -> None:
    """ATTACK-19: it is the object of a refused write, of up to three megabytes."""
    held: list[weakref.ref[Body]] = []

    def write() -> None:
        body = Body(b"content")
        held.append(weakref.ref(body))
        with translated_errors(to_exists):
            raise BadRequest("no")

    gc.disable()
    try:
        try:
            write()
        except AlreadyExists as error:
            error.with_traceback(None)
        assert held[0]() is None
    finally:
        gc.enable()
