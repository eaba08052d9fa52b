"""The settings with which a process in a cluster calls the API server of that cluster."""

from pathlib import Path

import pytest

from factbook.operations import imports
from factbook.operations.imports import settings_in_cluster
from factbook.settings import Settings


@pytest.mark.parametrize(
    ("host", "network"), [("10.96.0.1", "10.96.0.1/32"), ("fd00::1", "fd00::1/128")]
)
def test_only_the_address_of_the_api_server_is_added(
    host: str, network: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "ACCOUNT_FOLDER", str(tmp_path))
    (tmp_path / "ca.crt").write_text("a certificate")
    found = settings_in_cluster(Settings(), {"KUBERNETES_SERVICE_HOST": host})
    assert (found.outgoing_networks, found.outgoing_direct) == ([network], [host])
    assert found.outgoing_ca_file == str(tmp_path / "ca.crt")


@pytest.mark.parametrize("environment", [{}, {"KUBERNETES_SERVICE_HOST": "kubernetes.example"}])
def test_outside_a_cluster_the_settings_stay_as_they_are(environment: dict[str, str]) -> None:
    settings = Settings(outgoing_networks=["192.168.0.0/16"], outgoing_ca_file="ca.pem")
    assert settings_in_cluster(settings, environment) is settings
