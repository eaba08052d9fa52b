"""`factbook import catalog` from a process of another Factbook."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.cli.conftest import Command
from tests.fakes import faults
from tests.fakes.backstage import TOKEN, FakeBackstage
from tests.fakes.serving import served
from tests.processes import serving
from tests.service import PUSH, component

ORPHANS = Path(__file__).parents[1] / "data/reports/28-orphans-of-another-catalog/entities.json"


@pytest.fixture
def import_catalog(
    factbook: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    monkeypatch.setenv("FACTBOOK_OUTGOING_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("CATALOG_TOKEN", TOKEN)
    database = f"--database-url=sqlite:///{tmp_path}/own.db"
    return lambda url, *options: factbook("import", "catalog", "--address", url, database, *options)


def test_orphans_are_left_out_and_counted(import_catalog: Callable[..., Result]) -> None:
    fake = FakeBackstage(json.loads(ORPHANS.read_text()))
    marks: list[tuple[str, Any]] = [("untrue", "false"), ("boolean", True), ("empty", "")]
    for name, orphan in marks:
        fake.add(component(name))["metadata"]["annotations"]["backstage.io/orphan"] = orphan
    with served(fake) as url:
        report = json.loads(import_catalog(url, "--json").stdout)
        text = import_catalog(url, "--plan").stdout
        [uid] = (uid for uid, one in fake.entities.items() if one["metadata"]["name"] == "live")
        fake.entities[uid]["metadata"]["annotations"]["backstage.io/orphan"] = "true"
        later = json.loads(import_catalog(url, "--json").stdout)
    difference = [one["entityRef"] for one in report["parts"][0]["difference"]]
    assert difference == [f"component:default/{name}" for name in ("empty", "live", "untrue")]
    assert report["leftOut"] == {"orphans": 2}
    assert "Left out: 2 orphans" in text.splitlines()
    assert (later["leftOut"], later["parts"][0]["changes"]["removed"]) == ({"orphans": 3}, 1)


def test_a_sign_in_page_in_place_of_json_removes_nothing_and_is_one_sentence(
    import_catalog: Callable[..., Result],
) -> None:
    fake = FakeBackstage([component("shop")])
    with served(fake) as url:
        assert import_catalog(url).exit_code == 0
        fake.fail("page", faults.not_json, times=20)
        answer = import_catalog(url, "--json")
    [part] = json.loads(answer.stdout)["parts"]
    assert (answer.exit_code, part["state"], part["changes"]["removed"]) == (1, "partial", 0)
    [problem] = part["problems"]
    assert "answered 200 with a body that is not JSON" in problem["message"]
    assert len(problem["message"]) < 200
    assert "<html>" not in answer.stdout + answer.stderr


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
