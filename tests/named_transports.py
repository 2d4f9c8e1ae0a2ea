"""Names the test that opened a connection of asyncio, in the warning that nobody has closed it.

The warning comes with garbage collection, amid a later test, and fails that one.
"""

from __future__ import annotations

import os
from asyncio import selector_events
from typing import Any

_OPENED_BY = "opened by"
_CURRENT_TEST = "PYTEST_CURRENT_TEST"
_transport: Any = selector_events._SelectorTransport  # type: ignore[attr-defined]


def name_transports() -> None:
    """From now on, the repr of a transport says which test has opened it."""
    initialize, represent = _transport.__init__, _transport.__repr__

    def initialize_named(self: Any, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        self._extra[_OPENED_BY] = os.environ.get(_CURRENT_TEST, "no test")

    def represent_named(self: Any) -> str:
        return f"{represent(self)} {_OPENED_BY} {self._extra.get(_OPENED_BY)}"

    _transport.__init__, _transport.__repr__ = initialize_named, represent_named
