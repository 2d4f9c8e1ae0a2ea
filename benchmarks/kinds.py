"""The kind whose objects are compared: Tenants, or the applications of an ApplicationDefinition. Both are stored as
HelmReleases, as Flux leaves them in the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from admission.cel.library.regex import matches
from benchmarks import objects
from benchmarks.client import Connection
from benchmarks.objects import RELEASES, Object, slot
from benchmarks.targets.sides import MERGE_PATCH
from benchmarks.targets.target import NAMESPACE, TENANTS
from registry.application.convert import ReleaseDefaults, to_new_release
from registry.application.definition import ApplicationDefinition, parse_definition


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedKind:
    """`make` returns the body that creates an object of this name, `release` the HelmRelease in which it is stored."""

    plural: str
    make: Callable[[str], Object]
    release: Callable[[str], Object]

    @property
    def collection(self) -> str:
        return f"/apis/{TENANTS}/v1alpha1/namespaces/{NAMESPACE}/{self.plural}"

    @property
    def rule(self) -> Mapping[str, Sequence[str]]:
        """The RBAC rule that lets a user do everything with the objects."""
        return {"apiGroups": [TENANTS], "resources": [self.plural], "verbs": ["*"]}

    async def seed(self, connection: Connection, number: int) -> None:
        """Writes the HelmRelease of an object and its status, as the other server and Flux would."""
        name = objects.name("b", number)
        release = self.release(name)
        await connection.call("POST", RELEASES, release)
        path = f"{RELEASES}/{release['metadata']['name']}/status"
        status = {"status": objects.release_status(name)}
        await connection.call("PATCH", path, status, content_type=MERGE_PATCH)


TENANT = ComparedKind(plural="tenants", make=objects.tenant, release=objects.release)


def application_kind(stored: Object) -> ComparedKind:
    """The kind of an ApplicationDefinition as the cluster has it; its objects have an empty spec. Raises
    UnusableDefinition."""
    definition = parse_definition(stored, matches)
    make = partial(_application, definition=definition)
    return ComparedKind(
        plural=definition.plural,
        make=make,
        release=lambda name: to_new_release(make(name), definition, ReleaseDefaults()),
    )


def _application(name: str, *, definition: ApplicationDefinition) -> Object:
    return {
        "apiVersion": f"{TENANTS}/v1alpha1",
        "kind": definition.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"team": "bench", "slot": slot(name)}},
        "spec": {},
    }
