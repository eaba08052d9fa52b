"""`factbook sources test --recorded`: a trial is recorded once and replayed without a server."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.cli.bridge import SOURCES
from tests.cli.conftest import Command
from tests.cli.fake_server import FakeServer, component
from tests.cli.trials import BUILD, WEB, answer, builds, trial, tried

RECORDING = Path("recorded/builds/component.default.web.recording.json")


def record(factbook: Command, *more: str, document: dict[str, Any] | None = None) -> Result:
    return tried(factbook, "--recorded", "recorded", *more, document=document)


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
    assert shown["reasons"] == {
        "duration": "bad-definition: schema.duration.type: expected an integer, not this number"
    }
    assert found.exit_code == 1


def test_a_definition_that_asks_for_something_else_is_not_replayed(
    factbook: Command, prepared: FakeServer
) -> None:
    record(factbook)
    found = record(factbook, document=builds(path="/jobs/{{ metadata.name }}/first"))
    assert found.exit_code == 2
    assert "builds sends a different request from the recorded one; --record" in found.stderr


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
    server.on("GET", WEB, component("web"))
    found = record(factbook)
    assert found.exit_code == 2
    assert message in found.stderr
    assert not RECORDING.exists()


def test_a_recording_that_is_none_is_told(
    factbook: Command, server: FakeServer, subtests: pytest.Subtests
) -> None:
    RECORDING.parent.mkdir(parents=True)
    for data in [b"", b"{}", b"[1]", b"\xff", b'{"source":' * 5000, b" " * 20_000_000]:
        with subtests.test(data=data):
            RECORDING.write_bytes(data)
            found = record(factbook)
            assert found.exit_code == 2
            assert found.stderr.startswith(f"Error: {RECORDING} ")
            assert server.requests == []


def test_to_record_needs_a_place(factbook: Command, server: FakeServer) -> None:
    found = tried(factbook, "--record")
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
    server.on("GET", WEB, component("web"))
    first = record(factbook, "--json", document=document)
    again = record(factbook, "--json", document=document)
    assert first.exit_code == again.exit_code == 0
    assert again.stdout == first.stdout
    assert "Replayed" in again.stderr
