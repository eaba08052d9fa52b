"""Arguments and answer parts shared by the check tools."""

from collections.abc import Awaitable, Mapping
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote, unquote

from msgspec import Meta, UnsetType

from factbook.catalog.store import related_entities
from factbook.checks import scorecard_figures, state
from factbook.checks.results.grader import GradedLevel, GroupHierarchy
from factbook.checks.results.state_store import StateCounts
from factbook.checks.rules.rule_evaluation import Evidence, Explanation
from factbook.checks.scorecard_figures import ScorecardInEffect
from factbook.clock import iso_or_none
from factbook.errors import InputError, NotFoundError, ToolError
from factbook.storage import Database
from factbook.tools import selection
from factbook.tools.tool import (
    Schema,
    describe_argument,
    describe_list,
    describe_record,
    describe_text_member,
    shorten_value,
)

T = TypeVar("T")
DISCOVER = "Call get-scorecard-discovery for the ids of checks and scorecards."
ScorecardId = (
    Annotated[
        str,
        describe_argument(
            "Id of a scorecard, from get-scorecard-discovery; any when left out.", "readiness"
        ),
    ]
    | UnsetType
)
OwnerGroup = (
    Annotated[
        str,
        describe_argument(
            "Owner of the entities, a group with all groups below it; any when left out.",
            "group:default/payments",
            min_length=1,
        ),
    ]
    | UnsetType
)
States = (
    Annotated[
        # `require_states` gives a better message than a decoder would.
        list[Annotated[str, Meta(extra_json_schema={"enum": list(state.WORDS)})]],
        describe_argument(
            f"States to return, of {', '.join(state.WORDS)}; see the description when left out.",
            ["fail", "unknown"],
            max_length=5,
        ),
    ]
    | UnsetType
)
# Longer texts written by people are cut; pages show them in full.
LONGEST_TEXT: Final = 300
MOST_EVIDENCE: Final = 10
_TEXT: Final[Schema] = {"type": "string"}
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
STANDING: Final[Schema] = {
    "level": describe_text_member("Reached for certain; none below the first."),
    "levelIfKnown": describe_text_member("The best that it can be once nothing is unknown."),
    "score": _SHARE,
    "coverage": {"type": "integer", "description": "Percent of the checks that are known."},
}


async def require_existing(found: Awaitable[T]) -> T:
    """Await a lookup; turns NotFoundError into a ToolError that says where ids come from."""
    try:
        return await found
    except NotFoundError as error:
        raise ToolError(f"{error.message} {DISCOVER}") from None


async def find_scorecard_in_effect(database: Database, scorecard_id: str) -> ScorecardInEffect:
    """The scorecard in effect with this id."""
    return await require_existing(scorecard_figures.get_scorecard_in_effect(database, scorecard_id))


def require_states(given: list[str]) -> list[str]:
    """Validate state words; raises ToolError for an unknown one."""
    for word in given:
        if word not in state.WORDS:
            raise ToolError(f'There is no state "{word}". There are: {", ".join(state.WORDS)}.')
    return given


async def list_owner_groups(database: Database, owner: str | UnsetType) -> list[str]:
    """The references of an owner and of all groups below it; none if no owner is given.

    Raises ToolError for an unknown owner.
    """
    if not isinstance(owner, str):
        return []
    try:
        first, *_ = await selection.find_owners_named(database, owner)
    except InputError as error:
        raise ToolError(f"owner: {error.message}") from None
    return sorted(GroupHierarchy(await related_entities.read_group_parents(database)).within(first))


_ANY: Final[Schema] = {
    "anyOf": [{"type": name} for name in ("string", "number", "boolean", "array", "object")]
}
EVIDENCE: Final = describe_list(
    describe_record(
        {
            "fact": describe_text_member(
                "Data source and fact, or entity and a path of its document."
            ),
            "operator": _TEXT,
            "wanted": {"description": "What it is compared with.", **_ANY},
            "value": {"description": "What was found.", **_ANY},
            "state": _TEXT,
            "reason": describe_text_member("Why it is unknown."),
            "collectedAt": _TEXT,
            "stale": {"type": "boolean"},
        },
        ("fact", "operator", "state"),
    )
)


def drop_empty(members: Mapping[str, Any]) -> dict[str, Any]:
    """Drop members that are None or empty."""
    return {name: value for name, value in members.items() if value not in (None, "", [], {})}


def shorten_text(words: str | None) -> str | None:
    """Cut a text written by people if it is long."""
    return words if words is None or len(words) <= LONGEST_TEXT else f"{words[:LONGEST_TEXT]}…"


def render_counts(found: StateCounts) -> dict[str, int]:
    """The counts by state that are not zero."""
    return {word: count for word, count in zip(_WORDS, found, strict=True) if count}


def render_score(given: ScorecardInEffect, graded: GradedLevel) -> dict[str, Any]:
    """Level, score and coverage of an entity."""
    level, if_known = given.words(graded)
    shown = {"level": level, "levelIfKnown": if_known}
    return drop_empty({**shown, "score": graded.score, "coverage": graded.coverage})


def render_explanation(told: Explanation | None, *, values: bool) -> dict[str, Any]:
    """Message, evidence and fix of a result; without `values`, nothing that may reveal a fact."""
    if told is None:
        return {}
    open_ = [one for one in told.because if one.state != state.PASS] or told.because
    fix = drop_empty({"link": told.fix_link, "instructions": shorten_text(told.fix_instructions)})
    return drop_empty(
        {
            "message": shorten_text(told.message) if values else None,
            "because": [_render_evidence(one, values=values) for one in open_[:MOST_EVIDENCE]],
            "fix": fix if values else None,
        }
    )


def _render_evidence(one: Evidence, *, values: bool) -> dict[str, Any]:
    fact = one.leaf.fact
    found, wanted = (shorten_value(value)[0] for value in (one.value, one.wanted))
    shown = {
        "fact": f"{fact.source}:{fact.fact}" + (f" at {fact.path}" if fact.path else ""),
        "operator": one.leaf.operator,
        "wanted": wanted if values else None,
        "value": found if values else None,
        "state": state.name_state(one.state),
        "reason": one.reason,
        "collectedAt": iso_or_none(one.collected_at),
        "stale": one.stale or None,
    }
    return {name: value for name, value in shown.items() if value is not None}


def encode_ref_place(place: str) -> str:
    """Encode a place as a cursor, in characters that every client can show."""
    return quote(place, safe=":/")


def decode_ref_place(cursor: str, parts: str) -> str:
    """The place in a cursor; raises ToolError unless it has all the characters of `parts`."""
    place = unquote(cursor)
    if any(part not in place for part in parts) or "\0" in place:
        raise ToolError(
            "cursor is not the nextCursor of an earlier page. Leave it out to start over."
        )
    return place


_WORDS: Final = ("pass", "fail", "unknown", "exempt", "not-applicable")
