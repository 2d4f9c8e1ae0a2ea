"""A PKI in a directory: one CA signs the serving certificate and, on the embedded host, client certificates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from apiserver.tls import certificates
from apiserver.tls.certificates import KeyPair
from registry.embedded.auth import signing_key
from registry.embedded.auth.signing_key import SigningKey
from registry.names import ROOT_NAMESPACE
from tenant_apiserver.certificates import kubeconfig as kubeconfigs
from tenant_apiserver.certificates.kubeconfig import write_private
from tenant_apiserver.options.command_line import KubeconfigOptions

MASTERS = "system:masters"
ADMIN = "admin"
# The process itself is a component of the platform, like the ones that layer 3 of the host policy trusts.
COMPONENT = "system:serviceaccount:cozy-system:tenant-apiserver"
_COMPONENT_GROUPS = (MASTERS, "system:serviceaccounts", "system:serviceaccounts:cozy-system")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class PkiUnusable(Exception):
    """What is kept of the CA cannot be read. A new one would shut out everybody whom the old one has let in."""


class LocalPki:
    """Key pairs under `directory`, made when they are missing and made anew when two thirds of their time are over."""

    def __init__(self, directory: Path, *, name: str = "tenant-apiserver CA") -> None:
        """`name` is the common name of a CA that has to be made."""
        self._directory = directory
        self._name = name

    def exists(self) -> bool:
        return (self._directory / "ca.crt").is_file()

    def ca(self) -> KeyPair:
        """Raises PkiUnusable."""
        stored = self._stored("ca")
        if stored is None:
            return self._store("ca", certificates.make_ca(self._name))
        if not certificates.is_matching_pair(stored):
            raise PkiUnusable(f"{self.path('ca')[0]} is damaged, or ca.key is not its key")
        return stored

    def serving(self, names: Sequence[str]) -> KeyPair:
        """A serving certificate for DNS names and IP addresses, and for localhost."""
        names = list(dict.fromkeys([*names, *LOCAL_NAMES]))
        stored = self._current("serving")
        if stored is not None and certificates.valid_for_names(stored.certificate, names):
            return stored
        return self._store("serving", certificates.make_serving(self.ca(), names))

    def client(self, name: str, user: str, groups: Sequence[str]) -> KeyPair:
        """A kept client certificate, in files called `name`."""
        return self._current(name) or self._store(name, certificates.make_client(self.ca(), user, groups))

    def component(self) -> KeyPair:
        """What the process itself shows to the embedded host."""
        return self.client("component", COMPONENT, _COMPONENT_GROUPS)

    def token_key(self) -> SigningKey:
        """What the embedded host signs tokens with. Raises PkiUnusable."""
        path = self._directory / "service-accounts.key"
        if not path.is_file():
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(path, signing_key.generate_key())
        try:
            return SigningKey(path.read_bytes())
        except ValueError as error:
            raise PkiUnusable(f"{path} is damaged: {error}") from error

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
    """A kubeconfig of a member of system:masters."""
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
    """The `kubeconfig` command: a client certificate for a user and groups of the embedded host."""
    pki = LocalPki(options.data_dir / "pki")
    written = options.data_dir / "kubeconfig"
    if not pki.exists() or not (options.server or written.is_file()):
        print(f"tenant-apiserver kubeconfig: {options.data_dir} is no data directory of a server", file=sys.stderr)
        return 1
    try:
        ca = pki.ca()
    except PkiUnusable as error:
        print(f"tenant-apiserver kubeconfig: {error}", file=sys.stderr)
        return 1
    pair = certificates.make_client(ca, options.user, options.groups)
    text = kubeconfigs.render(
        server=options.server or kubeconfigs.server_of(written),
        ca=ca.certificate,
        certificate=pair.certificate,
        key=pair.key,
        user=options.user,
        namespace=ROOT_NAMESPACE,
    )
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_private(options.output, text.encode())
    return 0
