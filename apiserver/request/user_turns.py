"""Turns on the event loop, so that a burst of one user's requests does not delay the requests of others."""

from __future__ import annotations

import asyncio
from collections import deque


class UserTurns:
    """Lets one waiting request of each user continue in every iteration of the event loop.

    Requests that arrive together would otherwise run in one iteration, and everybody else would wait for all of them
    (ATTACK-19).
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def wait(self, user: str) -> None:
        """Returns at once if no other request of the user had its turn in this iteration."""
        loop = asyncio.get_running_loop()
        queue = self._waiting.get(user)
        if queue is None:
            self._waiting[user] = deque()
            loop.call_soon(self._give_turn, loop, user)
            return
        turn = loop.create_future()
        queue.append(turn)
        await turn

    def _give_turn(self, loop: asyncio.AbstractEventLoop, user: str) -> None:
        queue = self._waiting[user]
        while queue:
            turn = queue.popleft()
            # a client that has gone away has cancelled its turn
            if not turn.done():
                turn.set_result(None)
                loop.call_soon(self._give_turn, loop, user)
                return
        del self._waiting[user]
