"""`factbook sources plan` and `apply`, against a running service."""

import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from factbook.facts.datasource import DataSource, Handler
from tests.cli.bridge import Run, commands, definition, write
from tests.conftest import StartService
from tests.service import Service

SOURCES = "/api/tech-insights/v1/data-sources"


async def one(service: Service, id_: str = "coverage") -> dict[str, Any]:
    answer = await service.http.get(f"{SOURCES}/{id_}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def custom_ids(service: Service) -> list[str]:
    found = (await service.http.get(SOURCES)).json()["dataSources"]
    return [source["id"] for source in found if source["origin"] == "custom"]


# What differs


async def test_a_plan_shows_every_field_of_a_new_source_and_writes_nothing(
    served: Run, service: Service
) -> None:
    answer = await served("sources", "plan", write("coverage.yaml", definition()))
    assert answer.exit_code == 5
    lines = answer.stdout.splitlines()
    assert lines[0] == "coverage: is new, coverage.yaml document 1 (line 1)"
    assert '  + handlerDefinition.config.id: "coverage"' in lines
    assert '  + schema.coverage.unit: "percent"' in lines
    assert lines[-1] == "1 to create"
    assert await custom_ids(service) == []


async def test_a_second_apply_has_nothing_to_do(served: Run, service: Service) -> None:
    file = write("coverage.yaml", definition())
    first = await served("sources", "apply", file, "--yes")
    assert first.exit_code == 0, first.output
    assert first.stdout.splitlines()[-1] == "coverage: published, version 1.0.0"
    before = await one(service)
    again = await served("sources", "apply", file, "--yes")
    assert (again.exit_code, again.stdout) == (0, "Nothing to do.\n")
    plan = await served("sources", "plan", file)
    assert (plan.exit_code, plan.stdout) == (0, "Nothing to do.\n")
    assert await one(service) == before


async def test_the_order_of_members_and_the_format_of_a_file_make_no_difference(
    served: Run,
) -> None:
    await served("sources", "apply", write("coverage.yaml", definition()), "--yes")
    turned = dict(reversed(definition().items()))  # and JSON is YAML
    assert (await served("sources", "plan", "-", input=json.dumps(turned))).exit_code == 0


async def test_a_change_is_shown_field_by_field_and_published_as_the_next_version(
    served: Run, service: Service
) -> None:
    await served("sources", "apply", write("coverage.yaml", definition()), "--yes")
    changed = definition(title="How much is covered", description="By tests.")
    changed["schema"]["lines"] = {"type": "integer"}
    answer = await served("sources", "apply", write("coverage.yaml", changed), "--yes")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines() == [
        "coverage: differs, coverage.yaml document 1 (line 1)",
        '  ~ title: "Coverage" → "How much is covered"',
        '  + schema.lines.type: "integer"',
        '  + description: "By tests."',
        "1 to change",
        "coverage: published, version 1.1.0",
    ]
    assert (await one(service))["title"] == "How much is covered"


async def test_a_plan_as_json_has_every_difference(served: Run) -> None:
    await served("sources", "apply", write("coverage.yaml", definition()), "--yes")
    write("coverage.yaml", definition(title="Other"))
    answer = await served("sources", "plan", "coverage.yaml", "--json")
    assert answer.exit_code == 5
    difference = {"path": "title", "before": '"Coverage"', "after": '"Other"'}
    assert json.loads(answer.stdout) == [
        {"id": "coverage", "action": "change", "differences": [difference], "breaking": {}}
    ]


@pytest.mark.parametrize(("variable", "coloured"), [("", True), ("1", False)])
async def test_on_a_terminal_the_difference_is_coloured_unless_that_is_unwanted(
    served: Run, monkeypatch: pytest.MonkeyPatch, variable: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", variable)
    file = write("coverage.yaml", definition())
    answer = await served("sources", "plan", file, color=True)
    assert ("\x1b[32m" in answer.stdout) is coloured
    assert "\x1b" not in (await served("sources", "plan", file)).stdout


async def test_values_that_may_be_secrets_are_not_shown(served: Run) -> None:
    http = {
        "id": "builds",
        "title": "Builds",
        "handlerDefinition": {
            "type": "http",
            "config": {
                "id": "builds",
                "connection": "ci",
                "path": "/jobs",
                "headers": {"x-team": "hunter2"},
                "query": {"api_key": "hunter2", "page": "first"},
                "body": [{"password": "hunter2"}],
            },
        },
        "schema": {"ok": {"type": "boolean", "extract": {"jmespath": "ok"}}},
    }
    answer = await served("sources", "apply", write("builds.yaml", http), "--yes")
    assert "hunter2" not in answer.output
    assert "  + handlerDefinition.config.headers.x-team: (not shown)" in answer.stdout
    assert '  + handlerDefinition.config.query.page: "first"' in answer.stdout
    changed = json.loads(json.dumps(http).replace("hunter2", "hunter3"))
    answer = await served("sources", "plan", write("builds.yaml", changed), "--json")
    assert "hunter" not in answer.output
    assert len(json.loads(answer.stdout)[0]["differences"]) == 3


# Drafts


async def test_drafts_are_left_as_drafts_and_published_by_a_later_apply(
    served: Run, service: Service
) -> None:
    file = write("coverage.yaml", definition())
    answer = await served("sources", "apply", file, "--yes", "--draft")
    assert answer.stdout.splitlines()[-1] == "coverage: written as a draft"
    assert (await one(service))["draft"] is True
    assert (await served("sources", "plan", file, "--draft")).exit_code == 0
    answer = await served("sources", "apply", file, "--yes")
    assert answer.stdout.splitlines() == [
        "coverage: is a draft, to be published, coverage.yaml document 1 (line 1)",
        "1 to publish",
        "coverage: published, version 1.0.0",
    ]


async def test_a_draft_that_somebody_left_gives_way_to_the_file(
    served: Run, service: Service
) -> None:
    file = write("coverage.yaml", definition())
    await served("sources", "apply", file, "--yes")
    await service.http.put(f"{SOURCES}/coverage", json=definition(title="Half an idea"))
    answer = await served("sources", "apply", file, "--yes")
    assert '  ~ title: "Half an idea" → "Coverage"' in answer.stdout
    assert (await one(service))["definition"]["pending"] is False
    assert (await served("sources", "plan", file)).exit_code == 0


# Facts that would be lost


async def test_a_fact_that_is_removed_or_retyped_takes_force(served: Run, service: Service) -> None:
    await served("sources", "apply", write("coverage.yaml", definition()), "--yes")
    changed = definition()
    del changed["schema"]["tool"]
    changed["schema"]["passed"] = {"type": "string"}
    file = write("coverage.yaml", changed)
    other = write("other.yaml", definition("other"))
    answer = await served("sources", "apply", file, other, "--yes")
    assert answer.exit_code == 1
    assert "  ! tool is removed: publishing this takes --force" in answer.stdout
    assert answer.stderr.splitlines() == [
        "Error: Whoever reads these facts would lose them, so that nothing was written:",
        "  coverage: passed was boolean, is string",
        "  coverage: tool is removed",
        "--force publishes nevertheless, under a new major version.",
    ]
    assert await custom_ids(service) == ["coverage"]
    answer = await served("sources", "apply", file, other, "--yes", "--force")
    assert answer.exit_code == 0
    assert "coverage: published, version 2.0.0" in answer.stdout


# Asking


@pytest.mark.parametrize("said", ["n\n", ""])
async def test_without_a_yes_nothing_is_written(served: Run, service: Service, said: str) -> None:
    answer = await served("sources", "apply", write("c.yaml", definition()), input=said)
    assert answer.exit_code == 1
    assert "Error: Nothing was written." in answer.stderr
    assert await custom_ids(service) == []


async def test_a_yes_writes(served: Run, service: Service) -> None:
    answer = await served("sources", "apply", write("c.yaml", definition()), input="y\n")
    assert answer.exit_code == 0
    assert await custom_ids(service) == ["coverage"]


# Deleting


async def test_pruning_deletes_what_no_file_defines_and_says_so_first(
    served: Run, service: Service
) -> None:
    both = write("both.yaml", definition("one"), definition("two"))
    await served("sources", "apply", both, "--yes")
    file = write("one.yaml", definition("one"))
    assert (await served("sources", "plan", file)).exit_code == 0
    plan = await served("sources", "plan", file, "--prune")
    assert plan.exit_code == 5
    assert plan.stdout.splitlines() == [
        "two: is in no file, to be deleted with its facts and their history",
        "1 to delete",
    ]
    answer = await served("sources", "apply", file, "--prune", "--yes")
    assert answer.stdout.splitlines()[-1] == "two: deleted"
    assert await custom_ids(service) == ["one"]
    again = await served("sources", "apply", file, "--prune", "--yes")
    assert (again.exit_code, again.stdout) == (0, "Nothing to do.\n")


async def test_pruning_by_files_without_a_definition_is_refused(
    served: Run, service: Service
) -> None:
    await served("sources", "apply", write("c.yaml", definition()), "--yes")
    write("empty.yaml")
    answer = await served("sources", "apply", "empty.yaml", "--prune", "--yes")
    assert answer.exit_code == 2
    assert answer.stderr == "Error: No definition of a source in empty.yaml.\n"
    assert await custom_ids(service) == ["coverage"]


async def test_pruning_leaves_what_is_not_defined_on_the_server(
    start: StartService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plugged = DataSource(id="plugged", title="Of a plug-in", handler=Handler("other", "plugged"))
    service = await start(sources=(plugged,))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FACTBOOK_TOKEN", await service.token())
    factbook, file = commands(service), write("c.yaml", definition())
    with capture_logs():
        answer = await factbook("sources", "apply", file, "--prune", "--yes")
        again = await factbook("sources", "plan", write("p.yaml", definition("plugged")))
    assert (answer.exit_code, answer.stdout.splitlines()[-2]) == (0, "1 to create")
    assert again.exit_code == 2
    assert "plugged is the id of a builtin source" in again.stderr


# What is refused


async def test_the_id_of_a_builtin_source_is_refused_before_anything_is_written(
    served: Run, service: Service
) -> None:
    file = write("two.yaml", definition(), definition("entity-metadata"))
    answer = await served("sources", "apply", file, "--yes")
    assert answer.exit_code == 2
    assert "two.yaml document 2" in answer.stderr
    assert "entity-metadata is the id of a builtin source" in answer.stderr
    assert await custom_ids(service) == []


async def test_what_the_server_refuses_keeps_no_other_source_from_being_written(
    served: Run, service: Service
) -> None:
    # The id of an integration that is not configured is known to the server alone.
    file = write("two.yaml", definition("github"), definition())
    answer = await served("sources", "apply", file, "--yes")
    assert answer.exit_code == 1
    assert answer.stderr.startswith("Error: The server refused:\n  github: ")
    assert await custom_ids(service) == ["coverage"]


async def test_a_source_that_cannot_be_collected_is_written_and_says_why(served: Run) -> None:
    config = {"id": "builds", "connection": "ci", "path": "/"}
    builds = definition("builds", handlerDefinition={"type": "http", "config": config})
    builds["schema"] = {"ok": {"type": "boolean", "extract": {"jmespath": "ok"}}}
    answer = await served("sources", "apply", write("builds.yaml", builds), "--yes")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[-1].startswith(
        "builds: published, version 1.0.0; it cannot be collected: There is no connection 'ci'."
    )


async def test_a_token_that_may_not_write_is_exit_code_3(
    served: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("coverage.yaml", definition())
    await served("sources", "apply", file, "--yes")
    token = await service.token("tech-insights.data-source.read")
    monkeypatch.setenv("FACTBOOK_TOKEN", token)
    answer = await served("sources", "plan", file)
    assert answer.exit_code == 3
    assert "tech-insights.data-source.write" in answer.stderr
    answer = await served("sources", "apply", write("new.yaml", definition("new")), "--yes")
    assert answer.exit_code == 3
    assert token not in answer.output


async def test_more_sources_than_a_page_holds_are_compared(served: Run) -> None:
    file = write("many.yaml", *(definition(f"source-{n}") for n in range(101)))
    assert (await served("sources", "apply", file, "--yes")).exit_code == 0
    again = await served("sources", "plan", file, "--prune")
    assert (again.exit_code, again.stdout) == (0, "Nothing to do.\n")
