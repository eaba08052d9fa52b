"""Files that people reported in public, given to the commands that read them."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.cli.bridge import Run
from tests.cli.conftest import Command
from tests.service import Service

REPORTS = Path(__file__).parents[1] / "data" / "reports"


async def test_items_that_are_no_references_are_told_with_their_positions(
    served: Run, service: Service
) -> None:
    file = REPORTS / "01-depends-on-objects" / "entity.yaml"
    answer = await served("push", "t", str(file))
    told = [
        "is an object; write the reference resource:default/orders-db instead",
        "is a number, and no reference like component:default/name",
        "is null, and no reference like component:default/name",
        "is an empty text, and no reference like component:default/name",
        "is a list, and no reference like component:default/name",
    ]
    assert [line.rpartition("spec.dependsOn")[2] for line in answer.stderr.splitlines()[1:]] == [
        f"[{position}]: {message}" for position, message in enumerate(told)
    ]
    entity = await service.catalog("component:default/shop-01")
    assert entity is not None
    assert len(entity["status"]["items"]) == 5
    found = await service.ask("find-entities", dangling="dependsOn")
    [row] = found["structuredContent"]["entities"]
    assert row["dangling"] == ["component:default/basket"]


async def test_a_byte_order_mark_may_begin_each_document(served: Run, service: Service) -> None:
    file = REPORTS / "03-bom-before-second-document" / "two.yaml"
    answer = await served("push", "t", str(file))
    assert (answer.exit_code, answer.stderr) == (0, "")
    for name in ("one-03", "two-03"):
        assert await service.catalog(f"component:default/{name}") is not None


def test_members_of_a_range_are_members(factbook: Command, tmp_path: Path) -> None:
    file = REPORTS / "26-range-of-members" / "people.ldif"
    database = f"--database-url=sqlite:///{tmp_path}/own.db"
    answer = factbook("import", "ldif", str(file), database)
    assert answer.exit_code == 0
    assert answer.output.count("has more values of member than the export") == 2
    planned = json.loads(factbook("import", "ldif", str(file), database, "--plan", "--json").stdout)
    assert [part["entities"] for part in planned["parts"]] == [1, 2]


def test_links_and_solutions_of_checks_are_kept(factbook: Command) -> None:
    file = REPORTS / "45-words-that-help-are-lost" / "app-config.yaml"
    answer = factbook("checks", "import", str(file), "--from", "backstage")
    assert (answer.exit_code, "left out" in answer.output) == (0, False)
    assert "title ${CHECK_NAME} is a variable" in answer.output
    check: dict[str, Any] = yaml.safe_load(Path("checks/titled.yaml").read_text())
    assert check["fix"] == {
        "link": "https://example.com/how",
        "instructions": "Add metadata.title.",
    }
