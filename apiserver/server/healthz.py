"""Serves /healthz, /livez and /readyz: named checks, with the texts of k8s.io/apiserver's healthz (WIRE-I3 to
WIRE-I5).

All clients may read these paths, but most of them see only the names of checks, and ok or failed. Errors and notes can
name objects of the cluster: they are shown only to users who may get /metrics.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from apiserver.authorization.authorizer import AccessAttributes, Authorizer
from apiserver.meta.errors import StatusError
from apiserver.request.context import RequestContext

Check = Callable[[], Awaitable[str | None] | str | None]
"""A check fails by raising an exception. Its text is logged, and returned only by the check's own path. A check that
passes may return a note, which is shown in the verbose list of checks. Only users who may get /metrics see either."""

ENDPOINTS = ("healthz", "livez", "readyz")
READINESS = ("readyz",)

_LOG = logging.getLogger("apiserver.health")
_CHECK_SECONDS = 5.0
_WITHHELD = "reason withheld"
_HEADERS = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class _NamedCheck:
    name: str
    check: Check
    endpoints: frozenset[str]
    former_name: str

    @property
    def names(self) -> set[str]:
        return {self.name, self.former_name} - {""}


class HealthChecks:
    """Checks run in the order in which they were added. `ping` is always included."""

    def __init__(self) -> None:
        self._checks: list[_NamedCheck] = []
        self._failed: dict[str, list[str]] = {}
        self.results: dict[tuple[str, str], bool] = {}
        """By endpoint and name, whether each check passed when all checks of its endpoint were last probed."""
        self.add("ping", lambda: None)

    def add(self, name: str, check: Check, *, endpoints: Collection[str] = ENDPOINTS, former_name: str = "") -> None:
        """Register a check. Its own path and `exclude` also accept `former_name`, so that probes of earlier versions
        keep working. Raises ValueError if the name is in use."""
        if any(name in each.names for each in self._checks):
            raise ValueError(f"a health check named {name} already exists")
        self._checks.append(_NamedCheck(name, check, frozenset(endpoints), former_name))

    def paths(self) -> list[str]:
        """The paths that `respond` serves."""
        found = []
        for endpoint in ENDPOINTS:
            found.append(f"/{endpoint}")
            found += sorted(f"/{endpoint}/{each.name}" for each in self._checks_of(endpoint))
        return found

    async def failing(self, endpoint: str) -> list[str]:
        """'name: error' of each check of the endpoint that fails."""
        results = [(each.name, await _run(each)) for each in self._checks_of(endpoint)]
        return [f"{name}: {text}" for name, (passed, text) in results if not passed]

    async def respond(self, context: RequestContext, *, authorizer: Authorizer) -> web.StreamResponse | None:
        """The response of a health path, None for other paths. `authorizer` decides who sees errors and notes."""
        endpoint, _, name = context.info.path.removeprefix("/").partition("/")
        if endpoint not in ENDPOINTS or not context.info.path.startswith("/"):
            return None
        checks = self._checks_of(endpoint)
        if not name:
            return await _answer_all(checks, context, authorizer, on_result=partial(self._record, endpoint))
        for each in checks:
            if name in each.names:
                return await _answer_one(each, context, authorizer)
        return None

    def _record(self, endpoint: str, passed: list[str], failed: list[str]) -> None:
        """Keeps the results, and logs checks that fail once, not at every probe. `failed` are lines 'name: error'."""
        names = [line.partition(": ")[0] for line in failed]
        self.results |= {(endpoint, name): True for name in passed} | {(endpoint, name): False for name in names}
        if failed != self._failed.get(endpoint, []):
            _LOG.info("%s check %s", endpoint, "failed" if failed else "passes again", extra={"failed": failed})
            self._failed[endpoint] = failed

    def _checks_of(self, endpoint: str) -> list[_NamedCheck]:
        return [each for each in self._checks if endpoint in each.endpoints]


async def _answer_all(
    checks: list[_NamedCheck],
    context: RequestContext,
    authorizer: Authorizer,
    *,
    on_result: Callable[[list[str], list[str]], None],
) -> web.Response:
    endpoint = context.info.path.removeprefix("/")
    excluded = set(context.query.all("exclude"))
    results: list[tuple[str, str]] = []
    done, failed = list[str](), list[str]()
    for each in checks:
        if each.names & excluded:
            excluded -= each.names
            results.append((f"[+]{each.name} excluded: ok", ""))
            continue
        passed, text = await _run(each)
        if passed:
            done.append(each.name)
            results.append((f"[+]{each.name} ok", text))
        else:
            failed.append(f"{each.name}: {text}")
            results.append((f"[-]{each.name} failed: {_WITHHELD}", ""))
    on_result(done, failed)
    if not failed and "verbose" not in context.query:
        return _text_response("ok")
    with_notes = any(note for _, note in results) and await _may_see_texts(context, authorizer)
    lines = [f"{line}: {note}" if note and with_notes else line for line, note in results]
    if excluded:
        names = ", ".join(json.dumps(name, ensure_ascii=False) for name in sorted(excluded))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    verdict = f"{endpoint} check {'failed' if failed else 'passed'}\n"
    return _text_response("\n".join([*lines, verdict]), 500 if failed else 200)


async def _answer_one(named: _NamedCheck, context: RequestContext, authorizer: Authorizer) -> web.Response:
    passed, text = await _run(named)
    if passed:
        return _text_response("ok")
    shown = text if await _may_see_texts(context, authorizer) else _WITHHELD
    return _text_response(f"internal server error: {shown}\n", 500)


async def _may_see_texts(context: RequestContext, authorizer: Authorizer) -> bool:
    """True if the user may get /metrics. A review that fails withholds the texts: the check itself was answered."""
    attributes = AccessAttributes(user=context.user, verb="get", path="/metrics")
    try:
        return (await authorizer.authorize(attributes)).allowed
    except StatusError:
        return False


async def _run(named: _NamedCheck) -> tuple[bool, str]:
    """Runs a check: True if it passes, and its note or error."""
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            result = named.check()
            return True, (await result if inspect.isawaitable(result) else result) or ""
    except TimeoutError:
        return False, f"no answer within {_CHECK_SECONDS:g} s"
    except Exception as error:
        return False, str(error) or type(error).__name__


def _text_response(body: str, code: int = 200) -> web.Response:
    return web.Response(body=body.encode(), status=code, headers=_HEADERS)
