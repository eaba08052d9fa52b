"""Scorecards: what a document may say, and what is refused with its path."""

from typing import Any

import pytest

from factbook.checks.definitions import scorecard
from factbook.checks.definitions.scorecard import (
    ExemptionRules,
    Scorecard,
    ScorecardEntry,
    ScorecardLevel,
    ScorecardTarget,
)
from factbook.clock import DAY
from factbook.errors import InvalidItemsError

DOCUMENT: dict[str, Any] = {
    "id": "readiness",
    "title": "Readiness",
    "description": "Before anybody depends on it.",
    "owner": "group:default/platform",
    "appliesTo": {"kind": "component"},
    "levels": ["bronze", {"id": "silver", "title": "Silver"}],
    "entries": [
        "has-title",
        {"check": "has-owner", "level": "bronze"},
        {"check": "slo", "level": "silver", "weight": 2.5, "advisory": True, "effort": 3},
    ],
    "exemptions": {"maxDays": 180, "approvers": ["platform"], "permanent": True},
    "public": True,
    "target": {"level": "silver", "by": "1970-01-02"},
    "effectiveFrom": "1970-01-03",
    "minimumCoverage": 0.25,
}
CHECKS = {"has-title", "has-owner", "slo"}


def problems_of(document: object, checks: set[str] | None = CHECKS) -> dict[str, str]:
    with pytest.raises(InvalidItemsError) as raised:
        scorecard.parse_scorecard(document, checks)
    problems: list[dict[str, str]] = raised.value.details["problems"]
    return {problem["path"]: problem["message"] for problem in problems}


def test_a_document_is_read() -> None:
    found = scorecard.parse_scorecard(DOCUMENT, CHECKS)
    assert found == Scorecard(
        id="readiness",
        title="Readiness",
        description="Before anybody depends on it.",
        owner="group:default/platform",
        applies_to=[{"kind": "component"}],
        levels=(ScorecardLevel("bronze", "bronze"), ScorecardLevel("silver", "Silver")),
        entries=(
            ScorecardEntry("has-title"),
            ScorecardEntry("has-owner", "bronze"),
            ScorecardEntry("slo", "silver", 2.5, advisory=True, effort=3),
        ),
        exemptions=ExemptionRules(
            max_days=180, approvers=("group:default/platform",), permanent=True
        ),
        public=True,
        target=ScorecardTarget("silver", DAY),
        effective_from=2 * DAY,
        minimum_coverage=0.25,
    )
    assert found.checks == CHECKS
    assert found.ranks == {"bronze": 1, "silver": 2}
    assert not found.is_effective(2 * DAY - 1)
    assert found.is_effective(2 * DAY)
    assert found.target is not None
    assert found.target.ends_at == 2 * DAY


def test_only_id_title_and_entries_are_required() -> None:
    assert set(problems_of({})) == {"id", "title", "entries"}
    found = scorecard.parse_scorecard({"id": "a", "title": "A", "entries": ["slo"]}, CHECKS)
    assert found == Scorecard(id="a", title="A", entries=(ScorecardEntry("slo"),))
    assert found.is_effective(0)


def test_every_mistake_is_reported_with_its_path() -> None:
    document = {
        **DOCUMENT,
        "title": "Read\u200bme",
        "owner": "platform",
        "appliesTo": [],
        "levels": ["bronze", "bronze", {"title": "Silver"}, 7],
        "entries": [
            {"check": "absent", "level": "gold"},
            {"check": "slo", "weight": 0, "effort": True},
            {"check": "slo", "wieght": 1},
            {},
            8,
        ],
        "exemptions": {"maxDays": 0, "approvers": ["a b:c/"], "enabled": "no"},
        "target": {"level": "gold", "by": "2027-02-30"},
        "effectiveFrom": "tomorrow",
        "minimumCoverage": 1.5,
        "draft": True,
    }
    found = problems_of(document)
    assert found.keys() == {
        "title",
        "owner",
        "appliesTo",
        "levels",
        "levels[2].id",
        "levels[3]",
        "entries",
        "entries[0].check",
        "entries[0].level",
        "entries[1].weight",
        "entries[1].effort",
        "entries[2].wieght",
        "entries[3].check",
        "entries[4]",
        "exemptions.maxDays",
        "exemptions.approvers[0]",
        "exemptions.enabled",
        "target.level",
        "target.by",
        "effectiveFrom",
        "minimumCoverage",
        "draft",
    }
    assert found["entries[0].check"] == 'there is no check "absent"'
    assert found["levels"] == 'has the level "bronze" 2 times'


@pytest.mark.parametrize("level", ["none", {"id": "none", "title": "Nothing"}])
def test_a_level_cannot_be_called_as_what_has_none(level: object) -> None:
    """Else nobody could ask for the entities of one of the two."""
    found = problems_of({**DOCUMENT, "levels": ["bronze", level], "entries": ["slo"]})
    assert found["levels"] == 'cannot have the level "none", which stands for no level'


def test_a_level_without_levels_is_refused() -> None:
    document = {
        "id": "a",
        "title": "A",
        "entries": [{"check": "slo", "level": "gold"}],
        "target": {"level": "gold", "by": "2027-01-01"},
    }
    message = "names a level, but the scorecard has no levels"
    assert problems_of(document) == {"entries[0].level": message, "target.level": message}


@pytest.mark.parametrize("document", [None, [], "text", 7])
def test_what_is_no_object_is_refused(document: object) -> None:
    assert problems_of(document) == {"": "a scorecard has to be an object"}


def test_more_than_can_be_stored_is_refused() -> None:
    many = {
        **DOCUMENT,
        "entries": ["slo"] * 1001,
        "levels": [f"l{n}" for n in range(21)],
        "target": None,
    }
    assert problems_of(many) == {
        "entries": "can have 1000 items at most",
        "levels": "can have 20 items at most",
    }


def test_any_check_may_be_named_where_the_known_ones_are_not_given() -> None:
    assert scorecard.parse_scorecard({"id": "a", "title": "A", "entries": ["later"]}).checks == {
        "later"
    }
