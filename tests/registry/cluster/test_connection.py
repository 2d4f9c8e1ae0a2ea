"""Connection settings from a kubeconfig or a pod."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from apiserver.tls.certificates import make_ca
from registry.cluster.client import HttpClusterClient
from registry.cluster.connection import load_in_cluster
from registry.cluster.interface import NAMESPACES
from registry.cluster.kubernetes_asyncio_shim import Configuration
from tests.registry.cluster.http_server import Server


async def test_a_kubeconfig_provides_the_address_and_the_credentials(
    server: Server, address: str, tmp_path: Path
) -> None:
    """R-339."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    client = await HttpClusterClient.connect(path)
    try:
        await client.get(NAMESPACES, "", "default")
    finally:
        await client.close()
    assert server.headers[0]["Authorization"] == "Bearer secret"


def test_the_service_account_is_used_within_a_cluster_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R-339: outside of a cluster there is none to load."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert not load_in_cluster(Configuration())
    for name, content in (("token", b"secret"), ("ca.crt", make_ca("cluster").certificate)):
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("kubernetes_asyncio.config.incluster_config.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr("kubernetes_asyncio.config.incluster_config.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    configuration = Configuration()
    assert load_in_cluster(configuration)
    assert (configuration.host, configuration.ssl_ca_cert) == ("https://192.0.2.1:443", str(tmp_path / "ca.crt"))


async def test_a_missing_kubeconfig_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no usable kubeconfig"):
        await HttpClusterClient.connect(tmp_path / "missing")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("root:x:0:0", id="another file"),
        pytest.param("- a", id="a list"),
        pytest.param("a: [", id="malformed YAML"),
        pytest.param("clusters: 5\ncurrent-context: c", id="a number as clusters"),
        pytest.param(
            "current-context: c\ncontexts: [{name: c}]\nclusters: []\nusers: []", id="a context without a cluster"
        ),
        pytest.param(
            "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
            "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority-data: YQ==}}]\n"
            "users: [{name: u, user: {}}]",
            id="an invalid CA",
        ),
    ],
)
async def test_the_error_of_an_invalid_kubeconfig_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ValueError, match="no usable kubeconfig") as raised:
        await HttpClusterClient.connect(path)
    assert "\n" not in str(raised.value)
