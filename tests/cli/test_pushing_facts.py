"""`factbook push-facts`, against a running service."""

from typing import Any

import pytest

from factbook.clock import MINUTE
from tests.cli.bridge import Run, definition, write
from tests.service import Service, component

WEB = "component:default/web"
FACTS = "/api/tech-insights/v1/facts/coverage"


@pytest.fixture
async def coverage(served: Run, service: Service) -> str:
    await service.push("all", component("web"))
    await served("sources", "apply", write("coverage.yaml", definition()), "--yes")
    return "coverage"


async def test_facts_are_pushed_with_the_types_of_the_source(
    served: Run, service: Service, coverage: str
) -> None:
    values = ["coverage=81.5", 'branches=["main"]', "passed=true", "tool=1.10"]
    answer = await served("push-facts", coverage, "--entity", "web", *values)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout == "component:default/web: coverage, branches, passed, tool\n"
    found = (await service.http.get(FACTS)).json()
    assert found["entities"][0]["facts"] == {
        "coverage": 81.5,
        "branches": ["main"],
        "passed": True,
        "tool": "1.10",
    }


async def test_facts_without_a_value_are_shown_with_why_there_is_none(
    served: Run, coverage: str
) -> None:
    never = await served("facts", "web", "--source", coverage)
    assert [line.split() for line in never.stdout.splitlines()[:3]] == [
        ["Coverage", "(coverage),", "nothing", "is", "known"],
        ["Fact", "Value", "Why", "unknown"],
        ["all", "never-collected"],
    ]
    await served("push-facts", coverage, "--entity", "web", "coverage=81.5", "passed=true")
    shown = await served("facts", "web", "--source", coverage)
    assert [line.split() for line in shown.stdout.splitlines()[2:]] == [
        ["coverage", "81.5"],
        ["passed", "true"],
        ["all", "others", "not-sent"],
        [],
    ]


async def test_facts_that_a_push_leaves_out_keep_their_values_unless_told_otherwise(
    served: Run, service: Service, coverage: str
) -> None:
    async def pushed(*arguments: str) -> object:
        service.time.advance(MINUTE)
        answer = await served("push-facts", coverage, "--entity", "web", *arguments)
        assert answer.exit_code == 0, answer.output
        return (await service.http.get(FACTS, params={"entity": WEB})).json()["entities"][0]

    await pushed("coverage=81.5", "tool=pytest")
    found: Any = await pushed("passed=true")
    assert found["facts"] == {"coverage": 81.5, "passed": True, "tool": "pytest"}
    assert found["reasons"] == {"": "not-sent"}
    found = await pushed("--unknown", "coverage=no test ran", "--unknown", "branches=forbidden")
    assert found["facts"] == {"passed": True, "tool": "pytest"}
    assert found["reasons"] == {
        "coverage": "upstream-error: no test ran",
        "branches": "forbidden",
    }
    found = await pushed("passed=false", "--replace")
    assert found["facts"] == {"passed": False}


async def test_facts_of_another_time_are_pushed_with_it(
    served: Run, service: Service, coverage: str
) -> None:
    at = "2026-11-20T10:00:00Z"
    arguments = ["--entity", "web", "coverage=1", "--timestamp", at]
    assert (await served("push-facts", coverage, *arguments)).exit_code == 0
    found = (await service.http.get(FACTS)).json()
    assert found["entities"][0]["timestamp"] == "2026-11-20T10:00:00.000+00:00"


async def test_facts_of_another_type_are_wrong_usage(
    served: Run, coverage: str, subtests: pytest.Subtests
) -> None:
    for value, message in [
        ("coverage=much", 'coverage has to be of type number, not "much".'),
        ("passed=yes", 'passed has to be of type boolean, not "yes".'),
        ("none=1", 'There is no fact "none". There are: coverage, branches, passed, tool.'),
        ("coverage", '"coverage" is not of the form name=value.'),
    ]:
        with subtests.test(value=value):
            answer = await served("push-facts", coverage, "--entity", "web", value)
            assert (answer.exit_code, answer.stderr) == (2, f"Error: {message}\n")


async def test_facts_that_the_service_does_not_take_are_listed(served: Run, coverage: str) -> None:
    values = ["coverage=81.5", 'branches=["main", "main"]']
    answer = await served("push-facts", coverage, "--entity", "web", *values)
    assert (answer.exit_code, answer.stdout) == (1, "component:default/web: coverage\n")
    assert answer.stderr.startswith("Error: 1 problem:\n  items[0].facts.branches: ")
    answer = await served("push-facts", coverage, "--entity", "nobody", "coverage=1")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "component:default/nobody" in answer.stderr
