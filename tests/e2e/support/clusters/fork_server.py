"""A process that has imported our server, and forks one for each request of `forked_process.py`.

Each line of its input is a request, each line of its output a response, both in JSON. It ends with its input; the
processes that it has forked do not.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import sys
import threading
from typing import Any

PRELOADED = ("tenant_apiserver.serve", "tenant_apiserver.standalone")


def main() -> None:
    for module in PRELOADED:
        importlib.import_module(module)
    assert threading.active_count() == 1, "a fork copies only the thread that calls it"
    # a collection in a child would copy the pages of all these objects
    gc.freeze()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "poll" in request:
            respond(poll(request["poll"]))
            continue
        pid = os.fork()
        if pid == 0:
            become(request)
            return
        respond(pid)


def respond(answer: int | None) -> None:
    print(json.dumps(answer), flush=True)


def poll(pid: int) -> int | None:
    """The exit status of a child, as subprocess shows it; None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def become(request: dict[str, Any]) -> None:
    """Runs `python -m MODULE ARGUMENTS` in this process."""
    null, log = os.open(os.devnull, os.O_RDONLY), os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(log)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
