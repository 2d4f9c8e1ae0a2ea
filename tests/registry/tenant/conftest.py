"""A fixture with a backend of Tenants over a fake cluster."""

from __future__ import annotations

import pytest

from tests.registry.tenant.release_cluster import World


@pytest.fixture
def world() -> World:
    return World()
