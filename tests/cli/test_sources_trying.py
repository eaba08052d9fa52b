"""`factbook sources test` on a server that gives prepared answers: what it shows of them."""

import json
from typing import Any

import pytest

from tests.cli.bridge import SOURCES
from tests.cli.conftest import Command
from tests.cli.fake_server import FakeServer
from tests.cli.trials import BUILD, builds, trial, tried


def test_a_trial_shows_the_request_the_answer_and_the_facts_with_their_types(
    factbook: Command, prepared: FakeServer
) -> None:
    found = tried(factbook)
    assert found.exit_code == 0
    assert prepared.sent() == {"entity": "component:default/web", "definition": builds()}
    lines = found.stdout.splitlines()
    assert lines[:4] == [
        "builds about component:default/web",
        "Request: GET /jobs/web/last",
        "Answer: 200 application/json (56 characters)",
        f"  {json.dumps(BUILD)}",
    ]
    assert [line.rstrip().split(maxsplit=3) for line in lines[4:]] == [
        ["Fact", "Type", "Value", "Why none"],
        ["passed", "boolean", "true"],
        ["duration", "float", "12.5"],
        ["coverage", "float", "not-applicable:", "the document has no such value"],
    ]
    assert "hunter2" not in found.output


def test_a_trial_as_json_is_all_of_it(factbook: Command, prepared: FakeServer) -> None:
    found = tried(factbook, "--json")
    (shown,) = json.loads(found.stdout)
    assert shown["id"] == "builds"
    assert shown["answer"] == trial()["answer"]
    assert shown["facts"] == trial()["facts"]
    assert "hunter2" not in found.output


def test_a_long_answer_is_shown_in_part(factbook: Command, server: FakeServer) -> None:
    body = "\n".join(["x" * 500] * 50) + "\x1b[2J"
    server.on("POST", f"{SOURCES}/builds/test", trial(body))
    found = tried(factbook)
    shown = [line for line in found.stdout.splitlines() if line.startswith("  x")]
    assert shown == [f"  {'x' * 200}…"] * 12
    assert "\x1b" not in found.stdout


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (
            {"facts": {}, "reasons": {"": "no-annotation: the entity has no slug"}},
            "No facts: no-an",
        ),
        ({"facts": {}, "reasons": {"": "not-found: ci: answered 404"}}, "No facts: not-found"),
        (
            {"reasons": {"coverage": "upstream-error: expected a number, not this string"}},
            "a number",
        ),
        ({"answer": None, "facts": {}, "reasons": {"": "upstream-error"}}, "No facts: upstream"),
    ],
)
def test_a_fact_with_a_problem_is_exit_code_1(
    factbook: Command, server: FakeServer, change: dict[str, Any], shown: str
) -> None:
    server.on("POST", f"{SOURCES}/builds/test", trial(**change))
    found = tried(factbook)
    assert (found.exit_code, found.stderr) == (1, "Error: Facts have problems: builds.\n")
    assert shown in found.stdout


def test_problems_of_the_file_are_told_without_asking(
    factbook: Command, server: FakeServer
) -> None:
    found = tried(factbook, document=builds(colour="red"))
    assert found.exit_code == 2
    assert "handlerDefinition.config.colour: is not a setting" in found.stderr
    assert server.requests == []


def test_facts_that_are_pushed_cannot_be_tried_but_are_no_problem(
    factbook: Command, server: FakeServer
) -> None:
    document = {
        "id": "pushed",
        "title": "Pushed",
        "handlerDefinition": {"type": "push", "config": {"id": "pushed"}},
        "schema": {"done": {"type": "boolean"}},
    }
    none = {"": "not-applicable: the facts of this source are pushed"}
    server.on(
        "POST",
        f"{SOURCES}/pushed/test",
        {"request": None, "answer": None, "facts": {}, "reasons": none},
    )
    found = tried(factbook, document=document)
    assert found.exit_code == 0
    assert "the facts of this source are pushed" in found.stdout
