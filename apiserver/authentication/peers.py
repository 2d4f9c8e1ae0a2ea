"""Identifies the client of a connection by its TLS handshake, before any request (ATTACK-19)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.request.context import User


@dataclass(frozen=True, slots=True)
class Peers:
    """`is_front_proxy` and `user` judge the client certificate of a connection. They return False and None without a
    valid one."""

    is_front_proxy: Callable[[asyncio.BaseTransport], bool] = lambda _: False
    user: Callable[[asyncio.BaseTransport], User | None] = lambda _: None
