"""What `factbook sources plan` and `apply` show: how files differ from a running service."""

import json

import pytest

from tests.cli.bridge import Run, custom_ids, definition, one, write
from tests.cli.trials import builds
from tests.service import Service


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
    http = builds(
        path="/jobs",
        query={"api_key": "hunter2", "page": "first"},
        body=[{"password": "hunter2"}],
    )
    answer = await served("sources", "apply", write("builds.yaml", http), "--yes")
    assert "hunter2" not in answer.output
    assert "  + handlerDefinition.config.headers.x-team: (not shown)" in answer.stdout
    assert '  + handlerDefinition.config.query.page: "first"' in answer.stdout
    changed = json.loads(json.dumps(http).replace("hunter2", "hunter3"))
    answer = await served("sources", "plan", write("builds.yaml", changed), "--json")
    assert "hunter" not in answer.output
    assert len(json.loads(answer.stdout)[0]["differences"]) == 3
