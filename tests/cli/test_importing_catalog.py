"""`factbook import catalog` from a process of another Factbook."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.processes import serving
from tests.service import PUSH, component


@pytest.mark.slow
def test_the_entities_of_another_process_come_and_stay_when_it_refuses(
    factbook: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTBOOK_OUTGOING_NETWORKS", "127.0.0.0/8")
    with serving(f"sqlite:///{tmp_path}/peer.db", tmp_path) as peer:
        token = peer.token()
        with peer.client(token) as http:
            http.put(f"{PUSH}/sets/x", json={"items": [component(f"c{n}") for n in range(20)]})
        arguments = [
            "import",
            "catalog",
            f"--address={peer.url}",
            "--filter=kind=component",
            f"--database-url=sqlite:///{tmp_path}/own.db",
            "--json",
        ]
        monkeypatch.setenv("CATALOG_TOKEN", token)
        planned = factbook(*arguments, "--plan")
        assert planned.exit_code == 0, planned.stderr
        [part] = json.loads(planned.stdout)["parts"]
        assert (part["part"], part["changes"]["added"]) == ("catalog/entities", 20)
        assert factbook(*arguments).exit_code == 0
        monkeypatch.setenv("CATALOG_TOKEN", "a-token-withdrawn")
        refused = factbook(*arguments)
        [part] = json.loads(refused.stdout)["parts"]
        assert (refused.exit_code, part["state"], part["entities"]) == (1, "partial", 20)
        assert "a-token-withdrawn" not in refused.stdout + refused.stderr
