"""A list that is merged of the lists of its parts, as of one resourceVersion."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from apiserver.meta.errors import Expired, InternalError, StatusError, TooManyRequests
from apiserver.request.options import check_list_query
from apiserver.request.request_info import Query
from tenant_apiserver.proxy.merged.caller_requests import CallerRequests
from tenant_apiserver.proxy.merged.continue_token import MergedToken, decode_merged_token, encode_merged_token
from tenant_apiserver.proxy.merged.packed_list import PackedItem, PackedList
from tenant_apiserver.proxy.merged.part import CollectionPart, selection_of

T = TypeVar("T")
_AT_ONCE: Final = 16
# of the limit, when a page takes too much memory
_SHRINKING: Final = 4
_FORBIDDEN: Final = 403
# of a server that no longer has, or never keeps, a version
_NOT_EXACT: Final = frozenset({400, 410, 422})
_ANY_VERSION: Final = "0"


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The options of a merged list. `version` and `match` are the caller's."""

    selection: Mapping[str, str]
    version: str
    match: str
    limit: int
    token: MergedToken | None


def parse_list_query(query: Query) -> ListQuery:
    """Raises BadRequest and Invalid. Wrong selectors are refused by the cluster."""
    limit, _ = check_list_query(query)
    version, text = query.get("resourceVersion"), query.get("continue")
    match = query.get("resourceVersionMatch")
    # a kube-apiserver answers a list of any version from its cache, without a limit
    is_any = version == _ANY_VERSION and not text
    token = decode_merged_token(text) if text else None
    return ListQuery(selection_of(query), "" if text else version, match, 0 if is_any else limit, token)


class ListOfParts:
    """Reads one page. The first part that answers decides the version, at which the others are read: what they have
    together is a state that the cluster had. A part that the cluster refuses is left out."""

    def __init__(self, requests: CallerRequests, query: ListQuery, parts: Sequence[CollectionPart]) -> None:
        self._requests = requests
        self._query = query
        token = query.token
        self._parts = [each for each in parts if token is None or each.name >= token.name]
        self.version = token.version if token is not None else ""
        self._first: PackedList | None = None
        self._count = 0
        self._limit = query.limit
        self._at_once = _AT_ONCE
        # by their ids: read, and not in the page so far
        self._untaken: dict[int, PackedList] = {}
        self.items_of: dict[str, Sequence[PackedItem]] = {}
        """The items, or the rows of a Table, by the names of their parts."""

    async def read(self) -> PackedList | None:
        """The merged document, None if the cluster refuses every part. Raises the StatusError of a part that fails:
        there are no partial lists. Raises Expired if no part is left of a list that goes on."""
        token = await self._read_parts()
        if self._first is None and self._query.token is not None:
            # the caller has lost them since: client-go lists again after a 410, and not after a 403
            raise Expired("the namespaces in which the list goes on are no longer readable: list again")
        if self._first is None:
            return None
        metadata = {"resourceVersion": self.version}
        if token is not None:
            metadata["continue"] = encode_merged_token(token)
        return PackedList({**self._first.head, "metadata": metadata}, [*chain.from_iterable(self.items_of.values())])

    async def _read_parts(self) -> MergedToken | None:
        """The token of the next page, None after the last one."""
        waiting = deque(self._parts)
        while waiting:
            at_once = self._at_once if self.version or self._query.version else 1
            wave = [waiting.popleft() for _ in range(min(at_once, len(waiting)))]
            try:
                answers = await gather_or_raise([partial(self._ask, part, self._room) for part in wave])
            except TooManyRequests:
                self._release_untaken()
                if not self._limit or (len(wave) == 1 and self._limit == 1):
                    raise
                # a page may have fewer objects than its limit
                if len(wave) == 1 and self._count:
                    return MergedToken(self.version, wave[0].name, "")
                if len(wave) == 1:
                    self._limit = max(self._limit // _SHRINKING, 1)
                # each part was asked for a whole page, of which there is room for one
                waiting.extendleft(reversed(wave))
                self._at_once = 1
                continue
            for position, answer in enumerate(answers):
                following = [*wave[position + 1 :], *waiting][:1]
                if answer is not None and (token := await self._take(wave[position], answer, following)):
                    self._release_untaken()
                    return token
        return None

    def _release_untaken(self) -> None:
        for each in self._untaken.values():
            self._requests.release(each)
        self._untaken.clear()

    @property
    def _room(self) -> int:
        """The objects that the page may still have, 0 without a limit."""
        return max(self._limit - self._count, 0)

    async def _take(
        self, part: CollectionPart, answer: PackedList, following: Sequence[CollectionPart]
    ) -> MergedToken | None:
        """Adds the objects of a part. The token if the page is full."""
        if self._limit and len(answer.items) > self._room:
            # it was asked before others of its wave had filled the page
            self._requests.release(self._untaken.pop(id(answer)))
            again = await self._ask(part, self._room)
            if again is None:
                return None
            answer = again
        self._add(part, answer)
        if inner := answer.metadata.get("continue"):
            return MergedToken(self.version, part.name, inner)
        is_full = self._limit and not self._room
        return MergedToken(self.version, following[0].name, "") if is_full and following else None

    def _add(self, part: CollectionPart, answer: PackedList) -> None:
        self._untaken.pop(id(answer), None)
        items, version = answer.items, str(answer.metadata.get("resourceVersion") or "")
        if self._first is None:
            self._first = answer
        elif answer.head.get("columnDefinitions") != self._first.head.get("columnDefinitions"):
            raise InternalError(f"the table of {part.name} has other columns")
        if not self.version or (self._query.version and _is_smaller(version, self.version)):
            self.version = version
        self.items_of[part.name] = items
        self._count += len(items)

    async def _ask(self, part: CollectionPart, limit: int) -> PackedList | None:
        """The list of a part, None if the cluster refuses it."""
        bound = {"limit": str(limit)} if limit else {}
        token, given = self._query.token, self._query.version
        if token is not None and token.inner and token.name == part.name:
            return await self._get(part, {**bound, "continue": token.inner})
        if given or not self.version:
            match = {"resourceVersion": given, "resourceVersionMatch": self._query.match}
            return await self._get(part, {**bound, **match})
        exactly = {**bound, "resourceVersion": self.version, "resourceVersionMatch": "Exact"}
        try:
            return await self._get(part, exactly)
        except StatusError as error:
            if error.code not in _NOT_EXACT:
                raise
        # a watch from the version repeats what is newer than it: nothing is lost
        return await self._get(part, {**exactly, "resourceVersionMatch": "NotOlderThan"})

    async def _get(self, part: CollectionPart, query: Mapping[str, str]) -> PackedList | None:
        try:
            answer = await self._requests.list(part.target(self._query.selection, **query))
        except StatusError as error:
            if error.code != _FORBIDDEN:
                raise
            return None
        self._untaken[id(answer)] = answer
        return answer


async def gather_or_raise(calls: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
    """The results in order. Raises the error of the first call that fails, and cancels the others."""
    if len(calls) == 1:
        return [await calls[0]()]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call()) for call in calls]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [each.result() for each in tasks]


def _is_smaller(one: str, other: str) -> bool:
    return one.isdecimal() and other.isdecimal() and int(one) < int(other)
