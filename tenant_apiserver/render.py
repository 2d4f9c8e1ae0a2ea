"""The `render` command: prints, without a cluster, what the controllers would write with some settings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from apiserver.meta.resource import Key, Object
from apiserver.meta.suggestion import suggest
from controller.platform.settings import PlatformSettings
from controller.publishing.facts import ServicePorts
from controller.publishing.routes.render import render_routes
from controller.publishing.services import SERVICES
from controller.publishing.verdicts import PublishingFacts
from controller.runtime.apply import drop_nulls
from controller.tenantgateway.names import GATEWAY_API_GROUP
from registry.names import canonical_host
from registry.tenantgateway.types import TENANTGATEWAY_NAME
from tenant_apiserver.options.command_line import RenderOptions
from tenant_apiserver.options.settings_file import load_settings


def render(options: RenderOptions) -> int:
    """Prints YAML documents, and on stderr which settings keep routes from being rendered. Returns the exit status,
    which is 0 if there are none, as that of `kubectl get` is."""
    try:
        settings = load_settings(options.config)
    except ValueError as error:
        print(f"tenant-apiserver render: --config: {error}", file=sys.stderr)
        return 2
    for route in platform_routes(settings, options.root_host, options.tlsroute_version):
        print("---")
        print(yaml.safe_dump(route, sort_keys=False), end="")
    for explanation in (unknown_services(settings), missing_routes(settings, options.config)):
        if explanation:
            print(explanation, file=sys.stderr)
    return 0


def unknown_services(settings: PlatformSettings) -> str:
    """The names that are to be published and of no service of the platform; empty if there are none."""
    unknown = [each for each in dict.fromkeys(settings.publishing.exposed_services) if each not in SERVICES]
    if not unknown:
        return ""
    described = ", ".join(each + suggest(each, SERVICES, " (did you mean {}?)") for each in unknown)
    return f"No such services: {described} of publishing.exposedServices; there are {', '.join(SERVICES)}."


def missing_routes(settings: PlatformSettings, file: Path | None) -> str:
    """The settings because of which there are no routes, or not those of all services; empty if there are."""
    flags = {"gateway.platformRoutes": settings.gateway.platform_routes, "gateway.enabled": settings.gateway.enabled}
    if off := [f"{key} is false" for key, is_on in flags.items() if not is_on]:
        return f"No routes: {', '.join(off)} {f'in {file}' if file is not None else 'by default; see --config'}."
    unlisted = [
        name for name, each in SERVICES.items() if each.listed and name not in settings.publishing.exposed_services
    ]
    if not unlisted:
        return ""
    return f"No routes of {', '.join(unlisted)}: publishing.exposedServices does not have them."


def platform_routes(settings: PlatformSettings, root_host: str, tlsroute_version: str) -> Iterator[Object]:
    """The routes of a cluster in which all services of the platform are installed, as objects to create."""
    facts = PublishingFacts(
        enabled=settings.gateway.enabled,
        exposed=settings.publishing.exposed_services,
        host=canonical_host(settings.publishing.host or root_host),
        gateway=Key(settings.publishing.ingress_name, TENANTGATEWAY_NAME),
        platform_routes=settings.gateway.platform_routes,
        backends={
            Key(each.namespace, each.backend): ServicePorts(frozenset({each.port})) for each in SERVICES.values()
        },
    )
    for service, route in render_routes(facts):
        version = tlsroute_version if service.kind == "TLSRoute" else "v1"
        yield {"apiVersion": f"{GATEWAY_API_GROUP}/{version}", "kind": service.kind, **drop_nulls(route)}
