"""The hosts of tests/hosting.py are the hosts of these tests."""

from __future__ import annotations

import pytest

from tests.e2e.hosts import E2eHost


@pytest.fixture(scope="session")
def host(running_host: E2eHost) -> E2eHost:
    return running_host
