"""Scorecard tools: discovery of scorecards and checks, and the rollup of a scorecard by group."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.catalog import ref as refs
from factbook.checks import scorecard_figures
from factbook.checks.definitions import scorecard
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.results import level_store, result_queries, state_store
from factbook.checks.results.result_queries import ResultAges
from factbook.checks.results.state_store import StateCounts
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import parse_stored_check
from factbook.checks.scorecard_figures import RollupGroup, ScorecardInEffect
from factbook.clock import DAY, iso
from factbook.errors import InputError, ToolError
from factbook.storage import Database
from factbook.tools import check_common, selection, tool
from factbook.tools.check_common import COUNTS, SCORED, ScorecardId, drop_empty, shorten_text
from factbook.tools.check_common import render_counts as shown_counts
from factbook.tools.tool import (
    AGE,
    SIZE_NOTE,
    Context,
    Tool,
    describe_argument,
    describe_list,
    describe_record,
    describe_text_member,
    encode_result,
)

_MOST_GROUPS: Final = 200


class ScorecardDiscoveryArguments(Struct, forbid_unknown_fields=True):
    """No argument is needed."""

    scorecard_id: ScorecardId = msgspec.field(default=UNSET, name="scorecardId")
    limit: Annotated[
        int, describe_argument("Most scorecards and most checks to return.", 20, ge=1, le=200)
    ] = 50


async def run_scorecard_discovery(arguments: ScorecardDiscoveryArguments, context: Context) -> str:
    """Scorecards with their levels, and all checks, also those outside any scorecard."""
    cards = [one for one in await scorecard_store.everything(context.database) if one.published]
    checks = [one for one in await check_store.everything(context.database) if one.published]
    wanted = [one for one in cards if arguments.scorecard_id in (UNSET, one.id)]
    if not wanted and arguments.scorecard_id is not UNSET:
        raise ToolError(
            f'There is no published scorecard "{arguments.scorecard_id}". Leave scorecardId out '
            "for those there are."
        )
    named = {id_ for one in wanted for id_ in scorecard.list_named_checks(one.current)}
    if arguments.scorecard_id is UNSET:
        listed = sorted(checks, key=lambda one: (one.id not in named, one.id))
    else:
        listed = [one for one in checks if one.id in named]
    counts = await state_store.count_totals(context.database)
    ages = await result_queries.read_result_age(context.database, context.now)
    shown = [
        await _render_scorecard(context.database, one, ages) for one in wanted[: arguments.limit]
    ]
    return encode_result(
        {
            "scorecards": shown,
            "asOf": iso(ages.evaluated_at),
            "checks": [
                _render_check_summary(one, counts, ages) for one in listed[: arguments.limit]
            ],
            "totalScorecards": len(wanted),
            "totalChecks": len(listed),
        }
    )


async def _render_scorecard(
    database: Database, stored: StoredScorecard, ages: ResultAges
) -> dict[str, Any]:
    card = scorecard.parse_scorecard(stored.current)
    figures: dict[str, Any] = {}
    if stored.slot is not None:
        names = {rank: level for level, rank in card.ranks.items()}
        found = (await level_store.count_all_levels(database, stored.slot)).render(names)
        figures = {"entities": {**found["levels"], "none": found["noLevel"]}}
        figures |= {"score": found["score"], "scored": found["scored"]}
    return drop_empty(
        {
            "id": card.id,
            "title": card.title,
            "description": shorten_text(card.description),
            "owner": card.owner,
            "levels": [
                {"id": level.id, "checks": _list_level_checks(card, level.id)}
                for level in card.levels
            ],
            "otherChecks": _list_level_checks(card, None),
            "advisory": sorted(one.check for one in card.entries if one.advisory),
            "notYetEvaluated": stored.slot is None or None,
            **figures,
            **_render_older_age(ages, card.checks),
        }
    )


def _list_level_checks(card: Scorecard, level: str | None) -> list[str]:
    return [one.check for one in card.entries if one.level == level and not one.advisory]


def _render_older_age(ages: ResultAges, checks: Iterable[str]) -> dict[str, Any]:
    """The age of the figures of these checks, only if a source is stale."""
    age = ages.of(checks)
    return age.render() if age.stale_sources else {}


def _render_check_summary(
    stored: StoredCheck, counts: dict[str, StateCounts], ages: ResultAges
) -> dict[str, Any]:
    check = parse_stored_check(stored.current)
    return drop_empty(
        {
            "id": check.id,
            "title": check.title,
            "rule": shorten_text(language.describe_rule(check.rule)),
            "severity": None if check.severity == "required" else check.severity,
            "counts": shown_counts(counts.get(check.id, StateCounts())),
            **_render_older_age(ages, [check.id]),
            "notYetEvaluated": stored.slot is None or None,
        }
    )


class RollupArguments(Struct, forbid_unknown_fields=True):
    """A scorecard, and what to group its entities by."""

    scorecard_id: Annotated[
        str, describe_argument("Id of a scorecard, from get-scorecard-discovery.", "readiness")
    ] = msgspec.field(name="scorecardId")
    by: Annotated[
        str,
        describe_argument(
            "owner, system, domain, kind, or label: and the name of a label.",
            "owner",
            extra_json_schema={"pattern": "^(owner|system|domain|kind|label:.+)$"},
        ),
    ] = "owner"
    group: (
        Annotated[
            str,
            describe_argument("Owner to begin with; all when left out.", "group:default/payments"),
        ]
        | UnsetType
    ) = UNSET
    depth: Annotated[int, describe_argument("Levels of child groups to return.", 1, ge=0, le=5)] = 1
    since: (
        Annotated[
            str,
            describe_argument(
                "Compare with then: a date or how long ago; nothing when left out.", "30d"
            ),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[
        int, describe_argument("Most groups to return.", 50, ge=1, le=_MOST_GROUPS)
    ] = 50


async def run_scorecard_rollup(arguments: RollupArguments, context: Context) -> str:
    """Figures of each group, lowest score first."""
    database = context.database
    found = await check_common.find_scorecard_in_effect(database, arguments.scorecard_id)
    try:
        group = None
        if arguments.group:
            group = refs.canonicalize_ref(arguments.group, kind="group")
            await selection.find_owners_named(database, group)
        groups = await scorecard_figures.roll_up_scorecard(
            database, found, arguments.by, group, arguments.depth
        )
    except InputError as error:
        raise ToolError(error.message) from None
    pages = _RollupGroups(found, arguments.limit)
    shown = pages.shown(groups)
    then = await _render_earlier_figures(arguments, found, group, context)
    age = await result_queries.read_age_of_checks(database, found.card.checks, context.now)
    return encode_result(
        {"scorecardId": found.card.id, "by": arguments.by, **age.render(), "groups": shown}
        | drop_empty({"leftOut": pages.left_out, "then": then})
    )


class _RollupGroups:
    """Renders groups until the limit is reached."""

    def __init__(self, given: ScorecardInEffect, limit: int) -> None:
        self._names = given.names
        self._room = limit
        self.left_out: int | None = None

    def shown(self, groups: tuple[RollupGroup, ...] | list[RollupGroup]) -> list[dict[str, Any]]:
        rendered = []
        # The lowest score first, and groups without any last.
        for group in sorted(
            groups, key=lambda group: (group.tally.mean is None, group.tally.mean or 0, group.name)
        ):
            if self._room == 0:
                self.left_out = (self.left_out or 0) + 1
                continue
            self._room -= 1
            figures = group.tally.render(self._names)
            levels = {"levels": {**figures["levels"], "none": figures["noLevel"]}}
            scores = {name: figures[name] for name in ("score", "scored", "total")}
            children = self.shown(group.children)
            rendered.append(
                drop_empty({"name": group.name, **scores, **levels, "children": children})
            )
        return rendered


async def _render_earlier_figures(
    arguments: RollupArguments, found: ScorecardInEffect, group: str | None, context: Context
) -> dict[str, Any] | None:
    """The figures of the group, or of the whole catalog, at the end of an earlier day."""
    if not isinstance(arguments.since, str):
        return None
    first = tool.parse_since(arguments.since, "since", context.now) // DAY
    points = await scorecard_figures.read_trend(context.database, found, group, first, context.now)
    return points[0].render() if points else None


_IDS: Final = describe_list({"type": "string"})
_TEXT: Final = {"type": "string"}
_OLDER: Final = {
    **AGE,
    "asOf": describe_text_member("Where it is older than that of the whole answer."),
}
_YET: Final = {"type": "boolean", "description": "Published, and its results are not there yet."}

DISCOVERY_TOOL = Tool(
    name="get-scorecard-discovery",
    title="Scorecards and checks",
    description=(
        "Lists scorecards with the checks of each level, lowest first, and checks with their "
        "rule in words and entities by state. Call it first: it has the ids that the other tools "
        "take. A state unknown means that a fact is missing: it is not a fail, so say so. "
        f"{SIZE_NOTE}; `limit` bounds both lists."
    ),
    arguments=ScorecardDiscoveryArguments,
    output_schema=describe_record(
        {
            "scorecards": describe_list(
                describe_record(
                    {
                        "id": describe_text_member("Used as scorecardId."),
                        "title": _TEXT,
                        "description": _TEXT,
                        "owner": _TEXT,
                        "levels": describe_list(
                            describe_record({"id": _TEXT, "checks": _IDS}, ("id", "checks"))
                        ),
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
            "checks": describe_list(
                describe_record(
                    {
                        "id": describe_text_member("Used as checkId."),
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
    run=run_scorecard_discovery,
    permissions=(CHECK_READ,),
)
_LEVELS: Final = {
    "type": "object",
    "description": "Entities by level; none is below the first.",
    "additionalProperties": {"type": "integer"},
}

ROLLUP_TOOL = Tool(
    name="get-scorecard-rollup",
    title="A scorecard by team",
    description=(
        "Returns the levels and the mean score of a scorecard by owner, each with all groups "
        "below it, or by system, domain, kind or label; the lowest score first. Needs a "
        "scorecardId from get-scorecard-discovery. With since it tells what the figures of the "
        "group, or of all, were then. Entities whose facts are missing lower no score; see "
        f"get-check-results. {SIZE_NOTE}; `limit` bounds the groups."
    ),
    arguments=RollupArguments,
    output_schema=describe_record(
        {
            "scorecardId": _TEXT,
            "by": _TEXT,
            **AGE,
            "groups": describe_list(
                describe_record(
                    {
                        "name": describe_text_member("Left out for entities without one."),
                        "score": {"type": "number", "description": "Mean, in percent."},
                        "scored": SCORED,
                        "total": {"type": "integer"},
                        "levels": _LEVELS,
                        "children": describe_list({"type": "object", "description": "The same."}),
                    },
                    (),
                )
            ),
            "leftOut": {"type": "integer", "description": "Groups beyond the limit."},
            "then": {
                "type": "object",
                "description": "Figures of the first day known since, as of that day.",
            },
        },
        ("scorecardId", "by", "asOf", "groups"),
    ),
    run=run_scorecard_rollup,
    permissions=(CATALOG_READ, CHECK_READ),
)
