"""Derives the settings for the contents of Tenants' Namespaces from the current platform settings."""

from __future__ import annotations

from controller.platform.chart_values import cluster_values, tenantgateway_spec, unconfirmed_keys
from controller.platform.settings import SettingsSource
from controller.publishing.guard import has_publisher
from controller.tenant.namespace_content_steps import ContentSettings
from registry.tenant.tree import TenantTree


def content_settings(settings: SettingsSource, tree: TenantTree) -> ContentSettings:
    return ContentSettings(
        chart=lambda: settings.current.tenants.chart,
        cluster=lambda: cluster_values(settings.current, tree.root_host),
        unconfirmed=lambda: unconfirmed_keys(settings.current, lambda namespace: has_publisher(tree, namespace)),
        limits=lambda: {
            "default": settings.current.tenants.limit_range.default,
            "defaultRequest": settings.current.tenants.limit_range.default_request,
        },
        pool=lambda: settings.current.quotas.pool,
        tenantgateway=lambda apex: tenantgateway_spec(settings.current, apex),
    )
