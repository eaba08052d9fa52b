"""get-check-results: the entities of a check in some states, or at a level of a scorecard."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.checks import state
from factbook.checks.definitions.check import parse_stored_check
from factbook.checks.levels import level_store
from factbook.checks.results import explained_rows, result_age, result_pages
from factbook.checks.results.explained_rows import ExplainedRow
from factbook.checks.results.result_pages import ResultPlace
from factbook.checks.results.result_queries import ResultFilter
from factbook.checks.scorecards import level_pages
from factbook.checks.states import count_store
from factbook.checks.states.count_store import StateCounts
from factbook.checks.versions.check_store import check_store
from factbook.clock import iso_or_none
from factbook.errors import InputError, ToolError
from factbook.tools.checks import arguments as given
from factbook.tools.checks.arguments import DISCOVER, OwnerGroup, States
from factbook.tools.checks.shown import (
    COUNTS,
    STANDING,
    counts,
    cursor_of,
    place_of,
    said,
    short,
    standing,
)
from factbook.tools.result_schema import AGE, NEXT_CURSOR, SIZE_NOTE, array, record, text
from factbook.tools.tool import Context, Tool, argument, encode

_FAILING: Final = ["fail"]
_MOST: Final = 500


class CheckResultsArguments(Struct, forbid_unknown_fields=True):
    """A check or a scorecard, and which of its entities."""

    check_id: (
        Annotated[str, argument("Id of a check; give this or scorecardId.", "covered")] | UnsetType
    ) = msgspec.field(default=UNSET, name="checkId")
    scorecard_id: (
        Annotated[str, argument("Id of a scorecard; give this or checkId.", "readiness")]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="scorecardId")
    states: States = UNSET
    level: (
        Annotated[
            str,
            argument(
                "Level of the scorecard, none for below the first; any when left out.", "bronze"
            ),
        ]
        | UnsetType
    ) = UNSET
    owner: OwnerGroup = UNSET
    kind: (
        Annotated[str, argument("Kind of the entities; any when left out.", "component")]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, argument("Most entities to return.", 50, ge=1, le=_MOST)] = 50
    cursor: (
        Annotated[str, argument("nextCursor of the page before.", "component:default/payments-api")]
        | UnsetType
    ) = UNSET


async def run(arguments: CheckResultsArguments, context: Context) -> str:
    """A page of entities, and the counts of all."""
    if (arguments.check_id is UNSET) is (arguments.scorecard_id is UNSET):
        raise ToolError(f"Give exactly one of checkId and scorecardId. {DISCOVER}")
    of = _of_check if isinstance(arguments.check_id, str) else _of_scorecard
    return encode(await of(arguments, context))


async def _of_check(arguments: CheckResultsArguments, context: Context) -> dict[str, Any]:
    database, id_ = context.database, str(arguments.check_id)
    stored = await given.existing(check_store.existing(database, id_))
    if stored.slot is None:
        raise ToolError(f"The check {id_} has no results yet. {DISCOVER}")
    states = given.states_checked(_FAILING if arguments.states is UNSET else arguments.states)
    owners = await given.owners_of(database, arguments.owner)
    kind = arguments.kind.lower() if isinstance(arguments.kind, str) else None
    after = "" if arguments.cursor is UNSET else place_of(arguments.cursor, ":/")
    wanted = ResultFilter(states, owners, kind)
    page = await result_pages.page(
        database, [id_], wanted, ResultPlace(id_, after), arguments.limit
    )
    rows = [row for _, row in page.rows]
    check = parse_stored_check(stored.published)
    shown = await explained_rows.of_rows(database, check, rows, context.now)
    if owners:
        found = await count_store.of_owners(database, owners)
    else:
        found = await count_store.totals(database, [id_])
    age = await result_age.of_checks(database, [id_], context.now)
    return {
        "checkId": id_,
        **age.render(),
        "counts": counts(found.get(id_, StateCounts())),
        "entities": [_row(one, values=context.reads_values) for one in shown],
    } | said({"nextCursor": cursor_of(page.next.ref) if page.next else None})


def _row(one: ExplainedRow, *, values: bool) -> dict[str, Any]:
    told = one.explanation
    return said(
        {
            "entityRef": one.row.ref,
            "owner": one.row.owner,
            "state": state.word(one.row.state),
            "since": iso_or_none(one.since),
            "message": short(told.message) if told and values else None,
            "reasons": told.reasons if told and one.row.state == state.UNKNOWN else None,
            "stale": (told.stale or None) if told else None,
        }
    )


async def _of_scorecard(arguments: CheckResultsArguments, context: Context) -> dict[str, Any]:
    database = context.database
    found = await given.scorecard_in_effect(database, str(arguments.scorecard_id))
    owners = await given.owners_of(database, arguments.owner)
    level = arguments.level if isinstance(arguments.level, str) else None
    try:
        wanted = level_pages.at_level(found.card, level, owners)
    except InputError as error:
        raise ToolError(error.message) from None
    tally = await level_store.total(database, found.slot, owners or None)
    page = await level_pages.page(database, found, wanted, _after(arguments), arguments.limit)
    figures = tally.render(found.names)
    age = await result_age.of_checks(database, found.card.checks, context.now)
    return {
        "scorecardId": found.card.id,
        **age.render(),
        "counts": {**figures["levels"], "none": figures["noLevel"]},
        "entities": [
            {"entityRef": one.ref, **standing(found, one.graded)} for one in page.entities
        ],
    } | said({"nextCursor": None if page.next is None else str(page.next)})


def _after(arguments: CheckResultsArguments) -> int:
    if arguments.cursor is UNSET:
        return 0
    place = place_of(arguments.cursor, "")
    if not (place.isascii() and place.isdigit() and len(place) < 19):
        place_of("", ":")
    return int(place)


_TEXT: Final = {"type": "string"}

TOOL = Tool(
    name="get-check-results",
    title="Entities of a check or scorecard",
    description=(
        "Returns the entities for which a check fails, or has the states given, with since when "
        "and why it is unknown; of a scorecard its entities with level, score and coverage. Give "
        "exactly one of checkId and scorecardId, from get-scorecard-discovery. counts are of all "
        "entities, or of the owner's. A page may hold few while there is a nextCursor. "
        f"{SIZE_NOTE}; use `limit` and `cursor`."
    ),
    arguments=CheckResultsArguments,
    output_schema=record(
        {
            "checkId": _TEXT,
            "scorecardId": _TEXT,
            **AGE,
            "counts": COUNTS
            | {"description": "All entities, or the owner's, by state; of a scorecard by level."},
            "entities": array(
                record(
                    {
                        "entityRef": _TEXT,
                        "owner": _TEXT,
                        "state": _TEXT,
                        "since": _TEXT,
                        "message": _TEXT,
                        "reasons": array(text("Why a fact is missing.")),
                        "stale": {"type": "boolean"},
                        **STANDING,
                    },
                    ("entityRef",),
                )
            ),
            "nextCursor": NEXT_CURSOR,
        },
        ("asOf", "counts", "entities"),
    ),
    run=run,
    permissions=(CATALOG_READ, CHECK_READ),
)
