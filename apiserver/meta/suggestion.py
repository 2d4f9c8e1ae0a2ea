"""Suggests what a misspelt name may mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(name: str, known: Iterable[str], form: str = "; did you mean {}?") -> str:
    """The known name that is most like `name`, in the form for the end of a message; empty if none is."""
    nearest = difflib.get_close_matches(name, tuple(known), n=1)
    return form.format(nearest[0]) if nearest else ""
