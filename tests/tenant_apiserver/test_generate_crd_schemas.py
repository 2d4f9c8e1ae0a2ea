from __future__ import annotations

from tenant_apiserver.generate_crd_schemas import SHIPPED, read_crds, render
from tests.server_fixtures import find_control_plane_files


def test_the_shipped_definitions_are_generated_from_the_crds() -> None:
    _, crds = find_control_plane_files()
    shipped = {path.name: path.read_text() for path in SHIPPED.glob("*.json")}
    assert render(read_crds([crds])) == shipped
