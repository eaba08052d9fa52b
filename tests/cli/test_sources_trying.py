"""`factbook sources test`: on a server that gives prepared answers, and from recordings."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Command
from tests.cli.fake_server import FakeServer, component

SOURCES = "/api/tech-insights/v1/data-sources"
BUILD = {"result": "success", "seconds": 12.5, "branch": "main"}
REQUEST = {
    "method": "GET",
    "path": "/jobs/web/last",
    "headers": {"x-team": "hunter2"},
    "body": None,
}
RECORDING = Path("recorded/builds/component.default.web.recording.json")


def builds(**config: Any) -> dict[str, Any]:
    """A source that asks a connection."""
    return {
        "id": "builds",
        "title": "Builds",
        "handlerDefinition": {
            "type": "http",
            "config": {
                "id": "builds",
                "connection": "ci",
                "path": "/jobs/{{ metadata.name }}/last",
                "headers": {"x-team": "hunter2"},
                **config,
            },
        },
        "schema": {
            "passed": {"type": "boolean", "extract": {"jmespath": "result == 'success'"}},
            "duration": {"type": "float", "extract": {"jmespath": "seconds"}},
            "coverage": {"type": "float", "extract": {"jmespath": "coverage"}},
        },
    }


def written(document: dict[str, Any], name: str = "builds.yaml") -> str:
    Path(name).write_text(yaml.safe_dump(document, sort_keys=False))
    return name


def answer(body: str, **more: Any) -> dict[str, Any]:
    return {
        "status": 200,
        "contentType": "application/json",
        "body": body,
        "truncated": False,
    } | more


def trial(body: str = json.dumps(BUILD), **more: Any) -> dict[str, Any]:
    """What the server says of a trial of `builds`."""
    return {
        "request": REQUEST,
        "answer": answer(body),
        "facts": {"passed": True, "duration": 12.5},
        "reasons": {"coverage": "not-applicable: the document has no such value"},
    } | more


@pytest.fixture
def prepared(server: FakeServer) -> FakeServer:
    """A server that tries `builds` on the component web."""
    server.on("POST", f"{SOURCES}/builds/test", trial())
    server.on("GET", "/api/catalog/entities/by-name/component/default/web", component("web"))
    return server


def test_a_trial_shows_the_request_the_answer_and_the_facts_with_their_types(
    factbook: Command, prepared: FakeServer
) -> None:
    found = factbook("sources", "test", written(builds()), "--entity", "web")
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
    found = factbook("sources", "test", written(builds()), "--entity", "web", "--json")
    (shown,) = json.loads(found.stdout)
    assert shown["id"] == "builds"
    assert shown["answer"] == trial()["answer"]
    assert shown["facts"] == trial()["facts"]
    assert "hunter2" not in found.output


def test_a_long_answer_is_shown_in_part(factbook: Command, server: FakeServer) -> None:
    body = "\n".join(["x" * 500] * 50) + "\x1b[2J"
    server.on("POST", f"{SOURCES}/builds/test", trial(body))
    found = factbook("sources", "test", written(builds()), "--entity", "web")
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
    found = factbook("sources", "test", written(builds()), "--entity", "web")
    assert (found.exit_code, found.stderr) == (1, "Error: Facts have problems: builds.\n")
    assert shown in found.stdout


def test_problems_of_the_file_are_told_without_asking(
    factbook: Command, server: FakeServer
) -> None:
    found = factbook("sources", "test", written(builds(colour="red")), "--entity", "web")
    assert found.exit_code == 2
    assert "handlerDefinition.config.colour: is not a setting" in found.stderr
    assert server.requests == []


# Recordings


def record(factbook: Command, *more: str, document: dict[str, Any] | None = None) -> Any:
    file = written(document or builds())
    return factbook("sources", "test", file, "--entity", "web", "--recorded", "recorded", *more)


def test_a_trial_is_recorded_and_from_then_on_replayed_without_a_server(
    factbook: Command, prepared: FakeServer
) -> None:
    first = record(factbook)
    assert first.exit_code == 0
    assert first.stderr == f"Recorded: {RECORDING}. Look at it before you commit it.\n"
    kept = json.loads(RECORDING.read_text())
    assert (kept["source"], kept["entity"]["metadata"]["name"]) == ("builds", "web")
    assert json.loads(kept["answer"]["body"]) == BUILD
    assert len(RECORDING.read_text().splitlines()) > 10
    assert "hunter2" not in RECORDING.read_text()
    asked = len(prepared.requests)
    again = record(factbook)
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    assert again.stderr == f"Replayed: {RECORDING}\n"
    assert len(prepared.requests) == asked


def test_a_replay_takes_the_facts_that_the_file_says_now(
    factbook: Command, prepared: FakeServer
) -> None:
    record(factbook)
    changed = builds()
    changed["schema"] = {
        "branch": {"type": "string", "extract": {"jmespath": "branch"}},
        "main": {"type": "boolean", "extract": {"regex": '"main"'}},
        "duration": {"type": "integer", "extract": {"jmespath": "seconds"}},
    }
    found = record(factbook, "--json", document=changed)
    (shown,) = json.loads(found.stdout)
    assert shown["facts"] == {"branch": "main", "main": True}
    assert shown["reasons"] == {"duration": "upstream-error: expected an integer, not this number"}
    assert found.exit_code == 1


def test_a_definition_that_asks_for_something_else_is_not_replayed(
    factbook: Command, prepared: FakeServer
) -> None:
    record(factbook)
    found = record(factbook, document=builds(path="/jobs/{{ metadata.name }}/first"))
    assert found.exit_code == 2
    assert "builds asks for something else than was recorded; --record" in found.stderr


def test_a_recording_is_renewed_on_demand(factbook: Command, prepared: FakeServer) -> None:
    record(factbook)
    prepared.on("POST", f"{SOURCES}/builds/test", trial(json.dumps(BUILD | {"seconds": 1})))
    record(factbook)
    assert "12.5" in RECORDING.read_text()
    record(factbook, "--record")
    record(factbook, "--record")
    assert "12.5" not in RECORDING.read_text()


def test_an_answer_that_was_a_failure_is_replayed_as_one(
    factbook: Command, prepared: FakeServer
) -> None:
    missing = trial(
        answer=answer("no such job", status=404), facts={}, reasons={"": "not-found: answered 404"}
    )
    prepared.on("POST", f"{SOURCES}/builds/test", missing)
    prepared.on("POST", f"{SOURCES}/builds/test", missing)
    record(factbook)
    first = record(factbook, "--record")
    again = record(factbook)
    assert (again.exit_code, again.stdout) == (1, first.stdout)
    assert "No facts: not-found: answered 404" in again.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": None, "facts": {}, "reasons": {"": "rate-limited"}}, "There was no answer"),
        ({"answer": answer("{}", truncated=True)}, "too long to be recorded"),
    ],
)
def test_what_could_not_be_replayed_is_not_recorded(
    factbook: Command, server: FakeServer, change: dict[str, Any], message: str
) -> None:
    server.on("POST", f"{SOURCES}/builds/test", trial(**change))
    server.on("GET", "/api/catalog/entities/by-name/component/default/web", component("web"))
    found = record(factbook)
    assert found.exit_code == 2
    assert message in found.stderr
    assert not RECORDING.exists()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"\xff", b'{"source":' * 5000, b" " * 20_000_000]
)
def test_a_recording_that_is_none_is_told(
    factbook: Command, server: FakeServer, data: bytes
) -> None:
    RECORDING.parent.mkdir(parents=True)
    RECORDING.write_bytes(data)
    found = record(factbook)
    assert found.exit_code == 2
    assert found.stderr.startswith(f"Error: {RECORDING} ")
    assert server.requests == []


def test_to_record_needs_a_place(factbook: Command, server: FakeServer) -> None:
    found = factbook("sources", "test", written(builds()), "--entity", "web", "--record")
    assert (found.exit_code, server.requests) == (2, [])


@pytest.mark.parametrize(
    ("handler", "extract", "request_"),
    [
        (
            {"type": "repository-file", "path": "package.json"},
            "name",
            {"path": "package.json"},
        ),
        ({"type": "repository-directory", "path": "docs"}, "paths[0]", {"path": "docs"}),
        ({"type": "entity"}, "metadata.name", None),
    ],
)
def test_every_collected_type_is_replayed(
    factbook: Command,
    server: FakeServer,
    handler: dict[str, str],
    extract: str,
    request_: dict[str, str] | None,
) -> None:
    config = {name: text for name, text in handler.items() if name != "type"}
    document = {
        "id": "files",
        "title": "Files",
        "handlerDefinition": {"type": handler["type"], "config": {"id": "files", **config}},
        "schema": {"found": {"type": "string", "extract": {"jmespath": extract}}},
    }
    body = json.dumps({"name": "web", "paths": ["web"], "count": 1, "metadata": {"name": "web"}})
    server.on(
        "POST",
        f"{SOURCES}/files/test",
        {
            "request": request_,
            "answer": answer(body, status=None),
            "facts": {"found": "web"},
            "reasons": {},
        },
    )
    server.on("GET", "/api/catalog/entities/by-name/component/default/web", component("web"))
    first = record(factbook, "--json", document=document)
    again = record(factbook, "--json", document=document)
    assert first.exit_code == again.exit_code == 0
    assert again.stdout == first.stdout
    assert "Replayed" in again.stderr


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
    found = factbook("sources", "test", written(document), "--entity", "web")
    assert found.exit_code == 0
    assert "the facts of this source are pushed" in found.stdout
