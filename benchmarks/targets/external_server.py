"""The server of --against: any other Kubernetes-style server, given by its URL, a kubeconfig and a resource name."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import load_kube_config

from apiserver.meta.resource import Object
from benchmarks.client import Endpoint
from benchmarks.targets.custom_resource import as_sent, renamed
from benchmarks.targets.processes import ObservedProcess
from benchmarks.targets.sides import Side
from benchmarks.targets.target import unverified_tls


@dataclass(frozen=True, slots=True)
class ResourceName:
    group: str
    version: str
    plural: str

    @classmethod
    def parse(cls, text: str) -> ResourceName:
        """Parses `group/version/plural`, or `version/plural` for the core group. Raises ValueError."""
        parts = text.split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise ValueError(f"{text!r} is not group/version/plural")
        *group, version, plural = parts
        return cls("".join(group), version, plural)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of the group version, where discovery lists the kind."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    def collection(self, namespace: str) -> str:
        return f"{self.root}/namespaces/{namespace}/{self.plural}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalServer:
    """`pids` are the server's processes if they run on this machine and their processor time is to be measured."""

    url: str
    kubeconfig: Path
    resource: ResourceName
    namespace: str
    pids: tuple[int, ...] = ()

    async def side(self, sample: Object) -> Side:
        """`sample` is a Tenant as we serve it. Objects created in the external server have its content and their own
        kind."""
        user = await self._endpoint()
        resources = (await user.call("GET", self.resource.root))["resources"]
        kinds = [each["kind"] for each in resources if each["name"] == self.resource.plural]
        if not kinds:
            raise ValueError(f"{self.url} serves no {self.resource.plural} in {self.resource.root}")
        return Side(
            title="against",
            user=user,
            collection=self.resource.collection(self.namespace),
            make=partial(self._make, sample=sample, kind=kinds[0]),
            prefix="w",
            serving=lambda: {f"pid {pid}": ObservedProcess(pid) for pid in self.pids},
        )

    def _make(self, name: str, *, sample: Object, kind: str) -> Object:
        obj = as_sent(renamed(sample, name), self.resource.api_version, kind)
        obj["metadata"]["namespace"] = self.namespace
        return obj

    async def _endpoint(self) -> Endpoint:
        configuration = Configuration()
        await load_kube_config(config_file=str(self.kubeconfig), client_configuration=configuration)
        if configuration.verify_ssl:
            tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        else:
            tls = unverified_tls()
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, configuration.key_file)
        endpoint = Endpoint(self.url, tls)
        token = await configuration.get_api_key_with_prefix("BearerToken")
        return replace(endpoint, headers={"Authorization": token}) if token else endpoint
