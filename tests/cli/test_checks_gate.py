"""`factbook checks gate`: whether an entity has a level, and what is missing."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.cli.fake_server import FakeServer

API = "/api/tech-insights/v1"
REF = "component:default/payments"
ARGUMENTS = ("checks", "gate", "--entity", "payments", "--scorecard", "ready", "--level")
STEP = {
    "checkId": "protected",
    "title": "Protected branch",
    "state": "fail",
    "level": "gold",
    "gain": 0.5,
    "effort": 1,
    "message": "Protect it.",
}


@pytest.fixture
def standing(server: FakeServer) -> Any:
    """Makes the server say where the entity stands."""

    def stands(level: str | None, level_if_known: str | None) -> None:
        shown = {
            "id": "ready",
            "title": "Ready",
            "version": "1.0.0",
            "draft": False,
            "tag": "1.0.0-1",
            "levels": ["bronze", {"id": "silver", "title": "Silver"}, "gold"],
        }
        server.on("GET", f"{API}/scorecards/ready", shown)
        answer = {
            "entityRef": REF,
            "scorecardId": "ready",
            "level": level,
            "levelIfKnown": level_if_known,
            "score": 50,
            "coverage": 100,
            "steps": [STEP],
        }
        server.on("GET", f"{API}/scorecard-results/ready/next-steps", answer)

    return stands


@pytest.mark.parametrize("level", ["bronze", "silver"])
def test_an_entity_with_the_level_or_a_higher_one_passes(
    factbook: Command, standing: Any, level: str
) -> None:
    standing("silver", "silver")

    answer = factbook(*ARGUMENTS, level)

    assert (answer.exit_code, answer.stdout) == (0, f"{REF}: silver of ready\n")


@pytest.mark.parametrize("level", [None, "silver"])
def test_an_entity_below_the_level_does_not_pass(
    factbook: Command, standing: Any, level: str | None
) -> None:
    standing(level, level)

    answer = factbook(*ARGUMENTS, "gold")

    assert answer.exit_code == 1
    assert "  fail: Protected branch (protected): Protect it." in answer.stdout.splitlines()
    assert f"{REF} does not have the level gold of ready." in answer.stderr


def test_what_is_unknown_keeps_from_a_level_unless_it_is_said_otherwise(
    factbook: Command, standing: Any
) -> None:
    standing("bronze", "gold")

    strict, lenient = factbook(*ARGUMENTS, "gold"), factbook(*ARGUMENTS, "gold", "--if-known")

    assert (strict.exit_code, lenient.exit_code) == (1, 0)
    assert f"{REF}: bronze of ready, gold once everything is known" in strict.stdout


def test_the_result_is_json(factbook: Command, standing: Any) -> None:
    standing("silver", "gold")

    found = json.loads(factbook(*ARGUMENTS, "gold", "--json").stdout)

    assert (found["passed"], found["level"], found["levelIfKnown"]) == (False, "silver", "gold")
    assert found["missing"] == [{"checkId": "protected", "state": "fail", "level": "gold"}]


def test_a_level_that_there_is_not_is_wrong_usage(factbook: Command, standing: Any) -> None:
    standing("silver", "silver")

    answer = factbook(*ARGUMENTS, "platinum")

    assert answer.exit_code == 2
    assert "ready has no level platinum; its levels: bronze, silver, gold." in answer.stderr
