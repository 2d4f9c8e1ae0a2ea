"""Asks a server to explain something about a tenant below the root."""

from __future__ import annotations

from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Object


def explain(client: Client, tenant: str, about: str = "") -> Object:
    query = {"about": about} if about else {}
    answer: Object = client.get(tenants_path(ROOT, tenant, "explain"), query=query).expect(200)
    return answer
