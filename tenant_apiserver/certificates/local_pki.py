"""A PKI in a directory: a CA that signs the serving certificate and, in standalone mode, client certificates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from apiserver.authorization.authorizer import MASTERS
from apiserver.private_files import write_private
from apiserver.tls import certificates
from apiserver.tls.certificates import KeyPair
from registry.embedded.auth import signing_key
from registry.embedded.auth.signing_key import SigningKey
from registry.names import ROOT_NAMESPACE
from tenant_apiserver.certificates import kubeconfig as kubeconfigs
from tenant_apiserver.data_directory import KUBECONFIG, PKI, TargetRefused, check_replaceable
from tenant_apiserver.options.command_line import KubeconfigOptions

ADMIN = "admin"
# The process itself acts as a platform component, which layer 3 of the host policy trusts.
COMPONENT = "system:serviceaccount:cozy-system:tenant-apiserver"
_COMPONENT_GROUPS = (MASTERS, "system:serviceaccounts", "system:serviceaccounts:cozy-system")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class PkiUnusable(Exception):
    """The stored CA or signing key cannot be read. It is not replaced, because all credentials depend on it."""


class LocalPki:
    """Key pairs in files under `directory`, created if missing and renewed after two thirds of their lifetime."""

    def __init__(self, directory: Path, *, name: str = "tenant-apiserver CA") -> None:
        """`name` is the common name of a new CA."""
        self._directory = directory
        self._name = name

    def exists(self) -> bool:
        return (self._directory / "ca.crt").is_file()

    def ca(self) -> KeyPair:
        """Returns the CA, creating it if missing. Raises PkiUnusable."""
        stored = self._stored("ca")
        if stored is None:
            return self._store("ca", certificates.make_ca(self._name))
        if not certificates.is_matching_pair(stored):
            raise PkiUnusable(f"{self.path('ca')[0]} is damaged or does not match ca.key: restore both files")
        return stored

    def serving(self, names: Sequence[str]) -> KeyPair:
        """Returns a serving certificate for these DNS names and IP addresses, and for localhost."""
        names = list(dict.fromkeys([*names, *LOCAL_NAMES]))
        stored = self._current("serving")
        if stored is not None and certificates.valid_for_names(stored.certificate, names):
            return stored
        return self._store("serving", certificates.make_serving(self.ca(), names))

    def client(self, name: str, user: str, groups: Sequence[str]) -> KeyPair:
        """Returns a client certificate that is stored in files called `name`."""
        return self._current(name) or self._store(name, certificates.make_client(self.ca(), user, groups))

    def component(self) -> KeyPair:
        """The client certificate of the process itself for the embedded cluster."""
        return self.client("component", COMPONENT, _COMPONENT_GROUPS)

    def token_key(self) -> SigningKey:
        """The key that signs the embedded cluster's service account tokens. Raises PkiUnusable."""
        path = self._directory / "service-accounts.key"
        if not path.is_file():
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(path, signing_key.generate_key())
        try:
            return SigningKey(path.read_bytes())
        except ValueError as error:
            raise PkiUnusable(f"{path} is damaged, restore it: {error}") from error

    def path(self, name: str) -> tuple[Path, Path]:
        return self._directory / f"{name}.crt", self._directory / f"{name}.key"

    def _current(self, name: str) -> KeyPair | None:
        stored = self._stored(name)
        if stored is None or not certificates.is_matching_pair(stored):
            return None
        if certificates.should_renew(stored.certificate, datetime.now(UTC)):
            return None
        return stored if certificates.issued_by(stored.certificate, self.ca().certificate) else None

    def _stored(self, name: str) -> KeyPair | None:
        certificate, key = self.path(name)
        if not certificate.is_file() or not key.is_file():
            return None
        return KeyPair(certificate=certificate.read_bytes(), key=key.read_bytes())

    def _store(self, name: str, pair: KeyPair) -> KeyPair:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        certificate, key = self.path(name)
        write_private(key, pair.key)
        write_private(certificate, pair.certificate)
        return pair


def admin_kubeconfig(pki: LocalPki, server: str) -> str:
    """Renders a kubeconfig for a member of system:masters."""
    pair = pki.client(ADMIN, ADMIN, (MASTERS,))
    return kubeconfigs.render(
        server=server,
        ca=pki.ca().certificate,
        certificate=pair.certificate,
        key=pair.key,
        user=ADMIN,
        namespace=ROOT_NAMESPACE,
    )


def kubeconfig(options: KubeconfigOptions) -> int:
    """The `kubeconfig` command: issues a client certificate for a user and groups of the embedded cluster."""
    pki = LocalPki(options.data_dir / PKI)
    existing = options.data_dir / KUBECONFIG
    if not pki.exists() or not (options.server or existing.is_file()):
        return _fail(f"{options.data_dir} is not the data directory of a standalone server; name it with --data-dir")
    try:
        ca = pki.ca()
    except PkiUnusable as error:
        return _fail(str(error))
    pair = certificates.make_client(ca, options.user, options.groups)
    text = kubeconfigs.render(
        server=options.server or kubeconfigs.server_of(existing),
        ca=ca.certificate,
        certificate=pair.certificate,
        key=pair.key,
        user=options.user,
        namespace=ROOT_NAMESPACE,
    )
    if options.output is None:
        sys.stdout.write(text)
        return 0
    try:
        check_replaceable(options.output, options.data_dir)
        write_private(options.output, text.encode())
    except TargetRefused as error:
        return _fail(f"--output={options.output}: {error}")
    except OSError as error:
        return _fail(f"--output={options.output}: {error.strerror}")
    return 0


def _fail(problem: str) -> int:
    print(f"tenant-apiserver kubeconfig: {problem}", file=sys.stderr)
    return 1
