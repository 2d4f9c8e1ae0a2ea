"""The rule behind the reason of a condition."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """`text` is one sentence, `link` a page below docs/ with its section, and `remedy` the nearest change that would
    make it work; it is empty for a reason that needs none."""

    text: str
    link: str
    remedy: str = ""


FURTHER = "tenants.md#further-conditions"
READY = "tenants.md#when-a-tenant-is-ready"
