"""Requests of the plugin, which kubectl sends: with its kubeconfig, context and credentials."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from apiserver.meta.resource import Object
from registry.names import GROUP, VERSION
from tenant_apiserver.kubectl_tenant.tables import printable

TENANTS = f"/apis/{GROUP}/{VERSION}"
# a warning of every first apply; `kubectl diff` does not give it
_OF_APPLY = "last-applied-configuration annotation"
_DUMPS = (
    re.compile(r'error when applying patch:\n.*\nfor: "[^\n]*": error when patching "[^\n"]*": ', re.DOTALL),
    re.compile(r'error when retrieving current configuration of:\n.*\nfrom server for: "[^\n"]*": ', re.DOTALL),
)
_FORBIDDEN, _NOT_FOUND = "(Forbidden)", "(NotFound)"
# by the server, and by a credential plugin
_UNAUTHENTICATED = ("(Unauthorized)", "getting credentials")


class RequestFailed(Exception):
    """kubectl failed: the text is its own, and `status` its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_denied(self) -> bool:
        return _FORBIDDEN in str(self)

    @property
    def is_unauthenticated(self) -> bool:
        return any(each in str(self) for each in _UNAUTHENTICATED)

    @property
    def last_line(self) -> str:
        """The message without the log of kubectl's attempts."""
        return str(self).rpartition("\n")[2]

    @property
    def is_missing(self) -> bool:
        return _NOT_FOUND in str(self) or "the server could not find the requested resource" in str(self)


class Kubectl:
    """`flags` are kubectl's own, such as --context."""

    def __init__(self, flags: Sequence[str] = (), *, command: str = "") -> None:
        self.command = [command or os.environ.get("KUBECTL") or _installed(), *flags]
        self._warnings: set[str] = set()

    def get(self, path: str, query: Mapping[str, str | Sequence[str]] | None = None) -> Object:
        """The document at a path. Raises RequestFailed."""
        suffix = f"?{urlencode(query, doseq=True)}" if query else ""
        return self._json("get", "--raw", f"{path}{suffix}")

    def items(self, path: str, query: Mapping[str, str] | None = None) -> Sequence[Object]:
        """The items of a list. Raises RequestFailed."""
        found: Sequence[Object] = self.get(path, query).get("items") or ()
        return found

    def readable_items(self, path: str, query: Mapping[str, str] | None = None) -> Sequence[Object] | None:
        """The items of a list; None if the user may not list them, or the kind is not served. Raises RequestFailed."""
        try:
            return self.items(path, query)
        except RequestFailed as failure:
            if failure.is_denied or failure.is_missing:
                return None
            raise

    def namespace(self) -> str:
        """The namespace of the context."""
        return self._run("config", "view", "--minify", "-o", "jsonpath={..namespace}").strip() or "default"

    def post(self, path: str, body: Object) -> Object:
        """The answer to a POST. Raises RequestFailed."""
        return self._json("create", "--raw", path, "-f", "-", given=json.dumps(body))

    def applied(self, file: str, namespace: str) -> Object:
        """The object, or the list of objects, that `kubectl apply` of a file would result in, by a dry run on the
        server; `-` is standard input. Raises RequestFailed."""
        place = [f"--namespace={namespace}"] if namespace else []
        given = sys.stdin.read() if file == "-" else ""
        try:
            return self._json("apply", "--dry-run=server", "-o", "json", *place, "-f", file, given=given)
        except RequestFailed as failure:
            hint = "; diff -f writes nothing, and needs the right to" if failure.is_denied else ""
            raise RequestFailed(f"{_reason(str(failure))}{hint}", failure.status) from failure

    def may(self, verb: str, group: str, resource: str, namespace: str) -> bool:
        """True if the user may do this in a namespace, by a SelfSubjectAccessReview; False also if the cluster does not
        tell."""
        attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        try:
            answer = self.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        except RequestFailed:
            return False
        return (answer.get("status") or {}).get("allowed") is True

    def lines(self, *arguments: str) -> Sequence[str]:
        """The lines of what kubectl prints. Raises RequestFailed."""
        return [line for line in self._run(*arguments).splitlines() if line]

    def changes(self, *arguments: str) -> Iterator[str]:
        """A line for each change that `kubectl get --watch` reports, until the server ends the watch, as it does now
        and then. Raises RequestFailed."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            command = [*self.command, *arguments]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8") as process:
                assert process.stdout is not None
                try:
                    yield from process.stdout
                    process.wait()
                finally:
                    process.terminate()
            if process.returncode:
                errors.seek(0)
                raise RequestFailed(errors.read().strip(), process.returncode)

    def _json(self, *arguments: str, given: str = "") -> Object:
        text = self._run(*arguments, given=given)
        try:
            document: Any = json.loads(text)
        except ValueError as error:
            raise RequestFailed(f"error: {' '.join(arguments)}: the answer is no JSON: {error}", 1) from error
        return document if isinstance(document, dict) else {}

    def _run(self, *arguments: str, given: str = "") -> str:
        try:
            # kubectl writes UTF-8, whatever the locale is
            done = subprocess.run(
                [*self.command, *arguments],
                input=given,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise RequestFailed(f"error: cannot run {self.command[0]}: {error}", 1) from error
        if done.returncode:
            raise RequestFailed(done.stderr.strip(), done.returncode)
        self._print_warnings([line for line in done.stderr.splitlines() if _OF_APPLY not in line])
        return done.stdout

    def _print_warnings(self, lines: Sequence[str]) -> None:
        """Prints each warning once: a dry run and the question after it have the same."""
        sys.stderr.write("".join(f"{printable(line)}\n" for line in lines if line not in self._warnings))
        self._warnings.update(lines)


def _reason(message: str) -> str:
    """The answer of the server to an apply, without the patch that kubectl prints as well, and without its warnings."""
    lines = [line for line in message.splitlines(keepends=True) if not line.startswith("Warning: ")]
    text = "".join(lines)
    for dump in _DUMPS:
        text = dump.sub("", text)
    return text


def _installed() -> str:
    """The kubectl on the PATH, or else the one that is installed beside the plugin."""
    beside = Path(sys.prefix) / "bin" / "kubectl"
    return shutil.which("kubectl") or (str(beside) if beside.is_file() else "kubectl")


def tenant_path(namespace: str, name: str = "", subresource: str = "") -> str:
    """The path of the Tenants of a namespace, or of all, of one Tenant, or of its subresource."""
    parts = [TENANTS, *(["namespaces", quote(namespace)] if namespace else []), "tenants", quote(name), subresource]
    return "/".join(part for part in parts if part)
