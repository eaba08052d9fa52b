"""`factbook validate`."""

import json
from pathlib import Path

import yaml

from tests.cli.conftest import Command
from tests.cli.fake_server import FakeServer, component

VALIDATE = "/api/catalog/validate-entity"


def test_valid_entities_are_counted(factbook: Command, server: FakeServer) -> None:
    Path("catalog.yaml").write_text(yaml.safe_dump_all([component("a"), component("b")]))
    server.on("POST", VALIDATE, None)
    answer = factbook("validate", "catalog.yaml")
    assert (answer.exit_code, answer.stdout) == (0, "2 entities are valid.\n")
    assert [json.loads(each.content)["entity"] for each in server.requests] == [
        component("a"),
        component("b"),
    ]


def test_standard_input_is_checked(factbook: Command, server: FakeServer) -> None:
    server.on("POST", VALIDATE, None)
    answer = factbook("validate", "-", input=json.dumps(component("a")))
    assert answer.stdout == "1 entity is valid.\n"


def test_every_problem_is_listed_with_its_document(factbook: Command, server: FakeServer) -> None:
    Path("catalog.yaml").write_text(yaml.safe_dump_all([component("a"), component("b")]))
    Path("more.json").write_text(json.dumps(component("c")))
    errors = [{"name": "InputError", "message": text} for text in ("no owner", "no \x1b type")]
    server.on("POST", VALIDATE, None)
    server.on("POST", VALIDATE, {"errors": errors}, 400)
    server.on("POST", VALIDATE, {"errors": errors[:1]}, 400)
    answer = factbook("validate", "catalog.yaml", "more.json")
    assert (answer.exit_code, answer.stdout) == (1, "")
    line = Path("catalog.yaml").read_text().splitlines().index("---") + 2
    assert answer.stderr.splitlines() == [
        "Error: 3 problems:",
        f"  catalog.yaml document 2 (line {line}): no owner",
        f"  catalog.yaml document 2 (line {line}): no \\x1b type",
        "  more.json document 1: no owner",
    ]


def test_a_missing_right_is_exit_code_3(factbook: Command, server: FakeServer) -> None:
    server.refuse("POST", VALIDATE, 403, "It needs catalog.entity.read.")
    answer = factbook("validate", "-", input=json.dumps(component("a")))
    assert (answer.exit_code, answer.stdout) == (3, "")


def test_a_file_without_an_entity_is_wrong_usage(factbook: Command, server: FakeServer) -> None:
    Path("empty.yaml").write_text("---\n")
    answer = factbook("validate", "empty.yaml")
    assert answer.exit_code == 2
    assert answer.stderr == "Error: No entity in empty.yaml.\n"
    assert server.requests == []
