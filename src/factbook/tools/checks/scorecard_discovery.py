"""get-scorecard-discovery: the scorecards and checks there are, with counts."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct

from factbook.auth.permissions import CHECK_READ
from factbook.checks.definitions import scorecard
from factbook.checks.definitions.check import parse_stored_check
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.levels import level_store
from factbook.checks.results import result_age
from factbook.checks.results.result_age import ResultAges
from factbook.checks.rules import sentence
from factbook.checks.states import count_store
from factbook.checks.states.count_store import StateCounts
from factbook.checks.versions.check_store import StoredCheck, check_store
from factbook.checks.versions.grade_slots import StoredScorecard
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.clock import iso
from factbook.errors import ToolError
from factbook.storage import Database
from factbook.tools.checks.arguments import ScorecardId
from factbook.tools.checks.shown import COUNTS, SCORED, said, short
from factbook.tools.checks.shown import counts as shown_counts
from factbook.tools.result_schema import AGE, SIZE_NOTE, array, record, text
from factbook.tools.tool import Context, Tool, argument, encode


class ScorecardDiscoveryArguments(Struct, forbid_unknown_fields=True):
    """No argument is needed."""

    scorecard_id: ScorecardId = msgspec.field(default=UNSET, name="scorecardId")
    limit: Annotated[
        int, argument("Most scorecards and most checks to return.", 20, ge=1, le=200)
    ] = 50


async def run(arguments: ScorecardDiscoveryArguments, context: Context) -> str:
    """Scorecards with their levels, and the checks of them and outside any."""
    cards = [one for one in await scorecard_store.everything(context.database) if one.published]
    checks = [one for one in await check_store.everything(context.database) if one.published]
    wanted = [one for one in cards if arguments.scorecard_id in (UNSET, one.id)]
    if not wanted and arguments.scorecard_id is not UNSET:
        raise ToolError(
            f'There is no published scorecard "{arguments.scorecard_id}". Leave scorecardId out '
            "for those there are."
        )
    named = {id_ for one in wanted for id_ in scorecard.checks_of(one.current)}
    if arguments.scorecard_id is UNSET:
        listed = sorted(checks, key=lambda one: (one.id not in named, one.id))
    else:
        listed = [one for one in checks if one.id in named]
    counts = await count_store.totals(context.database)
    ages = await result_age.current(context.database, context.now)
    shown = [await _scorecard(context.database, one, ages) for one in wanted[: arguments.limit]]
    return encode(
        {
            "scorecards": shown,
            "asOf": iso(ages.evaluated_at),
            "checks": [_check(one, counts, ages) for one in listed[: arguments.limit]],
            "totalScorecards": len(wanted),
            "totalChecks": len(listed),
        }
    )


async def _scorecard(
    database: Database, stored: StoredScorecard, ages: ResultAges
) -> dict[str, Any]:
    card = scorecard.parse(stored.current)
    figures: dict[str, Any] = {}
    if stored.slot is not None:
        names = {rank: level for level, rank in card.ranks.items()}
        found = (await level_store.total(database, stored.slot)).render(names)
        figures = {"entities": {**found["levels"], "none": found["noLevel"]}}
        figures |= {"score": found["score"], "scored": found["scored"]}
    return said(
        {
            "id": card.id,
            "title": card.title,
            "description": short(card.description),
            "owner": card.owner,
            "levels": [_level(card, level.id) for level in card.levels],
            "otherChecks": _checks(card, None),
            "advisory": sorted(one.check for one in card.entries if one.advisory),
            "notYetEvaluated": stored.slot is None or None,
            **figures,
            **_older(ages, card.checks),
        }
    )


def _level(card: Scorecard, level: str) -> dict[str, Any]:
    return {"id": level, "checks": _checks(card, level)}


def _checks(card: Scorecard, level: str | None) -> list[str]:
    return [one.check for one in card.entries if one.level == level and not one.advisory]


def _older(ages: ResultAges, checks: Iterable[str]) -> dict[str, Any]:
    """The age of figures that are older than those of the whole answer."""
    age = ages.of(checks)
    return age.render() if age.stale_sources else {}


def _check(stored: StoredCheck, counts: dict[str, StateCounts], ages: ResultAges) -> dict[str, Any]:
    check = parse_stored_check(stored.current)
    return said(
        {
            "id": check.id,
            "title": check.title,
            "rule": short(sentence.of(check.rule)),
            "severity": None if check.severity == "required" else check.severity,
            "counts": shown_counts(counts.get(check.id, StateCounts())),
            **_older(ages, [check.id]),
            "notYetEvaluated": stored.slot is None or None,
        }
    )


_IDS: Final = array({"type": "string"})
_TEXT: Final = {"type": "string"}
_OLDER: Final = {**AGE, "asOf": text("Where it is older than that of the whole answer.")}
_YET: Final = {"type": "boolean", "description": "Published, and its results are not there yet."}

TOOL = Tool(
    name="get-scorecard-discovery",
    title="Scorecards and checks",
    description=(
        "Lists scorecards with the checks of each level, lowest first, and checks with their "
        "rule in words and entities by state. Call it first: it has the ids that the other tools "
        "take. A state unknown means that a fact is missing: it is not a fail, so say so. "
        f"{SIZE_NOTE}; `limit` bounds both lists."
    ),
    arguments=ScorecardDiscoveryArguments,
    output_schema=record(
        {
            "scorecards": array(
                record(
                    {
                        "id": text("Used as scorecardId."),
                        "title": _TEXT,
                        "description": _TEXT,
                        "owner": _TEXT,
                        "levels": array(record({"id": _TEXT, "checks": _IDS}, ("id", "checks"))),
                        "otherChecks": _IDS,
                        "advisory": _IDS,
                        "entities": {
                            "type": "object",
                            "description": "Numbers by level; none is below the first.",
                            "additionalProperties": {"type": "integer"},
                        },
                        "score": {"type": "number", "description": "Mean, in percent."},
                        "scored": SCORED,
                        **_OLDER,
                        "notYetEvaluated": _YET,
                    },
                    ("id", "title"),
                )
            ),
            "asOf": AGE["asOf"],
            "checks": array(
                record(
                    {
                        "id": text("Used as checkId."),
                        "title": _TEXT,
                        "rule": _TEXT,
                        "severity": _TEXT,
                        "counts": COUNTS,
                        **_OLDER,
                        "notYetEvaluated": _YET,
                    },
                    ("id", "title", "rule"),
                )
            ),
            "totalScorecards": {"type": "integer"},
            "totalChecks": {"type": "integer"},
        },
        ("scorecards", "asOf", "checks", "totalScorecards", "totalChecks"),
    ),
    run=run,
    permissions=(CHECK_READ,),
)
