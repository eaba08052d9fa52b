"""What `factbook sources apply` writes to a running service, deletes, or leaves alone."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from factbook.facts.datasource import DataSource, Handler
from tests.cli.bridge import SOURCES, Run, commands, custom_ids, definition, one, write
from tests.conftest import StartService
from tests.service import Service

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
        "Error: Everything that reads these facts would lose them, so nothing was written:",
        "  coverage: passed was boolean, is string",
        "  coverage: tool is removed",
        "--force publishes anyway, under a new major version.",
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


@pytest.mark.slow
async def test_more_sources_than_a_page_holds_are_compared(served: Run) -> None:
    file = write("many.yaml", *(definition(f"source-{n}") for n in range(101)))
    assert (await served("sources", "apply", file, "--yes")).exit_code == 0
    again = await served("sources", "plan", file, "--prune")
    assert (again.exit_code, again.stdout) == (0, "Nothing to do.\n")
