"""`factbook validate`."""

import json
from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs

from tests.cli.bridge import commands, write
from tests.cli.conftest import Command
from tests.cli.fake_server import FakeServer, component
from tests.conftest import StartService
from tests.service import component as sound

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
        f"  catalog.yaml document 2 (line {line}), component:default/b: no owner",
        f"  catalog.yaml document 2 (line {line}), component:default/b: no \\x1b type",
        "  more.json document 1, component:default/c: no owner",
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


def test_what_can_be_read_is_checked_beside_what_cannot(
    factbook: Command, server: FakeServer
) -> None:
    Path("bad.yaml").write_text("a: [\n")
    Path("good.json").write_text(json.dumps(component("c")))
    server.on("POST", VALIDATE, {"errors": [{"name": "InputError", "message": "no owner"}]}, 400)
    answer = factbook("validate", "bad.yaml", "good.json")
    assert (answer.exit_code, answer.stdout) == (2, "")
    first, second, third = answer.stderr.splitlines()
    assert first == "Error: 2 problems:"
    assert second.startswith("  bad.yaml is not valid YAML:")
    assert third == "  good.json document 1, component:default/c: no owner"


async def test_annotations_that_no_integration_can_read_are_warnings(
    start: StartService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = {"github": {"default": {"token": "ghp_a_token_of_tests"}}}
    service = await start(integrations=table, collect=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FACTBOOK_TOKEN", await service.token())
    entity = sound("web")
    entity["metadata"]["annotations"] = {"github.com/project-slug": "acme"}
    file = write("web.yaml", entity)
    with capture_logs():
        answer = await commands(service)("validate", file)
    assert (answer.exit_code, answer.stdout) == (0, "1 entity is valid.\n")
    said = answer.stderr.splitlines()
    assert said[0] == "1 warning:"
    assert said[1].endswith(
        "metadata.annotations: no integration with github can read them: "
        "what the annotation names is not owner/name"
    )
