"""The endpoint of a kind that the proxy answers from a cache of its own."""

from __future__ import annotations

from admission.chain import Chain
from apiserver.authorization.authorizer import Authorizer
from apiserver.endpoints.installer import Endpoint, install_group_version
from registry.projection.storage import VisibleCollection
from tenant_apiserver.process import Process


def own_endpoint(storage: VisibleCollection, process: Process, authorizer: Authorizer) -> Endpoint:
    resource = storage.resource
    installed = install_group_version(
        group=resource.group,
        version=resource.version,
        storages={resource.plural: storage},
        admission=Chain(()),
        authorizer=authorizer,
        metrics=process.metrics,
        shutdown=process.stages.shutdown,
    )
    return installed.endpoints[resource.plural]
