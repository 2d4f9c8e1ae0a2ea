"""Lets the CEL library call Python functions without its leak.

Version 0.1.3 calls a function with a tuple that it never releases, and never releases the result either: each call
would leak the memory of its arguments and its result. This module releases both: the tuple, which the `errcheck` of a
ctypes function gets as it is, while a Python function would get a copy; and each result after the library has converted
it, which it does before it calls another function.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

_LEAKS = version("cel-expr-python") == "0.1.3"
_NO_RESULT = object()
INCOMPLETE = "an element of an argument cannot be converted"

# a call of the builtin function itself would be specialized, without the check for an exception
_address_of = partial(id)
_release = ctypes.pythonapi.Py_DecRef
_release.argtypes, _release.restype = (ctypes.py_object,), None


class _Calls(threading.local):
    """`result` is the last result that the library got in this thread, while it has a reference too many.
    `is_incomplete` is true if the library could not convert an argument of the call that it has begun."""

    result: object = _NO_RESULT
    is_incomplete = False


_calls = _Calls()


class _Argument:
    """The type of an argument of any type, whose value is not needed."""

    @staticmethod
    def from_param(value: object) -> int:
        try:
            return _address_of(value)
        except SystemError:
            # Python raises it, and the exception that is set is over, if a builtin function returns while one is set
            _calls.is_incomplete = True
            return 0


def release_result() -> None:
    """To be called after each evaluation."""
    value = _calls.result
    if value is not _NO_RESULT:
        _calls.result = _NO_RESULT
        _release(value)


def for_library(impl: Callable[..., Any], parameters: int) -> Callable[..., Any]:
    """The function to give to the library in the place of `impl`, which has this number of parameters.

    If the library cannot convert an element of an argument, such as an optional, it sets an exception, puts a null
    pointer into the list, and calls the function nevertheless: then `impl` is not called, and the call fails with
    INCOMPLETE. An argument that cannot be converted itself ends the process; so no parameter is of type dyn.
    """

    def call(result: int, function: object, arguments: tuple[Any, ...]) -> Any:
        release_result()
        if _LEAKS:
            # ctypes has a reference of its own until this function returns
            _release(arguments)
        if _calls.is_incomplete:
            _calls.is_incomplete = False
            raise TypeError(INCOMPLETE)
        value = impl(*arguments)
        if _LEAKS:
            # evaluations in `impl` have released theirs
            _calls.result = value
        return value

    types: Any = [_Argument] * parameters
    prototype = ctypes.PYFUNCTYPE(ctypes.c_int, *types)
    # any C function that does nothing
    native: Any = prototype(("Py_IsInitialized", ctypes.pythonapi))
    native.errcheck = call
    return native  # type: ignore[no-any-return]


def _make_none_immortal() -> None:
    """Python 3.12 does the same. The library forgets to take a reference when it converts null, but releases one later;
    the interpreter aborts when None has no references left."""
    if sys.version_info < (3, 12):
        # the count is the first field of an object
        ctypes.c_ssize_t.from_address(id(None)).value += 1 << 60


_make_none_immortal()
