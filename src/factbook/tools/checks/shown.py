"""Parts of the answers of the tools of checks, without what says nothing."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from factbook.checks import state
from factbook.checks.evaluation.explanation import Evidence, Explanation
from factbook.checks.levels.grader import GradedLevel
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.checks.states.count_store import StateCounts
from factbook.clock import iso_or_none
from factbook.errors import ToolError
from factbook.tools.pages import shortened
from factbook.tools.result_schema import Schema, array, record, text

# Texts of people are cut there; they are read whole on pages.
LONGEST_TEXT: Final = 300
MOST_EVIDENCE: Final = 10

_TEXT: Final[Schema] = {"type": "string"}
_ANY: Final[Schema] = {
    "anyOf": [{"type": name} for name in ("string", "number", "boolean", "array", "object")]
}
_SHARE: Final[Schema] = {"type": "integer", "description": "Percent."}

COUNTS: Final[Schema] = {
    "type": "object",
    "description": "Entities by state; what the check is not about is left out.",
    "additionalProperties": {"type": "integer"},
}
SCORED: Final[Schema] = {
    "type": "integer",
    "description": "Entities with a score: the others are not in the mean.",
}
EVIDENCE: Final = array(
    record(
        {
            "fact": text("Data source and fact, or entity and a path of its document."),
            "operator": _TEXT,
            "wanted": {"description": "What it is compared with.", **_ANY},
            "value": {"description": "What was found.", **_ANY},
            "state": _TEXT,
            "reason": text("Why it is unknown."),
            "collectedAt": _TEXT,
            "stale": {"type": "boolean"},
        },
        ("fact", "operator", "state"),
    )
)
STANDING: Final[Schema] = {
    "level": text("Reached for certain; none below the first."),
    "levelIfKnown": text("The best that it can be once nothing is unknown."),
    "score": _SHARE,
    "coverage": {"type": "integer", "description": "Percent of the checks that are known."},
}


def said(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that say something."""
    return {name: value for name, value in members.items() if value not in (None, "", [], {})}


def short(words: str | None) -> str | None:
    """A text of people, cut where it is long."""
    return words if words is None or len(words) <= LONGEST_TEXT else f"{words[:LONGEST_TEXT]}…"


def counts(found: StateCounts) -> dict[str, int]:
    """The counts by state that are not zero."""
    return {word: count for word, count in zip(_WORDS, found, strict=True) if count}


def standing(given: ScorecardInEffect, graded: GradedLevel) -> dict[str, Any]:
    """Level, score and coverage of an entity."""
    level, if_known = given.words(graded)
    shown = {"level": level, "levelIfKnown": if_known}
    return said({**shown, "score": graded.score, "coverage": graded.coverage})


def explained(told: Explanation | None, *, values: bool) -> dict[str, Any]:
    """Message, evidence and fix of a result; without `values`, nothing that may hold a fact."""
    if told is None:
        return {}
    open_ = [one for one in told.because if one.state != state.PASS] or told.because
    fix = said({"link": told.fix_link, "instructions": short(told.fix_instructions)})
    return said(
        {
            "message": short(told.message) if values else None,
            "because": [_evidence(one, values=values) for one in open_[:MOST_EVIDENCE]],
            "fix": fix if values else None,
        }
    )


def _evidence(one: Evidence, *, values: bool) -> dict[str, Any]:
    fact = one.leaf.fact
    found, wanted = (shortened(value)[0] for value in (one.value, one.wanted))
    shown = {
        "fact": f"{fact.source}:{fact.fact}" + (f" at {fact.path}" if fact.path else ""),
        "operator": one.leaf.operator,
        "wanted": wanted if values else None,
        "value": found if values else None,
        "state": state.word(one.state),
        "reason": one.reason,
        "collectedAt": iso_or_none(one.collected_at),
        "stale": one.stale or None,
    }
    return {name: value for name, value in shown.items() if value is not None}


def cursor_of(place: str) -> str:
    """The cursor after a place, in characters that every client shows."""
    return quote(place, safe=":/")


def place_of(cursor: str, parts: str) -> str:
    """The place in a cursor, which has all of these characters; raises ToolError."""
    place = unquote(cursor)
    if any(part not in place for part in parts) or "\0" in place:
        raise ToolError(
            "cursor is not the nextCursor of an earlier page. Leave it out to start over."
        )
    return place


_WORDS: Final = ("pass", "fail", "unknown", "exempt", "not-applicable")
